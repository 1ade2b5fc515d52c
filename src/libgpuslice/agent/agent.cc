#include "libgpuslice/agent/agent.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <ctime>
#include <thread>

#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/debug.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/driver_errors.h"
#include "libgpuslice/driver/own_threads.h"
#include "libgpuslice/driver/relaxed_capture.h"
#include "libgpuslice/driver/stage.h"
#include "libgpuslice/timeslice/channels.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::Polled;
using gpuctl::ptx::HostSlot;

namespace {

/// How often the agent looks while launches are outstanding. It limits the precision of busy_ns and demand.
constexpr std::uint64_t kTickNs = 1'000'000;
constexpr std::uint64_t kOpaqueEveryNs = 500'000;  // a query costs 1 us
/// While workers are wanted, an eviction is awaited or the program waits, the agent spins for this long, and then looks
/// this often.
constexpr std::uint64_t kSpinNs = 300'000;
constexpr std::uint64_t kShortTickNs = 50'000;
/// How long the agent keeps looking every tick after the last launch, so that a program with a launch every few
/// milliseconds does not pay a wake-up for each.
constexpr std::uint64_t kLingerNs = 100'000'000;
constexpr std::uint64_t kIdleNs = 250'000'000;
/// A query costs 1 us. The program's own calls see the error at once anyway.
constexpr std::uint64_t kFaultEveryNs = 5'000'000;
/// How late the system may end a nap of this thread; the default is 50 us.
constexpr unsigned long kTimerSlackNs = 1'000;

}  // namespace

bool Agent::start(Context& context) {
  auto* agent = new Agent(context);  // lives as long as its thread
  if (!agent->prepare()) {
    delete agent;
    return false;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([agent] {
    agent->run();
    delete agent;
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return true;
}

bool Agent::prepare() {
  const Stage stage("preparing the agent");
  if (!driver().cuMemcpyHtoDAsync_v2) return false;
  int least = 0, greatest = 0;
  if (driver().cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS) return false;
  {
    const Stage making("making the agent's streams");
    if (driver().cuStreamCreateWithPriority(&housekeeping_, CU_STREAM_NON_BLOCKING, greatest) != CUDA_SUCCESS)
      return false;
    if (!streams_.make(greatest)) return false;
  }
  const Stage mapping("mapping the grant into the GPU");
  adopt_stub_page();
  return true;
}

// Makes the workers of later launches poll the current stub page. Kernels launched before go on polling the old page,
// which run() keeps equal to the new one.
void Agent::adopt_stub_page() {
  ipc::Stub* stub = Client::get().stub();
  Polled* polled = &c_.slots_.polled();
  CUdeviceptr address = c_.slots_.polled_address();
  if (stub && c_.view_.device_index() < static_cast<int>(ipc::kMaxDevices)) {
    CUdeviceptr page = 0;
    CUresult result = driver().cuMemHostRegister_v2(stub, ipc::kStubBytes,
                                                    CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
      if (driver().cuMemHostGetDevicePointer_v2(&page, stub, 0) == CUDA_SUCCESS) {
        polled = &stub->grant[c_.view_.device_index()].polled;
        address = page + reinterpret_cast<std::byte*>(polled) - reinterpret_cast<std::byte*>(stub);
      }
    }
    if (page == 0) {
      debug("the stub page cannot be mapped into the GPU (%d): the agent copies grants", result);
      ipc::store(polled->capsm, ipc::load(stub->grant[c_.view_.device_index()].polled.capsm));
    }
  }
  std::lock_guard lock(c_.mutex_);
  if (Polled* old = c_.view_.polled(); old && old != polled) old_polled_.push_back(old);
  std::erase(old_polled_, polled);
  stub_ = stub;
  tell_time_slice_ = time_slice_us_ != 0;
  copies_ = stub && polled == &c_.slots_.polled();
  epoch_ = stub ? ipc::load(stub->grant[c_.view_.device_index()].epoch) : 0;
  c_.set_limits(*polled);
  c_.polled_address_ = address;
  c_.view_.set_polled(polled);
  granted_ = c_.view_.granted();
  c_.targets_ = Client::get().targets();
  c_.told_demand_ = 0;
  c_.told_head_ = 0;
  c_.told_part_ = 0;
  if (stub) c_.publish_usage();
}

void Agent::run() {
  this_is_an_own_thread();
  const auto in_driver = [this](const auto& step) {
    const DriverCalls::Inside call(c_.driver_calls_);
    step();
  };
  if (const CUresult result = driver().cuCtxSetCurrent(c_.context_); result != CUDA_SUCCESS) {
    debug("the agent cannot work in its context: %d; nothing is managed there", result);
    c_.end();
  }
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  relax_captures();
  last_active_ns_ = last_reap_ns_ = monotonic_ns();
  while (wait_while_held()) {
    const std::uint32_t futex_seen = c_.agent_futex_.load(std::memory_order_acquire);
    if (Client::get().stub() != stub_) in_driver([&] { adopt_stub_page(); });
    const std::uint32_t epoch_seen = stub_ ? ipc::load(stub_->grant[c_.view_.device_index()].epoch) : 0;
    if (stub_ && (copies_ || !old_polled_.empty())) {
      const std::uint32_t capsm = ipc::load(stub_->grant[c_.view_.device_index()].polled.capsm);
      if (copies_) ipc::store(c_.slots_.polled().capsm, capsm);
      for (Polled* old : old_polled_) ipc::store(old->capsm, capsm);
    }
    std::vector<TopUp> orders;
    {
      std::lock_guard lock(c_.mutex_);
      reap();
      watch_eviction(epoch_seen);
      say_if_at_work();
      orders = plan_top_ups();
      nap_ns_ = look_for_ends();
    }
    in_driver([&] { look_for_remaining(); });
    in_driver([&] { look_for_return(); });
    in_driver([&] { look_at_opaque(); });
    in_driver([&] { look_at_time_slice(); });
    in_driver([&] { look_for_fault(); });
    if (c_.ended()) continue;
    for (const TopUp& order : orders) in_driver([&] { top_up(order); });
    in_driver([&] { keep_slots(); });
    report_slow();
    sleep(futex_seen, epoch_seen);
  }
  if (Context::exiting()) finish_at_exit();
  const CUresult fault = c_.fault_.load();
  if (fault != CUDA_SUCCESS) {
    // If the driver said so of one call only, launches are still there, and nobody grants them anything any more.
    std::lock_guard lock(c_.mutex_);
    c_.let_holders_work();
  }
  c_.agent_is_.store(Context::AgentIs::kOver);
  if (fault != CUDA_SUCCESS) Client::get().report_fault(c_.view_.device_index(), fault, error_name(fault));
}

/// Returns false once the context is no longer managed.
bool Agent::wait_while_held() {
  for (;;) {
    if (c_.ended()) return false;
    const std::uint32_t futex_seen = c_.agent_futex_.load(std::memory_order_acquire);
    if (c_.agent_holds_.load() == 0) {
      c_.agent_is_.store(Context::AgentIs::kAtWork);
      if (c_.agent_holds_.load() == 0) return true;  // otherwise a thread may already have seen it held
    }
    c_.agent_is_.store(Context::AgentIs::kHeld);
    wait_for_news(futex_seen, 0, kIdleNs, false);
  }
}

/// Asks the driver for an error of the context while something runs there. After an error, threads that wait for
/// launches stop waiting.
void Agent::look_for_fault() {
  const std::uint64_t now = monotonic_ns();
  if (now - last_active_ns_ > kLingerNs || now - looked_for_fault_ns_ < kFaultEveryNs) return;
  looked_for_fault_ns_ = now;
  c_.note_result(driver().cuStreamQuery(housekeeping_));
}

/// Runs when the process exits; the exiting thread waits for it. From then on, the GPU's work continues without an
/// agent. Evicted launches get all the workers that fit, which nothing evicts any more, and resting holders are told to
/// work.
void Agent::finish_at_exit() {
  ipc::store(c_.slots_.polled().capsm, ipc::kUnlimited);
  std::vector<TopUp> orders;
  {
    // the exiting thread may have been interrupted while it held this mutex
    std::unique_lock lock(c_.mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    for (const Stream* stream : c_.active_) {
      stream->visit_heads([&](Launch& head) {
        HostSlot& host = c_.slots_.host(head.slot);
        ipc::store(host.lone, 1u);
        if (!head.issued.load(std::memory_order_acquire) || head.failed || !ipc::load(host.started) ||
            ipc::load(host.done))
          return;
        const std::uint64_t missing =
            workers_on(head, c_.view_.sms()) - std::min<std::uint64_t>(workers_on(head, c_.view_.sms()), present(head));
        if (missing == 0) return;
        head.topped_up_for = gpuctl::pack_range(c_.view_.sms(), gpuctl::kNoLimit);
        head.args.polled = c_.slots_.polled_address();
        head.args.limit = 0;
        orders.push_back({&head, static_cast<std::uint32_t>(missing)});
      });
    }
  }
  for (const TopUp& order : orders) top_up(order);
  // Workers read memory of this process even if they find nothing left to do, and that memory goes with the process.
  // Under MPS such a read would be a fault for all programs on the GPU.
  while (!own_calls_are_over() && !all_left()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

/// Whether no worker is on the GPU or on its way there.
bool Agent::all_left() {
  std::unique_lock lock(c_.mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  reap();
  grids_over_ = streams_.all_idle();
  return c_.outstanding_ == 0 && (c_.leaving_.empty() || grids_over_);
}

/// Finds out how many SMs the kernels in original form on the GPU could fill.
void Agent::look_at_opaque() {
  const std::uint64_t now = monotonic_ns();
  if (!c_.opaque_busy_.load() || now - looked_at_opaque_ns_ < kOpaqueEveryNs) return;
  looked_at_opaque_ns_ = last_active_ns_ = now;
  c_.opaque_busy_.store(false);  // a thread that launches one from here on sets it again
  Opaque::Look look;
  const std::uint32_t demand = c_.opaque_.demand(&look);
  if (demand > 0) c_.opaque_busy_.store(true);
  for (const TimedLaunch& launch : look.timed) c_.record(launch);
  std::lock_guard lock(c_.mutex_);
  if (demand == 0 && c_.opaque_busy_.load()) return;
  const bool same_job = demand > 0 && (!look.any || look.oldest.issued_ns == c_.opaque_job_.issued_ns);
  if (!same_job) c_.opaque_job_ = look.oldest;
  if (demand == c_.opaque_demand_ && same_job) return;
  c_.opaque_demand_ = demand;
  c_.publish_usage();
}

/// Where programs are time-sliced: sets how long this program's time slices last (channels.h).
void Agent::look_at_time_slice() {
  if (!stub_) return;
  ChannelGroups& groups = ChannelGroups::get();
  const std::uint32_t us = ipc::load(stub_->grant[c_.view_.device_index()].time_slice_us), made = groups.made();
  if (!tell_time_slice_ && us == time_slice_us_ && (us == 0 || made == groups_made_)) return;
  tell_time_slice_ = false;
  time_slice_us_ = us;
  groups_made_ = made;
  const TimeSliceResult result = groups.want(c_.view_.device_index(), us);
  ipc::Usage& out = stub_->usage[c_.view_.device_index()];
  ipc::store(out.time_slice_us, result.us);
  ipc::store(out.channel_groups, result.groups);
  ipc::store(out.time_slice_state, static_cast<std::uint16_t>(result.state));
  debug("time slice %u us wanted: %u us on %u channel groups, state %u, status 0x%x", us, result.us, result.groups,
        static_cast<unsigned>(result.state), result.status);
}

void Agent::keep_slots() {
  std::vector<std::uint32_t> dirty;
  bool waits = false;
  {
    std::lock_guard lock(c_.mutex_);
    waits = !c_.leaving_.empty();
    c_.slots_.age(monotonic_ns());
    if (c_.slots_.wants_zeroing()) dirty = c_.slots_.take_dirty();
  }
  if (!dirty.empty()) {
    zeroing_ = c_.slots_.zero(dirty, housekeeping_) == CUDA_SUCCESS;
    if (!zeroing_) {
      debug("zeroing launch blocks failed: nothing is managed in this context any more");
      c_.end();
    }
  }
  grids_over_ = waits && streams_.all_idle();
  if (!zeroing_ || driver().cuStreamQuery(housekeeping_) != CUDA_SUCCESS) return;
  zeroing_ = false;
  std::lock_guard lock(c_.mutex_);
  c_.slots_.zeroed();
  c_.changed_.notify_all();
}

// For a user who looks for a launch that does not end: writes what is known of each stream's oldest launch to the debug
// file, once a second.
void Agent::report_slow() {
  const std::uint64_t now = monotonic_ns();
  if (now - reported_ns_ < 1'000'000'000) return;
  reported_ns_ = now;
  if (debugging()) c_.opaque_.report_slow();
  std::lock_guard lock(c_.mutex_);
  for (const Stream* stream : c_.active_) {
    const Launch& head = *stream->outstanding.front();
    if (now - head.issued_ns < 1'000'000'000) continue;
    const HostSlot& host = c_.slots_.host(head.slot);
    debug(
        "%s waits for %llu ms: total %u, claimed %u, chunk %u, workers %u of %u left, %u entered later, started %u, "
        "done %u, issued %d, "
        "granted %u, allowed %u, %zu behind it",
        head.instance->kernel->name.c_str(), static_cast<unsigned long long>((now - head.issued_ns) / 1'000'000),
        head.args.total, ipc::load(host.progress), head.chunk, ipc::load(host.left), head.launched,
        ipc::load(host.entered), ipc::load(host.started), ipc::load(host.done), head.issued.load(), c_.view_.granted(),
        gpuctl::range_size(c_.allowed(*stream)), stream->outstanding.size() - 1);
  }
}

// Sleeps until the daemon or the launch path has news, or until the next look.
void Agent::sleep(std::uint32_t futex_seen, std::uint32_t epoch_seen) {
  const std::uint64_t now = monotonic_ns();
  if (evicting_ || wants_workers_ || c_.waiting_for_agent_.load(std::memory_order_relaxed) > 0) {
    if (busy_since_ns_ == 0) busy_since_ns_ = now;
    if (now - busy_since_ns_ < kSpinNs) {
      std::this_thread::yield();
      return;
    }
  } else {
    busy_since_ns_ = 0;
  }
  std::uint64_t timeout = std::min(kTickNs, nap_ns_);
  if (busy_since_ns_ != 0) timeout = std::min(kShortTickNs, nap_ns_);
  const bool idle = now - last_active_ns_ > kLingerNs;
  if (idle) {
    timeout = kIdleNs;
    c_.agent_asleep_.store(true, std::memory_order_seq_cst);
    std::lock_guard lock(c_.mutex_);
    if (c_.outstanding_ > 0) timeout = 0;
  }
  if (timeout > 0) wait_for_news(futex_seen, epoch_seen, timeout, stub_ != nullptr);
  c_.agent_asleep_.store(false, std::memory_order_relaxed);
}

void Agent::wait_for_news(std::uint32_t futex_seen, std::uint32_t epoch_seen, std::uint64_t timeout_ns,
                          bool epoch_counts) {
#ifndef SYS_futex_waitv
  constexpr long SYS_futex_waitv = 449;
#endif
  struct futex_waitv waiters[2] = {};
  waiters[0].val = futex_seen;
  waiters[0].uaddr = reinterpret_cast<std::uintptr_t>(&c_.agent_futex_);
  waiters[0].flags = FUTEX_32;
  unsigned count = 1;
  if (epoch_counts) {
    waiters[1].val = epoch_seen;
    waiters[1].uaddr = reinterpret_cast<std::uintptr_t>(&stub_->grant[c_.view_.device_index()].epoch);
    waiters[1].flags = FUTEX_32;
    count = 2;
  }
  const std::uint64_t until = monotonic_ns() + timeout_ns;
  timespec deadline{static_cast<time_t>(until / 1'000'000'000u), static_cast<long>(until % 1'000'000'000u)};
  if (syscall(SYS_futex_waitv, waiters, count, 0, &deadline, CLOCK_MONOTONIC) < 0 && errno == ENOSYS) {
    // Linux before 5.16 has no futex_waitv: looks every tick instead.
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns, kTickNs)));
  }
}

}  // namespace gpuslice
