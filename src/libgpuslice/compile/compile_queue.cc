#include "libgpuslice/compile/compile_queue.h"

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <new>
#include <thread>

#include "libgpuslice/compile/helper_process.h"
#include "libgpuslice/process/debug.h"
#include "libgpuslice/process/environment.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;

namespace {

/// Most jobs of one helper. Each takes a descriptor.
constexpr std::size_t kMostAtOnce = 64;

/// The helper's path. It is beside this library if both are installed, and in its own directory in the build tree.
std::string find_helper() {
  if (const char* path = environment("GPUSLICE_COMPILE_HELPER"); path && *path) return path;
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&find_helper), &here) == 0 || !here.dli_fname) return {};
  const std::string library = here.dli_fname;
  const std::string directory = library.substr(0, library.rfind('/') + 1);
  for (const char* place : {"gpuslice-compile", "../gpuslice-compile/gpuslice-compile"}) {
    if (access((directory + place).c_str(), X_OK) == 0) return directory + place;
  }
  return {};
}

Result<pid_t> start(std::span<const int> descriptors) {
  static const std::string* helper = new std::string(find_helper());
  if (helper->empty()) return fail("gpuslice-compile is not installed beside libgpuslice");
  return start_unseen(*helper, descriptors);
}

bool lives(pid_t process) {
  return kill(process, 0) == 0 || errno != ESRCH;
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

void CompileQueue::add(CompileJob job, Done done) {
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(job), std::move(done)});
  }
  tick();
}

void CompileQueue::tick() {
  std::vector<Entry> ended;
  std::vector<Entry> refused;
  std::string why;
  {
    std::lock_guard lock(mutex_);
    // In this order, so that an answer written before the helper's end counts.
    const bool over = !running_.empty() && !lives(helper_);
    const auto at = std::stable_partition(running_.begin(), running_.end(),
                                          [&](const Entry& entry) { return !over && !entry.job.answered(); });
    std::move(at, running_.end(), std::back_inserter(ended));
    running_.erase(at, running_.end());
    if (running_.empty() && !waiting_.empty()) {
      const std::size_t count = std::min(waiting_.size(), kMostAtOnce);
      std::vector<int> descriptors;
      for (std::size_t i = 0; i < count; ++i) {
        descriptors.push_back(waiting_.front().job.descriptor());
        running_.push_back(std::move(waiting_.front()));
        waiting_.pop_front();
      }
      const Result<pid_t> started = start(descriptors);
      for (Entry& entry : running_) entry.job.close_descriptor();
      if (started) {
        helper_ = *started;
      } else {
        why = started.error().message;
        refused.swap(running_);
      }
    }
  }
  for (Entry& entry : ended) entry.done(result_of(entry.job));
  for (Entry& entry : refused) entry.done(fail(why));
}

CompileResult CompileQueue::compile_and_wait(CompileJob job) {
  const int descriptor = job.descriptor();
  const Result<pid_t> helper = start({&descriptor, 1});
  if (!helper) return helper.error();
  const auto until = std::chrono::steady_clock::now() + kLongestWait;
  while (!job.answered() && lives(*helper) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return result_of(job);
}

void CompileQueue::forget_after_fork() {
  new (this) CompileQueue;
}

}  // namespace gpuslice
