// Keeps the state file as the slices are. A caller was told that its change was made, so the change must survive the
// daemon even if the file could not be written at once, as on a full disk.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "gpuctld/config/state_writer.h"

namespace gpuctl::daemon {

/// Everything is called on the thread that runs the io_context.
class StateKeeper {
 public:
  using Log = std::function<void(const std::string&)>;
  static constexpr std::chrono::milliseconds kTryAgain{500};

  /// `file` empty: nothing is kept.
  StateKeeper(boost::asio::io_context& context, std::string file, Log log);

  /// Writes what changed. If that fails, tries again until this state or a later one is written.
  void save(const sched::Slices& slices, const std::map<std::string, std::string>& configured);
  /// Why the slices would not survive a restart now; null: they would.
  const std::string* problem() const { return problem_.empty() ? nullptr : &problem_; }
  /// Tries a last time, and leaves a file that every release reads.
  void stop();

 private:
  void note(const Result<void>& saved);

  const bool keeps_;
  StateWriter writer_;
  Log log_;
  std::string problem_;
  boost::asio::steady_timer again_;
};

}  // namespace gpuctl::daemon
