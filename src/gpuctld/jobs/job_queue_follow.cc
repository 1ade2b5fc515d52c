// The part of a JobQueue that follows what clients report: which jobs come and end, and how far each is.
#include <algorithm>
#include <cmath>
#include <utility>

#include "gpuctld/clock.h"
#include "gpuctld/jobs/job_queue.h"
#include "sched/predictor/predictor.h"

namespace gpuctl::daemon {

using sched::CapSM;
using sched::JobState;
using sched::Time;

namespace {

/// The launch of a client that has demand but reports none.
constexpr std::uint64_t kUnknownLaunch = UINT64_MAX;
}  // namespace

/// Finds whether the member's job is over and another one is there.
void JobQueue::look_at(const Member& member, std::uint64_t now_ns) {
  ClientJob& job = member.job();
  const std::optional<ipc::Head> head = member.client->head(member.slot, now_ns);
  const bool unknown = !head && member.at().demand != 0;
  const std::uint64_t launch = head ? head->launch : unknown ? kUnknownLaunch : 0;
  if (job.launch == launch) return;
  const bool was_idle = job.id == 0;
  if (const sched::Job* over = scheduler_.find(job.id)) note_used(member, *over, now_ns);
  leave(job, instant(now_ns));
  // A launch that waited behind an earlier one of the same client arrives when that one is over.
  if (launch != 0) new_.push_back({member, head, instant(head && was_idle ? head->issued_ns : now_ns)});
}

void JobQueue::arrive(const New& arrived) {
  const Member& member = arrived.member;
  const std::optional<ipc::Head>& head = arrived.head;
  ClientJob& job = member.job();
  const std::uint32_t uid = member.client->identity().uid;
  sched::BurstWork& burst = member.at().burst;
  burst.comes(member.client->bursts_ended(member.slot), head ? head->kernel : 0);
  job = {.id = ++next_id_, .launch = head ? head->launch : kUnknownLaunch, .inherits = member.at().written > 0};
  sched::Arrival arrival{.id = job.id,
                         .owner = reinterpret_cast<std::uintptr_t>(member.client),
                         .kernel = KernelKnowledge::kNoId,
                         .priority = member.priority,
                         .need = CapSM{sms_},
                         .predicted = kUnknownDuration,
                         .eviction = kUnknownEviction};
  if (head && head->total > 0)  // of a launch in original form: no block takes more than an SM
    arrival.need = CapSM{std::clamp((head->total + head->per_sm - 1) / head->per_sm, 1u, sms_)};
  if (head && head->original != 0) {
    job.original = true;
    job.known = knowledge_.knows_duration(uid, head->kernel);
    arrival.predicted = knowledge_.predict(uid, *head, sms_);
  } else if (head) {
    arrival.kernel = knowledge_.id(uid, head->kernel);
    arrival.predicted = knowledge_.predict(uid, *head, sms_);
    arrival.eviction = knowledge_.eviction(uid, head->kernel);
  }
  if (head) job.unclaimed = arrival.predicted;
  job.takes = arrival.predicted;
  arrival.behind = job.behind = burst.behind(job.takes);
  arrival.predicted += job.behind;
  scheduler_.arrive(arrival, arrived.arrived);
  anything_new_ = true;
}

/// Tells the scheduler whether its decisions took hold, and how far the job is.
void JobQueue::follow(const Member& member, std::chrono::nanoseconds deadline, std::uint64_t now_ns) {
  const Client::Slot& slot = member.at();
  ClientJob& own = member.job();
  const sched::Job* job = scheduler_.find(own.id);
  if (job == nullptr) return;
  const Time now = instant(now_ns);
  if (slot.written == 0) own.given_ns = 0, own.inherits = false;
  if (job->state == JobState::to_run && at_work(member, *job, now_ns)) {
    scheduler_.started(job->id, now);
    anything_new_ = true;
  }
  const bool client_has_left =
      slot.written == 0 && (!slot.held.pending() || member.client->overdue(member.slot, deadline, now_ns));
  if (job->state == JobState::to_evict && client_has_left) {
    scheduler_.evicted(job->id, now);
    anything_new_ = true;
  }
  follow_progress(member, *job, now_ns);
}

/// The time since the last look, in which the member's job may have run.
void JobQueue::note_used(const Member& member, const sched::Job& job, std::uint64_t now_ns) {
  ClientJob& own = member.job();
  if (job.state == JobState::running && own.seen_ns != 0) {
    const std::uint32_t usable = std::min(job.need.count, sms_);
    const auto elapsed = static_cast<double>((instant(now_ns) - instant(own.seen_ns)).count());
    const Time ran{std::llround(elapsed * knowledge_.speed(job.kernel, job.granted.count, usable, sms_))};
    own.ran += ran;
    member.at().burst.used(ran);
  }
  own.seen_ns = now_ns;
}

void JobQueue::follow_progress(const Member& member, const sched::Job& job, std::uint64_t now_ns) {
  ClientJob& own = member.job();
  const Time now = instant(now_ns);
  note_used(member, job, now_ns);
  const auto left = [&](Time of_launch) { scheduler_.observe(job.id, of_launch + own.behind, now); };
  // Work of unknown length is expected to go on for as long as it has gone on so far.
  if (own.launch == kUnknownLaunch || !own.known) left(std::max(kUnknownDuration, own.ran));
  if (own.original) {
    // A launch in original form: what is left of its prediction. Once it is late: as long as it has been late so far.
    if (own.known) left(std::chrono::abs(own.takes - own.ran));
    return;
  }
  const std::optional<ipc::Head> head = member.client->head(member.slot, now_ns);
  if (!head || head->launch != own.launch || head->claimed <= own.claimed) {
    // Time alone finishes no block-task. A launch whose workers do not progress would seem to be over, and would get
    // even fewer SMs. A claim that is only late should not change all grants, so this waits until nothing would be
    // left.
    if (job.remaining <= own.behind && own.unclaimed > Time{0}) left(own.unclaimed);
    return;
  }
  own.claimed = head->claimed;
  own.unclaimed = sched::corrected_remaining(own.takes, own.ran, head->claimed, head->total);
  left(own.unclaimed);
  // Launches that wait behind this one go on with its grant.
  if (head->claimed < head->total || member.at().outstanding > 1) return;
  own.tail = true;
  scheduler_.tail(job.id, now);
  anything_new_ = true;
}

/// A time slice counts from when the job's workers are there, not from when the client is told, because the client must
/// launch them first. A client that had a grant when the launch was issued launched its workers with it.
bool JobQueue::at_work(const Member& member, const sched::Job& job, std::uint64_t now_ns) const {
  const Client::Slot& slot = member.at();
  ClientJob& own = member.job();
  if (slot.written == 0) return false;
  if (own.given_ns == 0) own.given_ns = now_ns;
  if (own.inherits || own.launch == kUnknownLaunch || own.original || now_ns - own.given_ns >= kComesWithinNs)
    return true;
  return 2 * slot.holding >= std::min({slot.written, job.need.count, slot.demand});
}

/// Reports jobs as started that the latest decision allowed to run and that are at work already. True if there is one.
bool JobQueue::start_those_at_work(std::uint64_t now_ns) {
  bool any = false;
  for (const Member& member : members_) {
    const sched::Job* job = scheduler_.find(member.job().id);
    if (job == nullptr || job->state != JobState::to_run || !at_work(member, *job, now_ns)) continue;
    scheduler_.started(job->id, instant(now_ns));
    any = true;
  }
  return any;
}

}  // namespace gpuctl::daemon
