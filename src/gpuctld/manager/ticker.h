// When the daemon looks at its clients again: the tick, and, for tests of programs, storms of random grants.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

#include "base/random.h"
#include "gpuctld/grants/scheduler.h"

namespace gpuctl::daemon {

/// While any client is busy, usage is read this often, and whenever a client asks. What a client no longer needs is
/// found this late at most.
inline constexpr std::chrono::milliseconds kBusyTick{5};
/// The tick while SMs taken from one client wait to be granted to another. A waiting client may lose this much beyond
/// the time that the other takes to leave.
inline constexpr std::chrono::microseconds kHandoverTick{200};
/// The tick while clients are attached and idle: for what gpuctl top shows, and for work that began under a standing
/// grant.
inline constexpr std::chrono::milliseconds kIdleTick{250};

/// Everything is called on the thread that runs the io_context.
class Ticker {
 public:
  /// `scheduler` outlives this object.
  Ticker(boost::asio::io_context& context, Scheduler& scheduler, std::function<void()> tick);

  /// Makes the next tick come soon enough for what the clients do. `rests`: a client waits for it.
  void arm(bool rests);
  /// Replaces all grants by random ones, again and again, after times of this mean.
  void begin_storm(std::chrono::microseconds mean);

  /// Nothing is called any more.
  void stop();
  bool stopped() const { return stopped_; }

 private:
  Scheduler& scheduler_;
  std::function<void()> tick_;
  boost::asio::steady_timer timer_, storm_timer_;
  bool armed_ = false, stopped_ = false;
  std::chrono::steady_clock::time_point at_;
  Random random_;
};

}  // namespace gpuctl::daemon
