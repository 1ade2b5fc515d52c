#include "gpuctld/clients/client.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ipc/message.h"
#include "sched/latency/isolation_record.h"

namespace gpuctl::daemon {

namespace {

/// The names of ipc::TimeSlice, by value.
constexpr const char* kTimeSliceNames[] = {"not tried", "in force", "no channel groups", "refused"};

std::int64_t bounded(std::uint64_t value) {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max()));
}

double microseconds(std::uint64_t ns) {
  return static_cast<double>(ns) / 1000.0;
}

template <std::size_t N>
std::vector<std::int64_t> read_histogram(const std::uint32_t (&buckets)[N]) {
  std::vector<std::int64_t> result;
  result.reserve(N);
  for (const std::uint32_t& bucket : buckets) result.push_back(ipc::load(bucket));
  return result;
}

/// Short beside the window in which latencies are shown.
constexpr std::chrono::milliseconds kLatenciesEvery{200};

/// What an allocation takes beside its bytes, at most, rounding included.
constexpr std::size_t kOfAllocation = 32;

/// What a string has outside of itself. A short one has nothing (std::string keeps it inside).
std::size_t bytes_of(const std::string& text) {
  return text.size() <= std::string().capacity() ? 0 : text.size() + kOfAllocation;
}

/// The memory that the daemon has for a kernel, the entry of the map with its key included.
std::size_t bytes_of(const ipc::Kernel& kernel) {
  constexpr std::size_t kOfEntry = sizeof(std::pair<std::string, std::string>) + sizeof kernel + 4 * sizeof(void*);
  return kOfEntry + kOfAllocation + 2 * (bytes_of(kernel.name) + bytes_of(kernel.module)) + bytes_of(kernel.form) +
         bytes_of(kernel.reason);
}

bool past(std::uint64_t since_ns, std::chrono::nanoseconds time, std::uint64_t now_ns) {
  return now_ns >= since_ns + static_cast<std::uint64_t>(time.count());
}

void open_all(ipc::Stub& stub, std::size_t devices) {
  Polled::Limit none = kNoLimit;
  for (std::size_t i = 0; i < devices; ++i) {
    Polled& polled = stub.grant[i].polled;
    for (Polled::Limit& limit : polled.limits) __atomic_store(&limit, &none, __ATOMIC_RELEASE);
    ipc::store(polled.capsm, ipc::kUnlimited);
  }
}

void cut(std::string& text) {
  if (text.size() > kMaxKernelText) text = ipc::to_utf8(text.substr(0, kMaxKernelText));
}

}  // namespace

Result<Client> Client::create(ClientIdentity identity, std::string slice, std::vector<int> devices) {
  auto page = ipc::NewStub::create();
  if (!page) return page.error();
  return create(std::move(identity), std::move(slice), std::move(devices), std::move(*page));
}

Result<Client> Client::create(ClientIdentity identity, std::string slice, std::vector<int> devices, ipc::NewStub page) {
  if (devices.size() > ipc::kMaxDevices) return fail("more devices than fit");
  page.begin(static_cast<std::uint32_t>(devices.size()), static_cast<std::uint32_t>(identity.pid));
  Client client;
  client.identity_ = std::move(identity);
  client.program_ = sched::program_of(client.identity_.command);
  client.slice_ = std::move(slice);
  client.memfd_ = std::move(page.fd);
  client.stub_ = std::move(page.map);
  ipc::store(client.stub_->daemon_alive, 1u);
  // Who comes with its memory on the host has it there by an earlier daemon, and takes it back when there is room.
  client.swap_ = ipc::swap_of(ipc::load(client.stub_->swap));
  if (client.swap_.on_host()) client.want_swapped(true);
  client.taken_.resize(devices.size());
  client.latencies_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    client.slots_.emplace_back().device = devices[i];
    if (devices[i] < 0) ipc::store(client.stub_->grant[i].polled.capsm, ipc::kUnlimited);
  }
  return client;
}

bool Client::read_usage(const std::vector<std::uint32_t>& sms, std::uint64_t now_ns) {
  bool changed = false;
  // What it did not do while it was held up is not held against it.
  if (lease_.look(ipc::load(stub_->beat), now_ns))
    for (Slot& slot : slots_) slot.obeyed_ns = now_ns;
  const bool silent = this->silent();
  swap_ = ipc::swap_of(ipc::load(stub_->swap));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    if (slot.device < 0) continue;
    const ipc::Usage& usage = stub_->usage[i];
    const std::uint32_t most = slot.most_of(sms[static_cast<std::size_t>(slot.device)]);
    const std::uint32_t said = ipc::load(usage.demand), demand = std::min(said, most);
    if (slot.faulted) {
      slot.faulted = said == 0 || said == slot.faulted_demand;
      if (said == 0) slot.faulted_demand = 0;
      if (slot.faulted) continue;
    }
    slot.holding = std::min(ipc::load(usage.holding), most);
    slot.original = std::min(ipc::load(ipc::latency_at(*stub_.get(), i).original), most);
    slot.outstanding = ipc::load(usage.outstanding);
    std::uint32_t wanted = demand;
    if (ipc::load(usage.memory) != 0 || now_ns >= slot.inherited_until_ns) slot.inherited_memory = 0;
    if (slot.inherited != 0) {
      const bool follows = ipc::load(usage.applied_epoch) != 0 || demand != 0 || slot.outstanding != 0;
      if (follows || now_ns >= slot.inherited_until_ns)
        slot.inherited = 0;
      else
        slot.outstanding = 1, wanted = std::min(slot.inherited, most);
    }
    if (silent) {
      slot.outstanding = std::max(slot.outstanding, std::uint32_t{wanted != 0});  // it may be using what it had
      wanted = 0;
    }
    if (swap_.has_left()) wanted = 0;  // its calls wait; while it leaves its kernels still run
    changed |= wanted != slot.demand;
    slot.demand = wanted;
    const std::uint64_t launches = ipc::load(usage.launches);
    slot.rate.saw(launches, now_ns);
    const bool works = slot.busy() && !silent && slot.inherited == 0;
    if (std::exchange(slot.launches, launches) != launches || works) slot.work_ns = now_ns;
    const HeldCapsm before = slot.held;
    if ((slot.epoch != 0 && slot.held.heard(ipc::load(usage.applied_epoch), slot.epoch, slot.written)) ||
        (before.pending() && !slot.busy())) {
      slot.disobeying = false;
      slot.leaving.note(std::chrono::nanoseconds(now_ns - before.since_ns()), options_->longest_block_task);
    }
    if (slot.inherited == 0 && !slot.held.pending()) slot.doubtful = false;
    if (slot.busy()) continue;
    slot.held.rest();
    slot.disobeying = false;
  }
  return changed;
}

void Client::read_latencies(std::uint64_t now_ns, bool at_once, const TakeLatencies& take) {
  if (!at_once && !past(latencies_ns_, kLatenciesEvery, now_ns)) return;
  latencies_ns_ = now_ns;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].device < 0) continue;
    if (const auto more = latencies_[i].look(ipc::latency_at(*stub_.get(), i), now_ns)) take(slots_[i].device, *more);
  }
}

WorkMeter::Counted Client::counted(std::size_t index) const {
  const ipc::Usage& usage = stub_->usage[index];
  const ipc::LatencyCounts& bursts = ipc::latency_at(*stub_.get(), index);
  return {.bursts = ipc::load(bursts.bursts_ended),
          .burst_ns = ipc::load(bursts.burst_ns),
          .launches = ipc::load(usage.launches),
          .evictions = ipc::load(usage.evictions)};
}

LaunchCounts Client::take_counts() {
  LaunchCounts sum;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].device < 0) continue;
    const WorkMeter::Counted there = counted(i);
    const LaunchCounts now{bounded(there.launches), bounded(there.evictions)};
    sum += now.since(std::exchange(taken_[i], now));
  }
  return sum;
}

void Client::inherit(std::size_t index, const Promise& promise, std::uint32_t capsm, std::uint64_t now_ns,
                     std::uint64_t until_ns) {
  Slot& slot = slots_[index];
  slot.inherited = promise.sms;
  slot.written = capsm;
  slot.doubtful = true;
  slot.held.wrote(promise.sms, capsm, slot.epoch + 1, now_ns);  // the first grant that it sees here
  slot.inherited_memory = promise.memory;
  slot.recorded = slot.to_record = promise;
  slot.inherited_until_ns = until_ns;
}

void Client::fault(std::size_t index) {
  Slot& slot = slots_[index];
  slot.faulted = true;
  slot.faulted_demand = ipc::load(stub_->usage[index].demand);
  slot.demand = slot.holding = slot.outstanding = 0;
  slot.latest = slot.disobeying = false;
  slot.held.rest();
}

void Client::write_grant(std::size_t index, std::uint32_t capsm, std::uint32_t idle, std::uint64_t now_ns) {
  Slot& slot = slots_[index];
  ipc::Grant& grant = stub_->grant[index];
  ++slot.epoch;
  if (slot.busy())
    slot.held.wrote(slot.written, capsm, slot.epoch, now_ns);
  else
    slot.held.rest();
  slot.written = capsm;
  if (capsm > 0) slot.had = capsm;
  if (capsm > 0 || !slot.job.tail) slot.history.wrote(capsm, now_ns);
  slot.idle = idle;
  slot.unannounced = false;
  ipc::store(grant.idle, idle);
  ipc::store(grant.decided_ns, now_ns);
  if (!opened_) ipc::store(grant.polled.capsm, capsm);
  ipc::store(grant.epoch, slot.epoch);
  ipc::futex_wake(grant.epoch);
}

bool Client::begun_with(std::size_t index, std::uint32_t capsm, std::uint64_t now_ns) {
  Slot& slot = slots_[index];
  const ipc::Usage& usage = stub_->usage[index];
  if (slot.faulted || silent() || (ipc::load(usage.demand) == 0 && ipc::load(usage.outstanding) == 0)) return false;
  slot.held.wrote(capsm, slot.written, slot.epoch, now_ns);
  return true;
}

void Client::open_grants() {
  opened_ = true;
  open_all(*stub_.get(), slots_.size());
}

void LeftPage::open_grants() {
  open_all(*stub.get(), devices);
}

void Client::write_grant_if_new(std::size_t index, std::uint32_t capsm, std::uint32_t idle, std::uint64_t now_ns) {
  Slot& slot = slots_[index];
  if (slot.inherited != 0) capsm = std::max(capsm, slot.written);
  if (capsm != slot.written || slot.epoch == 0 || slot.unannounced) return write_grant(index, capsm, idle, now_ns);
  if (idle == slot.idle) return;
  slot.idle = idle;
  ipc::store(stub_->grant[index].idle, idle);
}

void Client::go_by(const DaemonOptions& options) {
  options_ = &options;
  ipc::store(stub_->settled_ahead_ms, static_cast<std::uint32_t>(options.settled_ahead.count()));
}

std::uint32_t Terms::flags() const {
  return ipc::pack_band(band) | ipc::pack_mode(mode) | (memory_max || memory_high ? ipc::kMemoryLimited : 0) |
         (alone ? ipc::kAlone : 0) | (reports_work ? ipc::kReportWork : 0) | (settled ? ipc::kSettled : 0) |
         (held ? ipc::kHeld : 0);
}

void Client::write_terms(std::size_t index, const Terms& terms) {
  Slot& slot = slots_[index];
  ipc::Grant& grant = stub_->grant[index];
  if (slot.epoch != 0 && terms == slot.terms) return;
  slot.unannounced |= terms.priority != slot.terms.priority || terms.band != slot.terms.band ||
                      terms.time_slice_us != slot.terms.time_slice_us;
  if (!terms.memory_max) slot.promised = 0;
  slot.terms = terms;
  ipc::store(grant.priority, terms.priority);
  ipc::store(grant.time_slice_us, terms.time_slice_us);
  ipc::store(grant.jobs, terms.jobs);
  ipc::store(grant.reserve, terms.reserve);
  ipc::store(grant.first, terms.first);
  ipc::store(grant.memory_max, terms.memory_max.value_or(terms.memory_high ? ipc::kNoMemoryMax : 0));
  ipc::store(stub_->guaranteed_sms[index], terms.guaranteed);
  ipc::store(grant.flags, terms.flags());
}

std::string_view Client::in_force() const {
  for (const Slot& slot : slots_)
    if (slot.device >= 0 && slot.terms.in_force != InForce::nothing) return name_of(slot.terms.in_force);
  return name_of(InForce::nothing);
}

std::uint64_t Client::memory(std::size_t index, std::uint64_t size) const {
  const Slot& slot = slots_[index];
  if (is_swapped()) return 0;
  return std::min(std::max({slot.promised, slot.inherited_memory, ipc::load(stub_->usage[index].memory)}), size);
}

bool Client::overdue(std::size_t index, std::chrono::nanoseconds deadline, std::uint64_t now_ns) const {
  const Slot& slot = slots_[index];
  if (slot.inherited != 0 || !slot.held.pending() || !past(slot.held.since_ns(), deadline, now_ns)) return false;
  // Seen and said, both. Kernels in original form take long to leave too, but others need not wait for their end: their
  // blocks follow those that end.
  std::chrono::nanoseconds said{};
  for (const auto& [key, kernel] : kernels_) said = std::max(said, std::chrono::nanoseconds(kernel.block_task_ns));
  const std::chrono::nanoseconds most = options_->longest_block_task;
  return past(slot.held.since_ns(), deadline + std::min({slot.leaving.longest(), said, most}), now_ns);
}

bool Client::check_deadline(std::size_t index, std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  Slot& slot = slots_[index];
  if (slot.inherited != 0 || !slot.held.pending()) return false;
  if (slot.holding <= slot.written) {  // nothing to give back, whatever epoch it has applied
    slot.disobeying = false;
    slot.obeyed_ns = now_ns;
    return false;
  }
  if (slot.disobeying || silent() ||
      !past(std::max(slot.held.since_ns(), slot.obeyed_ns), deadline + options_->longest_block_task,
            lease_.alive_ns(now_ns)))
    return false;
  return slot.disobeying = true;
}

void Client::report(std::vector<ipc::Kernel> kernels, std::size_t room) {
  for (ipc::Kernel& kernel : kernels) {
    cut(kernel.name);
    cut(kernel.module);
    cut(kernel.form);
    cut(kernel.reason);
    auto key = std::pair(kernel.module, kernel.name);
    const auto found = kernels_.find(key);
    const std::size_t before = found != kernels_.end() ? bytes_of(found->second) : 0, after = bytes_of(kernel);
    if (after > before && kernel_text_ - before + after > room) continue;
    if (found != kernels_.end())
      found->second = std::move(kernel);
    else if (kernels_.size() < kMaxKernels)
      kernels_.emplace(std::move(key), std::move(kernel));
    else
      continue;
    kernel_text_ += after - before;
  }
}

ipc::TimeSlice Client::time_slice(std::size_t index) const {
  const std::uint16_t state = ipc::load(stub_->usage[index].time_slice_state);
  return state <= static_cast<std::uint16_t>(ipc::TimeSlice::refused) ? ipc::TimeSlice{state}
                                                                      : ipc::TimeSlice::not_tried;
}

ipc::ClientUsage Client::usage(std::size_t index) const {
  const Slot& slot = slots_[index];
  const ipc::Usage& shared = stub_->usage[index];
  ipc::ClientUsage result;
  result.device = slot.device;
  result.granted = slot.most_of(slot.decided);
  result.demand = slot.demand;
  // Workers leave by themselves; their program does not say so while it is stopped.
  result.holding = silent() ? std::min(slot.holding, slot.written) : slot.holding;
  result.outstanding = slot.outstanding;
  result.launches = bounded(ipc::load(shared.launches));
  result.block_tasks = bounded(ipc::load(shared.block_tasks));
  const std::uint64_t evictions = ipc::load(shared.evictions);
  result.evictions = bounded(evictions);
  result.evict_us_last = microseconds(ipc::load(shared.evict_ns_last));
  result.evict_us_mean =
      evictions == 0 ? 0 : microseconds(ipc::load(shared.evict_ns_sum)) / static_cast<double>(evictions);
  result.evict_us_max = microseconds(ipc::load(shared.evict_ns_max));
  result.busy_us = bounded(ipc::load(shared.busy_ns) / 1000);
  result.memory = bounded(ipc::load(shared.memory));
  if (const std::uint64_t swapped = this->swapped(index); swapped > 0) result.swapped = std::exchange(result.memory, 0);
  const ipc::TimeSlice time_slice = this->time_slice(index);
  result.in_force = name_of(slot.terms.in_force);
  result.mode = ipc::name_of(slot.terms.mode);
  result.common_sms = slot.terms.common_sms;
  result.sms_told = std::min(ipc::load(stub_->told_sms[index]), kMaxSms);
  result.mps_sms = slot.mps_sms;
  result.priority_rank = slot.terms.band.rank;
  result.priorities = slot.terms.band.count;
  result.time_slice = kTimeSliceNames[static_cast<std::size_t>(time_slice)];
  if (time_slice == ipc::TimeSlice::in_force) result.time_slice_us = ipc::load(shared.time_slice_us);
  result.channel_groups = ipc::load(shared.channel_groups);
  result.latency_us_last = microseconds(ipc::load(shared.latency_ns_last));
  result.latency_us_log2 = read_histogram(shared.latency_us_log2);
  result.evict_us_log2 = read_histogram(shared.evict_us_log2);
  result.latency = latencies_[index].describe();
  if (const std::int64_t before = taken_[index].launches; before > 0)
    result.launches_before = std::min(before, result.launches);
  if (const std::int64_t before = taken_[index].evictions; before > 0)
    result.evictions_before = std::min(before, result.evictions);
  return result;
}

std::vector<ipc::Kernel> Client::kernels() const {
  std::vector<ipc::Kernel> result;
  result.reserve(kernels_.size());
  for (const auto& [key, kernel] : kernels_) result.push_back(kernel);
  return result;
}

bool Client::busy() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.busy(); });
}

ipc::Client Client::describe(std::string_view job) const {
  ipc::Client result;
  result.pid = identity_.pid;
  result.uid = identity_.uid;
  result.command = identity_.command;
  result.slice = slice_;
  result.isolated = isolated;
  result.swap_now = swap_now();
  bool disobeying = false, waiting = false, faulted = false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (slot.device < 0) continue;
    result.usage.push_back(usage(i));
    disobeying |= slot.disobeying;
    faulted |= slot.faulted;
    waiting |=
        slot.demand != 0 && slot.decided == 0 && slot.terms.common_sms == 0 && slot.terms.in_force != InForce::nothing;
  }
  result.state = silent()                                ? "silent"
                 : disobeying                            ? "disobeying"
                 : faulted                               ? "faulted"
                 : swap_.memory != ipc::MemoryIs::on_gpu ? "swapped"
                 : !job.empty()                          ? std::string(job)
                 : waiting                               ? "waiting"
                 : busy()                                ? "running"
                                                         : "idle";
  return result;
}

}  // namespace gpuctl::daemon
