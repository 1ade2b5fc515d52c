#include "libgpuslice/image/compile_queue.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <thread>

#include "base/installed.h"
#include "ipc/unique_fd.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/environment.h"
#include "libgpuslice/client/spare_descriptors.h"
#include "libgpuslice/image/helper_process.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;

namespace {

/// Most jobs of one helper. Each takes a descriptor until the helper has started.
constexpr int kMostAtOnce = 64;

/// How many descriptors the program can spare for them.
std::size_t descriptors_for_jobs() {
  if (descriptors_are_left(kMostAtOnce + kSpareDescriptors)) return kMostAtOnce;
  return descriptors_are_left() ? 1 : 0;
}

/// The helper's path. Installed, it is in a directory beside this library, as it is in the build tree.
std::string find_helper() {
  if (const char* path = environment("GPUSLICE_COMPILE_HELPER"); path && *path) return path;
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&find_helper), &here) == 0 || !here.dli_fname) return {};
  // A program that links the library may have found it by a symbolic link.
  const std::unique_ptr<char, void (*)(void*)> real(realpath(here.dli_fname, nullptr), std::free);
  const std::string library = real ? real.get() : here.dli_fname;
  const std::string directory = library.substr(0, library.rfind('/') + 1);
  for (const char* place : gpuctl::kCompileHelperPlaces) {
    if (access((directory + place).c_str(), X_OK) == 0) return directory + place;
  }
  return {};
}

Result<pid_t> start(std::span<const int> descriptors) {
  static const std::string* helper = new std::string(find_helper());
  if (helper->empty()) return fail("gpuslice-compile is not installed beside libgpuslice");
  return start_unseen(*helper, descriptors);
}

/// One that has ended may stay as a zombie: in a container nobody may wait for it.
bool lives(pid_t process) {
  if (kill(process, 0) != 0) return errno != ESRCH;
  char text[512];
  const gpuctl::ipc::UniqueFd file(open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? read(file.get(), text, sizeof text) : -1;
  const std::string_view about(text, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return about.find(") Z ") == std::string_view::npos;
}

/// The result of a job whose helper has answered or ended.
CompileResult result_of(const CompileJob& job) {
  std::optional<Forms> forms = job.take_answer();
  if (!forms) return fail("the compile helper ended without an answer");
  return std::move(*forms);
}

}  // namespace

CompileQueue& CompileQueue::get() {
  static CompileQueue* queue = new CompileQueue;
  return *queue;
}

void CompileQueue::add(CompileRequest request, Done done) {
  {
    std::unique_lock lock(mutex_);
    if (waiting_bytes_ >= most_bytes_) {
      lock.unlock();
      return done(fail("too much waits for the compile helper; the program's next start goes on with it"));
    }
    waiting_bytes_ += request.ptx.size();
    waiting_.push_back({std::move(request), std::move(done)});
  }
  tick();
}

/// The caller holds the mutex.
void CompileQueue::take_ended(std::vector<Ended>& ended) {
  // In this order, so that an answer written before the helper's end counts.
  const bool over = !running_.empty() && !lives(helper_);
  const auto at = std::stable_partition(running_.begin(), running_.end(),
                                        [&](const Running& one) { return !over && !one.job.answered(); });
  std::for_each(at, running_.end(), [&](Running& one) { ended.push_back({result_of(one.job), std::move(one.done)}); });
  running_.erase(at, running_.end());
}

/// The caller holds the mutex. What gets no memory is among the ended.
void CompileQueue::start_helper(std::vector<Ended>& ended) {
  std::vector<int> descriptors;
  const std::size_t most = descriptors_for_jobs();
  while (!waiting_.empty() && running_.size() < most) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= next.request.ptx.size();
    Result<CompileJob> job = CompileJob::create(next.request);
    if (!job) {
      ended.push_back({job.error(), std::move(next.done)});
      continue;
    }
    descriptors.push_back(job->descriptor());
    running_.push_back({std::move(*job), std::move(next.done)});
  }
  if (running_.empty()) return;
  const Result<pid_t> started = start(descriptors);
  for (Running& one : running_) one.job.close_descriptor();
  if (started) {
    helper_ = *started;
    return;
  }
  for (Running& one : running_) ended.push_back({started.error(), std::move(one.done)});
  running_.clear();
}

void CompileQueue::tick() {
  std::vector<Ended> ended;
  {
    std::lock_guard lock(mutex_);
    take_ended(ended);
    if (running_.empty() && !waiting_.empty()) start_helper(ended);
  }
  for (Ended& one : ended) one.done(std::move(one.result));
}

CompileResult CompileQueue::compile_and_wait(const CompileRequest& request) {
  Result<CompileJob> job = CompileJob::create(request);
  if (!job) return job.error();
  const int descriptor = job->descriptor();
  const Result<pid_t> helper = start({&descriptor, 1});
  if (!helper) return helper.error();
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (!job->answered() && lives(*helper) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return result_of(*job);
}

void CompileQueue::forget_after_fork() {
  new (this) CompileQueue;
}

}  // namespace gpuslice
