#include "gpuctld/jobs/job_queue.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gpuctld/clock.h"
#include "sched/predictor/predictor.h"

namespace gpuctl::daemon {

using sched::CapSM;
using sched::JobState;
using sched::Time;

namespace {

/// The weights of all jobs together, in round numbers.
constexpr double kWeightOfAll = 1'000'000;

}  // namespace

JobQueue::JobQueue(std::string policy, CapSM capacity, std::uint32_t sms, KernelKnowledge& knowledge,
                   std::uint64_t& next_id)
    : policy_(std::move(policy)),
      by_stream_(sched::schedules_streams(policy_)),
      sms_(sms),
      knowledge_(knowledge),
      scheduler_(make_policy(), capacity),
      next_id_(next_id) {}

/// The policy that policy_ names, with the learnt curves of kernels, and what they take of an SM where they share each.
/// The text was checked.
std::unique_ptr<sched::JobPolicy> JobQueue::make_policy() const {
  sched::PolicyInputs inputs;
  inputs.curves = [&knowledge = knowledge_, sms = sms_](std::uint32_t kernel) { return knowledge.curve(kernel, sms); };
  if (sm_) {
    inputs.sm = sm_;
    inputs.sms = CapSM{sms_};
    inputs.blocks = [this](const sched::Job& job) { return footprint_of(job.id); };
  }
  return std::move(sched::make_job_policy(policy_, std::move(inputs)).value());
}

/// Of all that its client may be running.
sched::Footprint JobQueue::footprint_of(sched::JobId job) const {
  for (const JobSeat& seat : seats_)
    if (seat.job().id == job) return seat.at().needs.footprint();
  return {};
}

void JobQueue::renew(const std::string& policy, CapSM capacity, std::vector<Member> members,
                     std::span<const sched::NodeInput> nodes, std::uint64_t now_ns) {
  const std::optional<sched::SmLimits> sm =
      members.empty() ? sm_ : members.front().client->slots()[members.front().slot].sm;
  const bool shares_sms = sm_.has_value();
  sm_ = sm;
  if (policy != policy_ || shares_sms != sm_.has_value()) {
    policy_ = policy;
    if (by_stream_ != sched::schedules_streams(policy)) {
      for (const Member& member : members_) leave_all(member, instant(now_ns));
      by_stream_ = !by_stream_;
    }
    scheduler_.set_policy(make_policy(), instant(now_ns));
  }
  scheduler_.set_capacity(capacity);
  members_ = std::move(members);
  nodes_ = nodes;
  anything_new_ = true;
  for (const Member& member : members_) {
    Client::Slot& slot = member.client->slots()[member.slot];
    if (std::exchange(slot.queue, this) != this) slot.job = {}, slot.stream_jobs = {};
  }
  seat_members();
  for (const JobSeat& seat : seats_) scheduler_.set_priority(seat.job().id, seat.priority);
  const auto is_latest = [this](const Member& member) { return member.client == latest_; };
  if (std::none_of(members_.begin(), members_.end(), is_latest))
    latest_ = members_.empty() ? nullptr : members_.front().client;
}

void JobQueue::set_capacity(CapSM capacity) {
  anything_new_ |= capacity != scheduler_.capacity();
  scheduler_.set_capacity(capacity);
}

void JobQueue::forget(const Client& client, std::uint64_t now_ns) {
  for (const Member& member : members_)
    if (member.client == &client) leave_all(member, instant(now_ns));
  std::erase_if(members_, [&](const Member& member) { return member.client == &client; });
  seat_members();
  if (latest_ == &client) latest_ = nullptr;
}

void JobQueue::seat_members() {
  seats_.clear();
  for (const Member& member : members_) {
    seats_.push_back({member.client, member.slot, member.priority});
    for (std::uint32_t place = 0; by_stream_ && place < ipc::kStreamPlaces; ++place)
      seats_.push_back({member.client, member.slot, member.priority, place});
  }
}

void JobQueue::leave(ClientJob& job, Time now) {
  if (job.id != 0) scheduler_.complete(job.id, now);
  job = {};
  anything_new_ = true;
}

void JobQueue::leave_all(const Member& member, Time now) {
  Client::Slot& slot = member.client->slots()[member.slot];
  leave(slot.job, now);
  for (ClientJob& job : slot.stream_jobs) leave(job, now);
}

bool JobQueue::update(std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  const Time now = instant(now_ns);
  new_.clear();
  for (const JobSeat& seat : seats_) look_at(seat, now_ns);
  std::stable_sort(new_.begin(), new_.end(), [](const New& a, const New& b) { return a.arrived < b.arrived; });
  for (const New& job : new_) arrive(job);
  for (const JobSeat& seat : seats_) follow(seat, deadline, now_ns);
  if (std::exchange(anything_new_, false) || now >= decide_at_) {
    weigh();
    order_streams();
    decide_at_ = scheduler_.decide(now).again;
    if (start_those_at_work(now_ns)) decide_at_ = scheduler_.decide(now).again;
  }
  again_ns_ = decide_at_ == sched::kNever ? UINT64_MAX : static_cast<std::uint64_t>(decide_at_.count());
  for (const JobSeat& seat : seats_) {
    const ClientJob& job = seat.job();
    if (scheduler_.state(job.id) == JobState::to_run)
      again_ns_ = std::min(again_ns_, (job.given_ns != 0 ? job.given_ns : now_ns) + kComesWithinNs);
  }
  return admit();
}

/// The weight of a job is the part of the time that it is due beside the other jobs that are there now. So a slice is
/// due its part however many slices, clients and weights there are below it, and a client however many streams it has.
void JobQueue::weigh() {
  jobs_in_.assign(nodes_.size(), 0);
  for (const Member& member : members_) jobs_in_[member.client->node] += part_of(member, nullptr, {}).jobs != 0;
  const std::span<const double> parts = parts_.compute(nodes_, jobs_in_);
  for (const JobSeat& seat : seats_) {
    if (seat.job().id == 0) continue;
    const std::uint32_t jobs = part_of({seat.client, seat.slot, seat.priority}, nullptr, {}).jobs;
    scheduler_.set_weight(seat.job().id,
                          static_cast<std::uint32_t>(std::lround(parts[seat.client->node] * kWeightOfAll / jobs)));
  }
}

/// The first of a program's streams has level 0 and the others less. So a program can put a stream behind the programs
/// of equal priority, and none before them (EffiSha 6.4: nobody raises a priority without the right to).
void JobQueue::order_streams() {
  if (!by_stream_) return;
  for (const Member& member : members_) {
    const auto& jobs = member.client->slots()[member.slot].stream_jobs;
    std::int32_t first = INT16_MIN;
    for (const ClientJob& job : jobs)
      if (job.id != 0) first = std::max<std::int32_t>(first, job.level);
    for (const ClientJob& job : jobs) scheduler_.set_level(job.id, job.level - first);
  }
}

/// What the member's jobs have together. SMs that the policy leaves free (`left`) may be of no use to any job. The one
/// with the longest remaining time tries them.
SharedPart JobQueue::part_of(const Member& member, const sched::Job* longest, CapSM left) const {
  SharedPart part;
  const auto add = [&](const ClientJob& own, std::uint32_t turn) {
    const sched::Job* job = scheduler_.find(own.id);
    if (job == nullptr) return;
    ++part.jobs;
    if (job->granted.count == 0) return;
    part.granted += job == longest ? std::min(job->granted + left, job->need) : job->granted;
    part.need += job->need;
    part.turns |= turn;
  };
  const Client::Slot& slot = member.client->slots()[member.slot];
  add(slot.job, 0);
  for (std::uint32_t place = 0; by_stream_ && place < ipc::kStreamPlaces; ++place)
    add(slot.stream_jobs[place], 1u << place);
  return part;
}

bool JobQueue::admit() {
  bool changed = false;
  const std::size_t jobs = scheduler_.jobs().size();
  const sched::Job* longest = nullptr;
  CapSM left = scheduler_.capacity();
  for (const sched::Job& job : scheduler_.jobs()) {
    left -= std::min(left, job.granted);
    if (job.granted.count > 0 && job.granted < job.need && (longest == nullptr || job.remaining > longest->remaining))
      longest = &job;
  }
  for (const Member& member : members_)
    if (part_of(member, longest, left).granted.count > 0) latest_ = member.client;
  for (const Member& member : members_) {
    Client::Slot& slot = member.client->slots()[member.slot];
    const SharedPart part = part_of(member, longest, left);
    // A client alone gets all SMs, whatever it can use: no other wants them, and so it is learnt what it can use.
    const bool alone = part.jobs > 0 && part.jobs == jobs;
    const bool all = part.granted >= scheduler_.capacity() || alone || (jobs == 0 && member.client == latest_);
    const std::uint32_t admitted = all ? ipc::kUnlimited : part.granted.count;
    const std::uint32_t spread = !all && part.granted > part.need ? part.granted.count : 0;
    std::uint32_t wanted = jobs > 1 ? ipc::kReportEachJob : ipc::kReportJobs;
    if (by_stream_) wanted |= ipc::kStreamsAreJobs | part.turns << ipc::kTurnsShift;
    changed |= std::exchange(slot.admitted, admitted) != admitted;
    changed |= std::exchange(slot.spread, spread) != spread;
    changed |= (std::exchange(slot.wanted_jobs, wanted) ^ wanted) > ipc::kReportMask;
  }
  return changed;
}

std::string_view JobQueue::state(const Client::Slot& slot) const {
  std::string_view furthest = state(slot.job);
  for (const ClientJob& job : slot.stream_jobs) furthest = furthest_state(furthest, state(job));
  return furthest;
}

std::vector<ipc::StreamJob> stream_jobs(const Client::Slot& slot) {
  std::vector<ipc::StreamJob> jobs;
  for (const ClientJob& job : slot.stream_jobs)
    if (slot.queue != nullptr && job.id != 0)
      jobs.push_back({.stream = job.stream, .priority = job.level, .state = std::string(slot.queue->state(job))});
  return jobs;
}

std::string_view job_state(const Client::Slot& slot) {
  return slot.queue == nullptr ? "" : slot.queue->state(slot);
}

std::string_view job_state(const Client& client) {
  std::string_view found;
  for (const Client::Slot& slot : client.slots())
    if (const std::string_view state = job_state(slot); slot.device >= 0 && !state.empty()) found = state;
  return found;
}

}  // namespace gpuctl::daemon
