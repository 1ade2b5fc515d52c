// MPS as gpuctld starts it: with libgpuslice inside, so that the server's turns can be set. It is started for the first
// program that would join it, again if it ends, later each time, and ended when nobody has used it for a while. Where
// somebody else's MPS serves it is left alone. It outlives the daemon, as the programs in it do; the next daemon then
// uses it, and does not end it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "gpuctld/host/child_program.h"

namespace gpuctl::daemon {

/// An MPS that nobody has used for so long is ended.
inline constexpr std::chrono::seconds kMpsIdle{60};
/// Between two tries to start it: twice as long each time, up to the latter.
inline constexpr std::chrono::milliseconds kMpsFirstPause{1000}, kMpsLongestPause{60'000};

/// Everything is called on the thread that runs the io_context.
class ManagedMps {
 public:
  using Log = std::function<void(const std::string& line)>;
  /// `socket`: where the library inside finds the daemon.
  ManagedMps(boost::asio::io_context& context, std::string socket, Log log, std::chrono::milliseconds idle = kMpsIdle)
      : context_(context), timer_(context), socket_(std::move(socket)), log_(std::move(log)), idle_(idle) {}

  /// A program would join it. If it is being started, or is started now, `then` is called once that has ended, well or
  /// not, unless forget() comes first, and true is returned. False: there is one, or none can be started now.
  bool wait(const void* who, std::function<void()> then);
  void forget(const void* who) { waiting_.erase(who); }

  /// Whether programs are there that may be in it.
  void note_use(bool used);

  /// The daemon ends.
  void stop();

 private:
  void start();
  void started(const Result<std::string>& output);
  void look();

  boost::asio::io_context& context_;
  boost::asio::steady_timer timer_;  ///< while it is ours
  std::string socket_;
  Log log_;
  std::chrono::milliseconds idle_;
  std::shared_ptr<ChildProgram> starts_, quits_;
  std::map<const void*, std::function<void()>> waiting_;
  std::chrono::milliseconds pause_{0};
  std::chrono::steady_clock::time_point next_try_{}, used_{};
  bool ours_ = false, in_use_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
