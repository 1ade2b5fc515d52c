// When the daemon looks at its clients again: the tick, and, for tests of programs, storms of random grants.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

#include "base/random.h"
#include "gpuctld/manager/tick_pace.h"
#include "gpuctld/scheduler/scheduler.h"

namespace gpuctl::daemon {

/// Everything is called on the thread that runs the io_context.
class Ticker {
 public:
  struct Hooks {
    std::function<void()> tick;
    std::function<void()> looked;  ///< because somebody asked
  };

  /// `scheduler` outlives this object.
  Ticker(boost::asio::io_context& context, Scheduler& scheduler, Hooks hooks);

  /// Updates the scheduler, and remembers what that took for the time of the next tick.
  void look(std::uint64_t now_ns);
  /// Does so after what else is ready, or a little later (TickPace::rest): once for all who ask until then.
  void look_soon();
  /// Makes the next tick come soon enough for what the clients do. `rests`: a client waits for it.
  void arm(bool rests);
  /// Replaces all grants by random ones, again and again, after times of this mean.
  void begin_storm(std::chrono::microseconds mean);

  /// Nothing is called any more.
  void stop();
  bool stopped() const { return stopped_; }

 private:
  void look_now();

  boost::asio::io_context& context_;
  Scheduler& scheduler_;
  Hooks hooks_;
  boost::asio::steady_timer timer_, soon_, storm_timer_;
  bool armed_ = false, asked_ = false, stopped_ = false;
  std::chrono::steady_clock::time_point at_;
  TickPace pace_;
  Random random_;
};

}  // namespace gpuctl::daemon
