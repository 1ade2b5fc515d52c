#include "gpuctld/accounts/usage_keeper.h"

#include <signal.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "gpuctld/accounts/usage_writer.h"

namespace gpuctl::daemon {

struct UsageKeeper::Desk : std::enable_shared_from_this<Desk> {
  struct Asked {
    UsageQuestion question;
    std::optional<std::uint32_t> uid;
    Answered answered;
  };
  /// What the thread does next.
  struct Task {
    Unwritten added;
    std::int64_t time_s = 0;
    std::optional<Asked> asked;
  };

  Desk(boost::asio::io_context& context, std::string file, Log log)
      : file(std::move(file)), log(std::move(log)), context(&context) {}

  std::mutex mutex;
  std::condition_variable changed;
  Unwritten added;          ///< a slow disk takes all of it at once
  std::int64_t time_s = 0;  ///< of the latest
  std::deque<Asked> asked;
  bool stops = false, over = false, failed = false;
  const std::string file;
  const Log log;
  boost::asio::io_context* context;  ///< null after stop()
  std::vector<std::string> lines;    ///< to be logged, after stop()

  // On the thread.

  /// None: there is nothing more to do.
  std::optional<Task> next() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stops || !added.empty() || !asked.empty(); });
    if (added.empty() && asked.empty()) return std::nullopt;
    Task task{std::exchange(added, {}), time_s, std::nullopt};
    if (asked.empty()) return task;
    task.asked = std::move(asked.front());
    asked.pop_front();
    return task;
  }
  void tell(std::string line) {
    const std::lock_guard lock(mutex);
    if (context == nullptr) return lines.push_back(std::move(line));
    boost::asio::post(*context, [desk = shared_from_this(), line = std::move(line)] { desk->log(line); });
  }
  void answer(Answered answered, Result<Accounts> sums) {
    const std::lock_guard lock(mutex);
    if (context == nullptr) return;
    boost::asio::post(*context, [desk = shared_from_this(), answered = std::move(answered), sums = std::move(sums)] {
      if (desk->context != nullptr) answered(sums);
    });
  }
  void work() {
    {
      UsageWriter writer(file, [this](std::string line) { tell(std::move(line)); });
      while (std::optional<Task> task = next()) {
        if (!task->added.empty()) writer.add(task->added, task->time_s);
        if (task->asked) answer(std::move(task->asked->answered), writer.sums(task->asked->question));
      }
    }
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
};

UsageKeeper::UsageKeeper(boost::asio::io_context& context, std::string file, Log log)
    : desk_(std::make_shared<Desk>(context, std::move(file), std::move(log))) {}

UsageKeeper::~UsageKeeper() {
  stop();
}

/// Whether there is a thread.
bool UsageKeeper::begin() {
  if (desk_->file.empty() || desk_->context == nullptr) return false;
  if (thread_.joinable()) return true;
  sigset_t all, before;  // signals are for the daemon's thread
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([desk = desk_] { desk->work(); });
  } catch (const std::system_error& error) {
    if (!std::exchange(desk_->failed, true))
      desk_->log("what is used is not kept: no thread: " + std::string(error.what()));
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void UsageKeeper::add(const Accounts& accounts, std::int64_t time_s) {
  if (accounts.empty() || !begin()) return;
  const std::lock_guard lock(desk_->mutex);
  desk_->added.add(accounts, time_s);
  desk_->time_s = time_s;
  desk_->changed.notify_all();
}

void UsageKeeper::ask(UsageQuestion question, std::optional<std::uint32_t> uid, Answered answered) {
  if (desk_->context == nullptr) return;
  const auto refuse = [&](std::string why) {
    boost::asio::post(*desk_->context, [answered, why = std::move(why)] { answered(fail(why)); });
  };
  if (!begin()) return refuse("the daemon keeps nothing of what is used");
  const std::lock_guard lock(desk_->mutex);
  if (uid && std::ranges::count(desk_->asked, uid, &Desk::Asked::uid) > 0)
    return refuse("another question of this user waits for the disk");
  desk_->asked.push_back({std::move(question), uid, std::move(answered)});
  desk_->changed.notify_all();
}

void UsageKeeper::stop() {
  bool over = false;
  {
    std::unique_lock lock(desk_->mutex);
    if (desk_->context == nullptr) return;
    desk_->context = nullptr;
    if (!thread_.joinable()) return;
    desk_->stops = true;
    desk_->changed.notify_all();
    over = desk_->changed.wait_for(lock, kPatience, [&] { return desk_->over; });
    for (const std::string& line : std::exchange(desk_->lines, {})) desk_->log(line);
  }
  if (over) return thread_.join();
  thread_.detach();
  desk_->log("what was used at last is not kept: the disk took longer than " + std::to_string(kPatience.count()) +
             " s");
}

}  // namespace gpuctl::daemon
