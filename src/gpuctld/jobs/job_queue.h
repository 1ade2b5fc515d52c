// The clients that take turns on one device under one policy for jobs: those in, or below, one slice that has such a
// policy. What a client reports about its launches becomes jobs of a sched::Scheduler; what that grants becomes the
// most that the device's allocator may give each client (Client::Slot::admitted). So SMs change hands the way they do
// under `share`: nobody gets any before who had them has left.
//
// A client is one job on a device, its oldest outstanding launch: the next one is another job of the same owner. One in
// original form cannot be evicted: without a grant the client starts no other. A client that has demand but tells of no
// launch, and a launch in original form of a kernel that was never timed, is a job of unknown length. While nobody has
// anything outstanding, whoever ran last keeps the device, so that its next launch needs no decision.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpuctld/clients/client.h"
#include "gpuctld/jobs/kernel_knowledge.h"
#include "sched/temporal/scheduler.h"

namespace gpuctl::daemon {

class JobQueue {
 public:
  struct Member {
    Client* client;
    std::size_t slot;
    std::int32_t priority;
    std::uint32_t weight;
  };

  /// `policy`: "name:option=value", which was checked. `capacity`: what the slice may have at most; `sms`: the
  /// device's. `next_id` counts the jobs of all queues.
  JobQueue(std::string policy, sched::CapSM capacity, std::uint32_t sms, KernelKnowledge& knowledge,
           std::uint64_t& next_id);

  /// Clients or settings changed. Jobs of members that stay go on, also under another policy.
  void renew(const std::string& policy, sched::CapSM capacity, std::vector<Member> members, std::uint64_t now_ns);

  /// The client is about to go.
  void forget(const Client& client, std::uint64_t now_ns);

  /// Reads what the members say, decides who runs, and says so in Client::Slot::admitted. True if that changed.
  bool update(std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// When to call update() at the latest, CLOCK_MONOTONIC; UINT64_MAX: no hurry.
  std::uint64_t again_ns() const { return again_ns_; }

  /// "waiting", "evicted", "to-run", "running" or "to-evict"; "idle" without a job.
  std::string_view state(const Client::Slot& slot) const;

 private:
  std::unique_ptr<sched::JobPolicy> make_policy() const;
  struct New {
    const Member* member;
    std::optional<ipc::Head> head;
    sched::Time arrived;
  };
  void leave(Client::Slot& slot, sched::Time now);
  void look_at(const Member& member, std::uint64_t now_ns);
  void arrive(const New& job);
  void follow(const Member& member, std::chrono::nanoseconds deadline, std::uint64_t now_ns);
  bool at_work(Client::Slot& slot, const sched::Job& job, std::uint64_t now_ns) const;
  bool start_those_at_work(std::uint64_t now_ns);
  bool admit();

  std::string policy_;
  std::uint32_t sms_;
  KernelKnowledge& knowledge_;
  sched::Scheduler scheduler_;
  std::uint64_t& next_id_;
  std::vector<Member> members_;
  std::vector<New> new_;
  const Client* latest_ = nullptr;  ///< who ran last
  /// Since the latest decision: policies are asked after events, not whenever somebody looks.
  bool anything_new_ = true;
  sched::Time decide_at_ = sched::kNever;  ///< and at this instant
  std::uint64_t again_ns_ = UINT64_MAX;
};

/// state() of the slot's queue; "" when it takes no turns.
std::string_view job_state(const Client::Slot& slot);
/// The same of the latest of the client's devices that has one.
std::string_view job_state(const Client& client);

}  // namespace gpuctl::daemon
