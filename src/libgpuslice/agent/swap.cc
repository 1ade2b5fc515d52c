#include "libgpuslice/agent/swap.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "ipc/stub_map.h"
#include "libgpuslice/agent/contexts.h"
#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/look_gate.h"
#include "libgpuslice/base/own_threads.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/kernels.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using ipc::MemoryIs;
using ipc::NotSwapped;

namespace {

/// What runs has to end within it, since the program's calls wait meanwhile.
constexpr unsigned kLockMs = 1000;
constexpr std::uint64_t kAgainNs = 5'000'000'000;
constexpr std::chrono::milliseconds kLookForReturn{200};
/// So many looks are from one return that the driver refused to the next try.
constexpr int kLooksWithoutRoom = 5;

/// Launches that nobody gives SMs to are not over before their slice is thawed.
bool work_waits() {
  return std::ranges::any_of(Contexts::all(), [](Context* context) {
    LaunchBook& book = context->state().book;
    const std::lock_guard lock(book.mutex());
    return book.outstanding() > 0;
  });
}

bool shares_mps() {
  int count = 0;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 0; device < count; ++device)
    if (int mps = 0;
        driver().cuDeviceGetAttribute(&mps, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) == CUDA_SUCCESS && mps != 0)
      return true;
  return false;
}

/// What looks wait for has been done, since the process is locked.
bool looks_go_on_until(std::uint64_t ns) {
  while (!LookGate::get().empty() && monotonic_ns() < ns) std::this_thread::sleep_for(LookGate::kPause);
  return !LookGate::get().empty();
}

ipc::Swap refused(MemoryIs memory, CUresult error) {
  return {memory, NotSwapped::refused, static_cast<std::uint16_t>(error)};
}

CUprocessState own_state() {
  CUprocessState state = CU_PROCESS_STATE_FAILED;
  return driver().cuCheckpointProcessGetState(getpid(), &state) == CUDA_SUCCESS ? state : CU_PROCESS_STATE_FAILED;
}

}  // namespace

constinit Swap Swap::instance_;

bool Swap::wanted() const {
  const ipc::Stub* page = Client::get().stub();
  return page != nullptr && ipc::load(page->swap_wanted) != 0 && !ends_.load();
}

bool Swap::look() {
  if (away_.load() || Client::get().stub() == nullptr) {
    publish();
    return away_.load();
  }
  if (!wanted()) {
    tried_ns_ = 0;
    if (word_.load() != 0) say({});
    return false;
  }
  publish();
  const std::uint64_t now = monotonic_ns();
  const NotSwapped before = ipc::swap_of(word_.load()).why;
  // no_reason: it was brought back, and this thread has not seen that it was to be.
  const bool again = before == NotSwapped::no_reason || (before == NotSwapped::works && now >= tried_ns_ + kAgainNs);
  if (tried_ns_ != 0 && !again) return false;
  tried_ns_ = now;
  const NotSwapped why = !driver().cuCheckpointProcessLock ? NotSwapped::no_calls
                         : managed_.load()                 ? NotSwapped::managed
                         : work_waits()                    ? NotSwapped::works
                                                           : NotSwapped::no_reason;
  if (why != NotSwapped::no_reason) return say({MemoryIs::on_gpu, why}), false;
  away_.store(true);
  if (ends_.load()) {  // the thread that set it may have looked before
    away_.store(false);
    return false;
  }
  const auto body = [](void* swap) -> void* {
    static_cast<Swap*>(swap)->run();
    return nullptr;
  };
  if (start_own_thread(body, this)) return true;
  away_.store(false);
  say({MemoryIs::on_gpu, NotSwapped::no_thread});
  return false;
}

void Swap::bring_back_for_good() {
  ends_.store(true);
  while (away_.load() && ipc::swap_of(word_.load()).memory != MemoryIs::lost)
    std::this_thread::sleep_for(LookGate::kPause);
}

std::vector<ipc::Kernel> Swap::report_kernels(bool all) {
  if (away_.load()) {
    unreported_ |= all;
    return {};
  }
  return Kernels::get().report(std::exchange(unreported_, false) || all);
}

void Swap::run() {
  this_is_an_own_thread();
  say({MemoryIs::leaving});
  ipc::Swap outcome = move_out();
  if (outcome.memory == MemoryIs::on_host) {
    say(outcome);
    outcome = wait_for_return();
  }
  debug("the memory of this program is %s", outcome.memory == MemoryIs::on_gpu ? "on the GPU" : "lost");
  // Where the driver has given the program up its calls may wait for ever.
  if (outcome.memory == MemoryIs::on_gpu)
    LookGate::get().open(), away_.store(false);
  else
    LookGate::get().close_for_good();
  say(outcome);
}

ipc::Swap Swap::move_out() {
  if (shares_mps()) return {MemoryIs::on_gpu, NotSwapped::shares_mps};
  LookGate::get().close();
  CUcheckpointLockArgs within{};
  within.timeoutMs = kLockMs;
  CUresult result = driver().cuCheckpointProcessLock(getpid(), &within);
  if (result == CUDA_ERROR_NOT_READY) return {MemoryIs::on_gpu, NotSwapped::works};
  if (result != CUDA_SUCCESS) return refused(MemoryIs::on_gpu, result);
  const bool looks = looks_go_on_until(monotonic_ns() + kLockMs * 1'000'000ull);
  if (!looks) {
    result = driver().cuCheckpointProcessCheckpoint(getpid(), nullptr);
    if (result == CUDA_SUCCESS) return {MemoryIs::on_host};
  }
  const bool unlocked = driver().cuCheckpointProcessUnlock(getpid(), nullptr) == CUDA_SUCCESS;
  if (looks && unlocked) return {MemoryIs::on_gpu, NotSwapped::works};
  return refused(unlocked ? MemoryIs::on_gpu : MemoryIs::lost, result);
}

/// The state is asked for each time, as others may bring the memory back (cuda-checkpoint).
ipc::Swap Swap::wait_for_return() {
  for (int pause = 0;; pause = std::max(0, pause - 1)) {
    std::this_thread::sleep_for(kLookForReturn);
    if (Contexts::exiting()) return {MemoryIs::on_host};
    const CUprocessState state = own_state();
    if (state == CU_PROCESS_STATE_RUNNING) return {MemoryIs::on_gpu, NotSwapped::by_hand};
    if (state == CU_PROCESS_STATE_FAILED) return {MemoryIs::lost};
    if (wanted()) {
      say({MemoryIs::on_host});
    } else if (pause == 0) {
      const ipc::Swap outcome = bring_back();
      if (outcome.memory != MemoryIs::without_room) return outcome;
      say(outcome);
      pause = kLooksWithoutRoom;
    }
  }
}

ipc::Swap Swap::bring_back() {
  if (own_state() == CU_PROCESS_STATE_CHECKPOINTED) {
    if (ipc::swap_of(word_.load()).memory != MemoryIs::without_room) say({MemoryIs::returning});
    const CUresult result = driver().cuCheckpointProcessRestore(getpid(), nullptr);
    if (result != CUDA_SUCCESS)
      return refused(own_state() == CU_PROCESS_STATE_FAILED ? MemoryIs::lost : MemoryIs::without_room, result);
  }
  const CUresult result = driver().cuCheckpointProcessUnlock(getpid(), nullptr);
  return result == CUDA_SUCCESS ? ipc::Swap{} : refused(MemoryIs::without_room, result);
}

void Swap::say(const ipc::Swap& swap) {
  const std::uint32_t word = ipc::pack_swap(swap);
  if (word_.exchange(word) == word) return;
  publish();
  Client::get().kick();
}

void Swap::publish() const {
  ipc::Stub* page = Client::get().stub();
  const std::uint32_t word = word_.load();
  if (page != nullptr && ipc::load(page->swap) != word) ipc::store(page->swap, word);
}

void Swap::forget_after_fork() {
  LookGate::get().forget_after_fork();
  new (this) Swap;
}

}  // namespace gpuslice
