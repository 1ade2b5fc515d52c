#include "libgpuslice/background.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace gpuslice {

namespace {

/// A tenth of the processor time of an ordinary thread beside it.
constexpr int kNicer = 10;

void be_nice() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, std::min(getpriority(PRIO_PROCESS, thread) + kNicer, 19));
}

}  // namespace

Background& Background::get() {
  static Background* background = new Background;
  return *background;
}

bool Background::add(Job job) {
  std::lock_guard lock(mutex_);
  if (stopped_) return false;
  // Registered after the driver's own, which so come later.
  if (!at_exit_ && this == &get()) at_exit_ = std::atexit([] { get().stop(); }) == 0;
  waiting_.push_back(std::move(job));
  if (working_) return true;
  if (thread_.joinable()) thread_.join();  // it has ended, or is about to
  // The thread must not take signals meant for the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { work(); });
    working_ = true;
  } catch (const std::system_error&) {
    waiting_.pop_back();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return working_;
}

void Background::work() {
  be_nice();
  std::unique_lock lock(mutex_);
  while (!waiting_.empty()) {
    running_ = std::move(waiting_.front());
    waiting_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exchange(running_.run, nullptr)();
    lock.lock();
    running_.dropped = nullptr;
    busy_ = false;
    changed_.notify_all();
  }
  working_ = false;
}

template <class Predicate>
void Background::leave_if(Predicate ends) {
  std::deque<Job> dropped, kept;
  {
    std::lock_guard lock(mutex_);
    for (Job& job : waiting_) (ends(job) ? dropped : kept).push_back(std::move(job));
    waiting_ = std::move(kept);
  }
  for (Job& job : dropped) {
    if (job.dropped) job.dropped();
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !busy_ || !ends(running_); });
}

void Background::leave(CUcontext context) {
  leave_if([context](const Job& job) { return job.context == context; });
}

void Background::leave_device(CUdevice device) {
  leave_if([device](const Job& job) { return job.device == device; });
}

void Background::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  leave_if([](const Job&) { return true; });
  if (thread_.joinable()) thread_.join();
}

void Background::forget_after_fork() {
  new (this) Background;
}

}  // namespace gpuslice
