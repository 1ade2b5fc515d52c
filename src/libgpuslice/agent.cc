#include "libgpuslice/agent.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <thread>

#include "libgpuslice/client.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;
using gpuctl::ptx::DeviceSlot;
using gpuctl::ptx::HostSlot;
using gpuctl::ptx::LaunchArgs;

namespace {

/// Grids that run at the same time for launches that were evicted and go on; a further one queues behind one of them.
constexpr std::size_t kStreams = 4;
/// While launches are outstanding the agent looks this often; it is what the precision of busy_ns and demand hangs on.
constexpr std::uint64_t kTickNs = 1'000'000;
/// While workers are wanted, an eviction is awaited or the program waits: spin so long, then look so often.
constexpr std::uint64_t kSpinNs = 300'000;
constexpr std::uint64_t kShortTickNs = 50'000;
/// After the last launch the agent keeps ticking so long, so that a program with a launch every few milliseconds pays
/// no wake-up for each.
constexpr std::uint64_t kLingerNs = 100'000'000;
constexpr std::uint64_t kIdleNs = 250'000'000;

std::uint32_t log2_bucket(std::uint64_t microseconds, std::size_t buckets) {
  if (microseconds == 0) return 0;
  return std::min<std::uint32_t>(std::bit_width(microseconds) - 1, static_cast<std::uint32_t>(buckets) - 1);
}

template <class T>
void add(T& counter, T more) {
  ipc::store(counter, static_cast<T>(counter + more));  // one writer: this thread
}

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
  if (!driver().cuMemcpyHtoDAsync_v2) return false;
  int least = 0, greatest = 0;
  if (driver().cuCtxGetStreamPriorityRange(&least, &greatest) != CUDA_SUCCESS) return false;
  auto make = [&](CUstream& stream) {
    return driver().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, greatest) == CUDA_SUCCESS;
  };
  if (!make(housekeeping_)) return false;
  streams_.resize(kStreams);
  for (CUstream& stream : streams_) {
    if (!make(stream)) return false;
  }
  adopt_stub_page();
  return true;
}

void Agent::wake(std::atomic<std::uint32_t>& futex) { syscall(SYS_futex, &futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

// Makes the words of the current stub page those that workers poll. A kernel launched before goes on polling the old
// word, which is then kept equal to the new one by run().
void Agent::adopt_stub_page() {
  ipc::Stub* stub = Client::get().stub();
  std::uint32_t* word = &c_.slots_.word(0);  // always unlimited
  CUdeviceptr address = c_.slots_.word_address(0);
  if (stub && c_.device_index_ < static_cast<int>(ipc::kMaxDevices)) {
    CUdeviceptr page = 0;
    CUresult result = driver().cuMemHostRegister_v2(stub, ipc::kStubBytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) {
      if (driver().cuMemHostGetDevicePointer_v2(&page, stub, 0) == CUDA_SUCCESS) {
        word = &stub->grant[c_.device_index_].capsm;
        address = page + reinterpret_cast<std::byte*>(word) - reinterpret_cast<std::byte*>(stub);
      }
    }
    if (page == 0) {
      debug("the stub page cannot be mapped into the GPU (%d): the agent copies grants", result);
      mirror_ = &c_.slots_.word(Slots::kWords - 1);
      word = mirror_;
      address = c_.slots_.word_address(Slots::kWords - 1);
    }
  }
  if (c_.grant_word_ && c_.grant_word_.load() != word && c_.grant_word_.load() != &c_.slots_.word(0)) old_words_.push_back(c_.grant_word_);
  std::lock_guard lock(c_.mutex_);
  stub_ = stub;
  epoch_ = stub ? ipc::load(stub->grant[c_.device_index_].epoch) : 0;
  c_.grant_address_ = address;
  c_.grant_word_.store(word, std::memory_order_release);
  c_.targets_ = Client::get().targets();
  c_.told_demand_ = 0;
  if (stub) c_.publish_usage();
}

void Agent::run() {
  if (driver().cuCtxSetCurrent(c_.context_) != CUDA_SUCCESS) return;
  last_active_ns_ = last_reap_ns_ = monotonic_ns();
  while (!c_.gone_.load(std::memory_order_acquire)) {
    const std::uint32_t futex_seen = c_.agent_futex_.load(std::memory_order_acquire);
    if (Client::get().stub() != stub_) adopt_stub_page();
    const std::uint32_t epoch_seen = stub_ ? ipc::load(stub_->grant[c_.device_index_].epoch) : 0;
    if (stub_ && (mirror_ || !old_words_.empty())) {
      const std::uint32_t capsm = ipc::load(stub_->grant[c_.device_index_].capsm);
      if (mirror_) ipc::store(*mirror_, capsm);
      for (std::uint32_t* word : old_words_) ipc::store(*word, capsm);
    }
    std::vector<TopUp> orders;
    {
      std::lock_guard lock(c_.mutex_);
      reap();
      watch_eviction(epoch_seen);
      orders = plan_top_ups();
    }
    for (const TopUp& order : orders) top_up(order);
    keep_slots();
    report_slow();
    sleep(futex_seen, epoch_seen);
  }
}

void Agent::reap() {
  const std::uint64_t now = monotonic_ns();
  if (c_.outstanding_ > 0) {
    if (ipc::Usage* out = c_.usage()) add(out->busy_ns, now - last_reap_ns_);
    last_active_ns_ = now;
  }
  last_reap_ns_ = now;

  bool heads_changed = false;
  for (Stream* stream : c_.active_) {
    while (!stream->outstanding.empty()) {
      Launch& head = *stream->outstanding.front();
      if (!head.issued.load(std::memory_order_acquire)) break;
      if (!head.failed && !ipc::load(c_.slots_.host(head.slot).done)) break;
      if (head.failed) {
        c_.slots_.give_back(head.slot, false);
      } else {
        complete(head, now);
        c_.leaving_.push_back(std::move(stream->outstanding.front()));
      }
      stream->outstanding.pop_front();
      --c_.outstanding_;
      heads_changed = true;
    }
  }
  if (heads_changed) {
    std::erase_if(c_.active_, [](const Stream* stream) { return stream->outstanding.empty(); });
    std::erase_if(c_.orphans_, [](const auto& stream) { return stream->outstanding.empty(); });
    if (!c_.active_.empty()) c_.divide_among_streams();
    c_.changed_.notify_all();
  }
  // Even without a change: progress lowers demand.
  if (heads_changed || !c_.active_.empty()) c_.publish_usage();
  std::erase_if(c_.leaving_, [&](const std::unique_ptr<Launch>& launch) {
    if (ipc::load(c_.slots_.host(launch->slot).left) != launch->launched) return false;
    c_.slots_.give_back(launch->slot, true);
    return true;
  });
}

void Agent::complete(const Launch& launch, std::uint64_t now) {
  const HostSlot& host = c_.slots_.host(launch.slot);
  Instance& instance = *launch.instance;
  if (const std::uint32_t task_ns = ipc::load(host.task_ns)) {
    instance.task_ns = instance.task_ns == 0 ? task_ns : 0.75 * instance.task_ns + 0.25 * task_ns;
    instance.kernel->task_ns = static_cast<std::uint32_t>(instance.task_ns);
  }
  ipc::Usage* out = c_.usage();
  if (!out) return;
  const auto done_ns = static_cast<std::int64_t>(ipc::load(host.done_ns));
  clock_offset_ns_ = std::min(clock_offset_ns_, static_cast<std::int64_t>(now) - done_ns);
  const std::int64_t latency = done_ns + clock_offset_ns_ - static_cast<std::int64_t>(launch.issued_ns);
  const auto latency_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(latency, 0));
  add<std::uint64_t>(out->launches, 1);
  add<std::uint64_t>(out->block_tasks, launch.args.total);
  ipc::store(out->latency_ns_last, latency_ns);
  add(out->latency_us_log2[log2_bucket(latency_ns / 1000, std::size(out->latency_us_log2))], 1u);
}

// Follows the grant: learns when a shrink holds on the GPU, for the daemon and the user. How long that took is measured
// by the GPU itself (HostSlot::left_ns), because workers are usually gone before this thread wakes up.
void Agent::watch_eviction(std::uint32_t epoch_seen) {
  if (!stub_) return;
  const ipc::Grant& grant = stub_->grant[c_.device_index_];
  ipc::Usage& out = stub_->usage[c_.device_index_];
  const std::uint32_t capsm = std::min(ipc::load(grant.capsm), ipc::kUnlimited);
  if (epoch_seen != epoch_) {
    evicting_ = evicting_ || capsm < capsm_;
    if (capsm != capsm_) grant_changed_ns_ = monotonic_ns();
    epoch_ = epoch_seen;
    capsm_ = capsm;
    decided_ns_ = ipc::load(grant.decided_ns);
    c_.divide_if_shared();
  }
  std::uint32_t holding = 0;
  bool above = false;
  std::int64_t latest_left = 0;
  for (const Stream* stream : c_.active_) {
    const Launch& head = *stream->outstanding.front();
    const HostSlot& host = c_.slots_.host(head.slot);
    latest_left = std::max(latest_left, static_cast<std::int64_t>(ipc::load(host.left_ns)));
    if (!ipc::load(host.started) || ipc::load(host.done)) continue;
    const std::uint32_t present = head.launched - std::min(head.launched, ipc::load(host.left));
    holding += (present + head.args.per_sm - 1) / head.args.per_sm;
    const std::uint64_t allowed = std::uint64_t{std::min(capsm, ipc::load(c_.slots_.word(stream->word)))} * head.args.per_sm;
    above = above || present > std::max<std::uint64_t>(allowed, 1);  // the holder stays
  }
  ipc::store(out.holding, std::min(holding, c_.sms_));
  if (evicting_ && above) return;
  if (evicting_ && latest_left > 0 && clock_offset_ns_ != INT64_MAX) {
    const std::int64_t took = latest_left + clock_offset_ns_ - static_cast<std::int64_t>(decided_ns_);
    if (took > 0) record_eviction(out, static_cast<std::uint64_t>(took));
  }
  evicting_ = false;
  ipc::store(out.applied_epoch, epoch_);
}

void Agent::record_eviction(ipc::Usage& out, std::uint64_t took_ns) {
  add<std::uint64_t>(out.evictions, 1);
  ipc::store(out.evict_ns_last, took_ns);
  add(out.evict_ns_sum, took_ns);
  if (took_ns > out.evict_ns_max) ipc::store(out.evict_ns_max, took_ns);
  add(out.evict_us_log2[log2_bucket(took_ns / 1000, std::size(out.evict_us_log2))], 1u);
}

// New workers obey the limit that the launch's holder last polled, so they are added only after it has had the time to take
// up a new grant; under the old one they would leave at once.
std::vector<Agent::TopUp> Agent::plan_top_ups() {
  std::vector<TopUp> orders;
  const std::uint64_t now = monotonic_ns();
  wants_workers_ = false;
  const std::uint32_t granted = c_.granted();
  if (granted == 0) return orders;
  for (const Stream* stream : c_.active_) {
    Launch& head = *stream->outstanding.front();
    const HostSlot& host = c_.slots_.host(head.slot);
    if (head.failed || !head.issued.load(std::memory_order_acquire) || ipc::load(host.done)) continue;
    const std::uint32_t capsm = std::min(granted, ipc::load(c_.slots_.word(stream->word)));
    const std::uint64_t allowed = std::uint64_t{capsm} * head.args.per_sm;
    const std::uint32_t claimed = std::min(ipc::load(host.progress), head.args.total);
    const std::uint64_t chunks = (std::uint64_t{head.args.total - claimed} + head.args.chunk - 1) / head.args.chunk;
    const std::uint64_t target = std::min(allowed, chunks);
    const std::uint32_t present = head.launched - std::min(head.launched, ipc::load(host.left));
    if (target <= present) continue;
    if (!ipc::load(host.started)) continue;  // its turn in the stream has not come
    wants_workers_ = true;
    if (now < grant_changed_ns_ + polled_after_ns(head, present)) continue;
    orders.push_back({.launch = &head, .workers = static_cast<std::uint32_t>(target) - present});
  }
  return orders;
}

CUstream Agent::idle_stream() {
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    CUstream stream = streams_[(next_stream_ + i) % streams_.size()];
    if (driver().cuStreamQuery(stream) != CUDA_SUCCESS) continue;
    next_stream_ = (next_stream_ + i + 1) % streams_.size();
    return stream;
  }
  return streams_[next_stream_++ % streams_.size()];
}

/// How long after a change of the grant the holder of a launch has read it: a rest, if it is alone, else one chunk and
/// a half.
std::uint64_t Agent::polled_after_ns(const Launch& launch, std::uint32_t present) {
  constexpr std::uint64_t kRest = 10'000;
  constexpr std::uint64_t kUnknown = 100'000;  // block-tasks not measured yet
  if (present <= 1) return kRest;
  const double task_ns = launch.instance->task_ns;
  return task_ns > 0 ? static_cast<std::uint64_t>(1.5 * task_ns * launch.args.chunk) + kRest : kUnknown;
}

// Only the agent deletes launches, so `launch` lives without the mutex.
void Agent::top_up(const TopUp& order) {
  Launch& launch = *order.launch;
  CUstream stream = idle_stream();
  std::vector<std::byte> params = launch.params;
  LaunchArgs args = launch.args;
  args.flags |= gpuctl::ptx::kAgentGrid;
  args.pollers = 0;
  std::memcpy(params.data() + launch.instance->kernel->args_offset, &args, sizeof args);
  const CUresult result = Context::issue(launch, stream, order.workers, params);
  if (result != CUDA_SUCCESS) {
    debug("adding %u workers to %s failed: %d", order.workers, launch.instance->kernel->name.c_str(), result);
    return;
  }
  std::lock_guard lock(c_.mutex_);
  launch.launched += order.workers;
}

void Agent::keep_slots() {
  std::vector<std::uint32_t> dirty;
  {
    std::lock_guard lock(c_.mutex_);
    if (c_.slots_.wants_zeroing()) dirty = c_.slots_.take_dirty();
  }
  if (!dirty.empty()) {
    zeroing_ = c_.slots_.zero(dirty, housekeeping_) == CUDA_SUCCESS;
    if (!zeroing_) debug("zeroing launch blocks failed: they stay out of use");
  }
  if (!zeroing_ || driver().cuStreamQuery(housekeeping_) != CUDA_SUCCESS) return;
  zeroing_ = false;
  std::lock_guard lock(c_.mutex_);
  c_.slots_.zeroed();
  c_.changed_.notify_all();
}

// For whoever looks for a launch that does not end: what is known of each one, every second.
void Agent::report_slow() {
  const std::uint64_t now = monotonic_ns();
  if (now - reported_ns_ < 1'000'000'000) return;
  reported_ns_ = now;
  std::lock_guard lock(c_.mutex_);
  for (const Stream* stream : c_.active_) {
    const Launch& head = *stream->outstanding.front();
    if (now - head.issued_ns < 1'000'000'000) continue;
    const HostSlot& host = c_.slots_.host(head.slot);
    debug("%s waits for %llu ms: total %u, claimed %u, chunk %u, workers %u of %u left, started %u, done %u, issued %d, "
          "granted %u, stream limit %u, %zu behind it",
          head.instance->kernel->name.c_str(), static_cast<unsigned long long>((now - head.issued_ns) / 1'000'000), head.args.total,
          ipc::load(host.progress), head.args.chunk, ipc::load(host.left), head.launched, ipc::load(host.started),
          ipc::load(host.done), head.issued.load(), c_.granted(), ipc::load(c_.slots_.word(stream->word)),
          stream->outstanding.size() - 1);
  }
}

// Sleeps until the daemon or the launch path has news, or it is time to look again.
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
  std::uint64_t timeout = kTickNs;
  if (busy_since_ns_ != 0) timeout = kShortTickNs;
  const bool idle = now - last_active_ns_ > kLingerNs;
  if (idle) {
    timeout = kIdleNs;
    c_.agent_asleep_.store(true, std::memory_order_seq_cst);
    std::lock_guard lock(c_.mutex_);
    if (c_.outstanding_ > 0) timeout = 0;
  }
  if (timeout > 0) wait_for_news(futex_seen, epoch_seen, timeout);
  c_.agent_asleep_.store(false, std::memory_order_relaxed);
}

void Agent::wait_for_news(std::uint32_t futex_seen, std::uint32_t epoch_seen, std::uint64_t timeout_ns) {
#ifndef SYS_futex_waitv
  constexpr long SYS_futex_waitv = 449;
#endif
  struct futex_waitv waiters[2] = {};
  waiters[0].val = futex_seen;
  waiters[0].uaddr = reinterpret_cast<std::uintptr_t>(&c_.agent_futex_);
  waiters[0].flags = FUTEX_32;
  unsigned count = 1;
  if (stub_) {
    waiters[1].val = epoch_seen;
    waiters[1].uaddr = reinterpret_cast<std::uintptr_t>(&stub_->grant[c_.device_index_].epoch);
    waiters[1].flags = FUTEX_32;
    count = 2;
  }
  const std::uint64_t until = monotonic_ns() + timeout_ns;
  timespec deadline{static_cast<time_t>(until / 1'000'000'000u), static_cast<long>(until % 1'000'000'000u)};
  if (syscall(SYS_futex_waitv, waiters, count, 0, &deadline, CLOCK_MONOTONIC) < 0 && errno == ENOSYS) {
    // Kernels before 5.16: look every tick instead.
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(timeout_ns, kTickNs)));
  }
}

}  // namespace gpuslice
