// The clients that take turns on one device under one policy for jobs: those in or below one slice that has such a
// policy. What a client reports about its launches becomes jobs of a sched::Scheduler. The grants of these jobs become
// the most that the device's allocator may give each client (Client::Slot::admitted). So SMs change hands as under
// `share`: no client gets them before the client that had them has left.
//
// A client is one job on a device: its oldest outstanding launch. The next launch is another job of the same owner. How
// long a job takes counts what is expected behind it in its burst (sched/temporal/burst_work.h), so that all of it is
// one application. A launch in original form cannot be evicted; without a grant its client starts no other. A job has
// unknown length if the client has demand but reports no launch, or if it is a launch in original form of a kernel that
// was never timed. While no client has anything outstanding, the one that ran last keeps the device, so that its next
// launch needs no decision.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpuctld/clients/client.h"
#include "gpuctld/jobs/kernel_knowledge.h"
#include "sched/effective/weight_parts.h"
#include "sched/temporal/scheduler.h"

namespace gpuctl::daemon {

/// A job that was given SMs counts as at work after this time, even if its client does not say that workers are there.
inline constexpr std::uint64_t kComesWithinNs = 1'000'000;

class JobQueue {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
    std::int32_t priority;

    ClientSlot& at() const { return client->slots()[slot]; }
    ClientJob& job() const { return at().job; }
  };

  /// `policy`: "name:option=value", already checked. `capacity`: the most that the slice may have; `sms`: the device's.
  /// `next_id` counts the jobs of all queues.
  JobQueue(std::string policy, sched::CapSM capacity, std::uint32_t sms, KernelKnowledge& knowledge,
           std::uint64_t& next_id);

  /// Clients or settings changed. Jobs of members that stay go on, even under another policy. `nodes`: of the tree,
  /// valid until the next call.
  void renew(const std::string& policy, sched::CapSM capacity, std::vector<Member> members,
             std::span<const sched::NodeInput> nodes, std::uint64_t now_ns);

  const std::vector<Member>& members() const { return members_; }

  /// What the slice may have now, if all of its programs had what they ask for.
  void set_capacity(sched::CapSM capacity);

  /// Called when the client is about to go.
  void forget(const Client& client, std::uint64_t now_ns);

  /// Reads what the members report, decides which jobs run, and writes that to Client::Slot::admitted. True if that
  /// changed.
  bool update(std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// The latest time to call update(), CLOCK_MONOTONIC; UINT64_MAX: no hurry.
  std::uint64_t again_ns() const { return again_ns_; }

  /// "waiting", "evicted", "to-run", "running" or "to-evict"; "idle" without a job.
  std::string_view state(const Client::Slot& slot) const;

 private:
  std::unique_ptr<sched::JobPolicy> make_policy() const;
  struct New {
    Member member;
    std::optional<ipc::Head> head;
    sched::Time arrived;
  };
  void leave(ClientJob& job, sched::Time now);
  void look_at(const Member& member, std::uint64_t now_ns);
  void arrive(const New& job);
  void follow(const Member& member, std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  void note_used(const Member& member, const sched::Job& job, std::uint64_t now_ns);
  void follow_progress(const Member& member, const sched::Job& job, std::uint64_t now_ns);
  bool at_work(const Member& member, const sched::Job& job, std::uint64_t now_ns) const;
  bool start_those_at_work(std::uint64_t now_ns);
  void weigh();
  bool admit();

  std::string policy_;
  std::uint32_t sms_;
  KernelKnowledge& knowledge_;
  sched::Scheduler scheduler_;
  std::uint64_t& next_id_;
  std::vector<Member> members_;
  std::span<const sched::NodeInput> nodes_;
  sched::WeightParts parts_;
  std::vector<std::uint32_t> jobs_in_;  ///< scratch of weigh(): by node
  std::vector<New> new_;
  const Client* latest_ = nullptr;  ///< the client that ran last
  /// Since the latest decision. Policies are asked after events, not at every update().
  bool anything_new_ = true;
  sched::Time decide_at_ = sched::kNever;  ///< the policy is also asked at this instant
  std::uint64_t again_ns_ = UINT64_MAX;
};

/// state() of the slot's queue; "" if it takes no turns.
std::string_view job_state(const Client::Slot& slot);
/// The state on the last of the client's devices that has one.
std::string_view job_state(const Client& client);

}  // namespace gpuctl::daemon
