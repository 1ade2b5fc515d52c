// One attached program: its stub page, what was granted to it, and what it reports. No I/O except on the stub page.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpuctld/clients/grant_history.h"
#include "gpuctld/clients/held_capsm.h"
#include "gpuctld/clients/in_force.h"
#include "ipc/stub_map.h"
#include "ipc/types.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Kernels remembered per client, and bytes of each of their texts. They bound what a program that makes kernels
/// without end costs the daemon.
inline constexpr std::size_t kMaxKernels = 4096;
inline constexpr std::size_t kMaxKernelText = 1024;

class JobQueue;

/// What a policy for jobs schedules for a client on a device: the client's oldest outstanding launch.
struct ClientJob {
  std::uint64_t id = 0;                  ///< of the job; 0: nothing is outstanding
  std::uint64_t launch = 0;              ///< ipc::Head::launch
  std::uint32_t claimed = 0;             ///< block-tasks claimed, as last told to the policy
  std::chrono::nanoseconds unclaimed{};  ///< time that those not claimed then take, on the whole device
  std::chrono::nanoseconds ran{};        ///< time it ran, converted to time with all the SMs it can use
  std::uint64_t seen_ns = 0;             ///< instant up to which `ran` counts
  bool inherits = false;                 ///< its client had a grant already when it came
  std::uint64_t given_ns = 0;            ///< since when its client has a grant; 0: it has none
  bool tail = false;                     ///< all its block-tasks are claimed: it runs to its end even without a grant
  bool original = false;                 ///< ipc::Head::original: its progress is not known
  bool known = true;                     ///< there is a prediction for its kernel
  bool operator==(const ClientJob&) const = default;
};

struct ClientIdentity {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::string command;
};

class Client {
 public:
  /// Entry i of `devices` is the daemon's index of the program's device i, or -1 if the daemon does not manage that
  /// device; then it is not limited.
  static Result<Client> create(ClientIdentity identity, std::string slice, std::vector<int> devices);

  /// One device of the client, in the client's order.
  struct Slot {
    int device = -1;            ///< the daemon's index, -1: not managed
    std::uint32_t decided = 0;  ///< CapSM, as the next two
    std::uint32_t demand = 0;   ///< as last read, bounded by the device; so is the next
    std::uint32_t holding = 0;
    std::uint32_t outstanding = 0;  ///< launches, as last read
    std::uint64_t launches = 0;     ///< as last read
    std::uint64_t work_ns = 0;      ///< when it was last seen to have something to run or to have launched something
    /// The grant in the stub page: `decided`, except in a handover, in a storm, or while nothing is in force.
    std::uint32_t written = 0;
    std::uint32_t idle = 0;  ///< as in the stub page; so is the next
    std::uint32_t time_slice_us = 0;
    /// Bytes of memory it was last granted, or reported to hold; 0 while nothing limits it.
    std::uint64_t promised = 0;
    std::uint32_t epoch = 0;  ///< the daemon's own copy, because the client can write to the page
    HeldCapsm held;
    GrantHistory history;            ///< of `written`, without what is taken from a job's tail
    std::uint64_t last_done_ns = 0;  ///< end of the latest launch that it reported
    JobQueue* queue = nullptr;       ///< in which it takes turns; null: no policy for jobs
    ClientJob job;
    std::uint32_t admitted = ipc::kUnlimited;  ///< the most CapSM that its policy for jobs lets it have
    std::uint32_t wanted_jobs = ipc::kNoJobs;  ///< Grant::jobs
    std::uint32_t flags = 0;                   ///< Grant::flags
    InForce in_force = InForce::nothing;       ///< kFree is set for `nothing`
    bool latest = false;                       ///< it had demand when any client of the device last had
    bool disobeying = false;
    bool faulted = false;              ///< its context is broken: what the page says of its work does not count
    std::uint32_t faulted_demand = 0;  ///< what the page said then; another demand ends the fault
    std::uint64_t obeyed_ns = 0;       ///< when it was last seen to hold no more than its grant

    bool busy() const { return demand != 0 || outstanding != 0; }
    /// Its demand, as far as its policy for jobs admits it.
    std::uint32_t admitted_demand() const { return std::min(demand, admitted); }
    /// The most that it may be using while it is busy.
    std::uint32_t may_use() const { return std::max(written, held.most()); }
  };

  /// Reads what the client reports about its devices. About device d nothing above `sms[d]` is believed. True if a
  /// demand changed.
  bool read_usage(const std::vector<std::uint32_t>& sms, std::uint64_t now_ns);

  /// The driver broke the client's context there. The client counts as idle until its demand changes.
  void fault(std::size_t slot);

  /// Writes a grant and wakes the client. The order of the stores is the contract of ipc/stub.h.
  void write_grant(std::size_t slot, std::uint32_t capsm, std::uint32_t idle, std::uint64_t now_ns);

  /// Writes Grant::idle alone; wakes nobody.
  void write_idle(std::size_t slot, std::uint32_t idle);
  /// The same for Grant::first.
  void write_first(std::size_t index, std::uint32_t first);
  /// The same for Grant::reserve.
  void write_reserve(std::size_t slot, std::uint32_t reserve);
  /// The same for kAlone.
  void write_alone(std::size_t slot, bool alone);
  /// The same for kFree.
  void write_in_force(std::size_t slot, InForce what);
  /// The same for Stub::guaranteed_sms.
  void write_guaranteed(std::size_t slot, std::uint32_t sms);
  /// The same for kReportWork.
  void write_report_work(std::size_t slot, bool on);
  /// The same for Grant::jobs.
  void write_jobs(std::size_t slot, std::uint32_t wanted);

  /// The launch that the client reports as its oldest, bounded to what is possible; empty if there is none or it is
  /// being written.
  std::optional<ipc::Head> head(std::size_t slot, std::uint64_t now_ns) const;
  /// Appends the launches that ended since the last call to `records`: at most ipc::kRecords. Their times are not
  /// checked.
  void take_records(std::vector<ipc::Record>& records);

  /// Writes the client's memory limit, in bytes; none: nothing limits it.
  void write_memory_limit(std::size_t slot, std::optional<std::uint64_t> bytes);

  /// Bytes of the device's memory that it holds, or may hold by what it was granted; at most `size`.
  std::uint64_t memory(std::size_t slot, std::uint64_t size) const;

  /// Whether a shrink is still not applied `deadline` and the longest block-task seen after it was written.
  bool overdue(std::size_t slot, std::chrono::nanoseconds deadline, std::uint64_t now_ns) const;

  /// True at the moment when the client is found to hold more than its grant past the deadline. Then false until a
  /// shrink is applied or it holds no more than its grant.
  bool check_deadline(std::size_t slot, std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// Remembers kernels that are new or changed, within the bounds above.
  void report(std::vector<ipc::Kernel> kernels);

  /// For a client whose process has ended: what is left of it on the GPU may use all SMs, so it runs to its end. Grants
  /// that are written later do not reach the page.
  void open_grants();

  void set_priority(std::int32_t priority, ipc::PriorityBand band, std::uint64_t now_ns);
  /// Grant::time_slice_us.
  void set_time_slice(std::size_t slot, std::uint32_t us, std::uint64_t now_ns);
  /// What the client reports became of it.
  ipc::TimeSlice time_slice(std::size_t slot) const;

  ipc::ClientUsage usage(std::size_t slot) const;
  std::vector<ipc::Kernel> kernels() const;
  /// With the usage of every managed device. `job`: the state of its job, if it takes turns.
  ipc::Client describe(std::string_view job = {}) const;
  bool busy() const;  ///< any demand or launch outstanding

  /// What is in force for it on the first of its devices where anything is.
  std::string_view in_force() const;

  const ClientIdentity& identity() const { return identity_; }
  const std::string& slice() const { return slice_; }
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }
  int memfd() const { return memfd_.get(); }

  std::uint32_t node = 0;            ///< index of the slice in the current SliceTree::nodes()
  std::optional<std::int32_t> hint;  ///< priority that the program asked for, within what the slice allows

 private:
  Client() = default;
  void write_flag(std::size_t slot, std::uint32_t flag, bool on);
  bool past(std::uint64_t since_ns, std::chrono::nanoseconds deadline, std::uint64_t now_ns) const;

  ClientIdentity identity_;
  std::string slice_;
  ipc::UniqueFd memfd_;
  ipc::StubMap stub_;
  std::vector<Slot> slots_;
  std::int32_t priority_ = 0;
  ipc::PriorityBand band_;
  bool opened_ = false;  ///< open_grants()
  std::uint64_t longest_task_ns_ = 0;
  std::uint32_t records_read_ = 0;                                      ///< the daemon's own copy
  std::map<std::pair<std::string, std::string>, ipc::Kernel> kernels_;  ///< by module and name
};

}  // namespace gpuctl::daemon
