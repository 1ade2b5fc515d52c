// Keeps what was used, in a file. A thread of its own waits for the disk, so the daemon does not. While the file cannot
// be written the thread has what is missing in it, and tries again with what comes next.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "gpuctld/accounts/amounts.h"
#include "gpuctld/accounts/usage_store.h"

namespace gpuctl::daemon {

/// Everything is called on the thread that runs the io_context, and calls back there.
class UsageKeeper {
 public:
  using Log = std::function<void(const std::string&)>;
  using Answered = std::function<void(Result<Accounts>)>;
  /// What is newer is lost when the daemon is killed.
  static constexpr std::chrono::seconds kPeriod{10};
  /// The end of the daemon waits so long for the disk.
  static constexpr std::chrono::seconds kPatience{5};
  /// `file` empty: nothing is kept. The thread begins with the first call.
  UsageKeeper(boost::asio::io_context& context, std::string file, Log log);
  ~UsageKeeper();
  UsageKeeper(const UsageKeeper&) = delete;

  /// This was used lately.
  void add(const Accounts& accounts, std::int64_t time_s);
  /// All that was added before counts. Not answered after stop(). Of each user one question may wait for the disk, of
  /// who has no uid here any.
  void ask(UsageQuestion question, std::optional<std::uint32_t> uid, Answered answered);
  /// Writes what is not written yet.
  void stop();

 private:
  struct Desk;
  bool begin();

  std::shared_ptr<Desk> desk_;  ///< what both threads use
  std::thread thread_;
};

}  // namespace gpuctl::daemon
