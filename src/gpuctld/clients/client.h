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
#include "gpuctld/clients/client_slot.h"
#include "gpuctld/clients/latencies.h"
#include "gpuctld/clients/launch_counts.h"
#include "gpuctld/clients/lease.h"
#include "gpuctld/protocol/process.h"
#include "ipc/stub_map.h"
#include "ipc/swap.h"
#include "ipc/types.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Kernels remembered per client, and bytes of each of their texts. They bound what a program that makes kernels
/// without end costs the daemon.
inline constexpr std::size_t kMaxKernels = 4096;
inline constexpr std::size_t kMaxKernelText = 1024;
/// Bytes that all kernels of a client take here.
inline constexpr std::size_t kMaxKernelTextOfClient = 4u << 20;

struct ClientIdentity {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  std::string command;
  std::uint64_t start = 0;  ///< of the process (process.h)

  ProcessIdentity process() const { return {pid, start, uid}; }
};

/// What is kept of a client that is gone: its page, and nothing else of what it made the daemon remember.
struct LeftPage {
  std::int32_t pid = 0;
  std::uint32_t uid = 0;
  ipc::StubMap stub;
  std::size_t devices = 0;

  /// What is left of the client on its GPUs may use all SMs, so it runs to its end.
  void open_grants();
};

class Client {
 public:
  /// Entry i of `devices` is the daemon's index of the program's device i, or -1 if the daemon does not manage that
  /// device; then it is not limited.
  static Result<Client> create(ClientIdentity identity, std::string slice, std::vector<int> devices, ipc::NewStub page);
  /// With a page that nobody else has yet.
  static Result<Client> create(ClientIdentity identity, std::string slice, std::vector<int> devices);

  /// One device of the client.
  using Slot = ClientSlot;

  /// Reads what the client reports about its devices, and whether it lives. About device d nothing above `sms[d]` is
  /// believed. True if a demand changed, or what its workers take of an SM.
  bool read_usage(const std::vector<std::uint32_t>& sms, std::uint64_t now_ns);

  /// Calls `take(device, more)` with the latencies that the page has counted since the last call, by the daemon's
  /// device, if that call was some time ago or `at_once`.
  using TakeLatencies = std::function<void(int device, const ClientLatency::More& more)>;
  void read_latencies(std::uint64_t now_ns, bool at_once, const TakeLatencies& take);

  /// How many bursts have ended there, whether the program names requests or not. Counts up, and wraps.
  std::uint32_t bursts_ended(std::size_t slot) const {
    return static_cast<std::uint32_t>(ipc::load(ipc::latency_at(*stub_.get(), slot).bursts_ended));
  }
  /// Whether the client says that a burst of its goes on there.
  bool in_burst(std::size_t slot) const { return ipc::load(ipc::latency_at(*stub_.get(), slot).open) != 0; }

  /// Whether it is held (ipc::kHeld) and says that it has nothing left there.
  bool is_still(std::size_t slot) const {
    return slots_[slot].terms.held && ipc::load(ipc::latency_at(*stub_.get(), slot).still) != 0;
  }

  /// What its page has counted there.
  WorkMeter::Counted counted(std::size_t slot) const;

  /// What its page has counted on all devices since the last call. It is of the slice that the client was in meanwhile.
  LaunchCounts take_counts();

  /// The driver broke the client's context there. The client counts as idle until its demand changes.
  void fault(std::size_t slot);

  /// The program may have what an earlier daemon promised, and keeps `capsm` of that: its grant is no less, and it
  /// counts as busy if it may have any SMs, until its page shows that it follows this daemon, or until the instant. Its
  /// memory counts until the page shows what it holds, or until then.
  void inherit(std::size_t slot, const Promise& promise, std::uint32_t capsm, std::uint64_t now_ns,
               std::uint64_t until_ns);

  /// Writes a grant and wakes the client. The order of the stores is the contract of ipc/stub.h.
  void write_grant(std::size_t slot, std::uint32_t capsm, std::uint32_t idle, std::uint64_t now_ns);

  /// The same, if the grant differs from what the page says or if write_terms() changed what the client must look at.
  /// If only `idle` differs it is written alone, and nobody is woken.
  void write_grant_if_new(std::size_t slot, std::uint32_t capsm, std::uint32_t idle, std::uint64_t now_ns);

  /// For a client that was idle when its grant was written: whether it has begun since it was last read. Then it may be
  /// using what it had, `capsm`, until it says that it has left.
  bool begun_with(std::size_t slot, std::uint32_t capsm, std::uint64_t now_ns);

  /// Writes what differs from the page. Wakes nobody: the next write_grant_if_new() does, where that is needed.
  void write_terms(std::size_t slot, const Terms& terms);

  /// Goes by these from now on, which outlive it, and writes those that its page has.
  void go_by(const DaemonOptions& options);

  /// The launch that the client reports as its oldest, bounded to what is possible; empty if there is none or it is
  /// being written.
  std::optional<ipc::Head> head(std::size_t slot, std::uint64_t now_ns) const;
  /// Appends the launches that ended since the last call to `records`: at most ipc::kRecords. Their times are not
  /// checked.
  void take_records(std::vector<ipc::Record>& records);
  bool has_records() const { return ipc::load(stub_->records_written) != records_read_; }

  /// Whether its memory is to be on the host (ipc/swap.h). Writes the page.
  void want_swapped(bool wanted);
  bool wanted_swapped() const { return swap_wanted_; }
  /// What it says of that, as last read.
  const ipc::Swap& swap() const { return swap_; }
  /// Its memory is on the host, and not promised to it.
  bool is_swapped() const { return swap_wanted_ && swap_.memory == ipc::MemoryIs::on_host; }
  /// Bytes of its memory on the device that are on the host; 0 where none is.
  std::uint64_t swapped(std::size_t slot) const;
  /// Where its memory is while it is not simply on the GPU, for people.
  std::optional<std::string> swap_now() const;
  struct SwapNews {
    const char* event;
    std::string text;
  };
  /// What changed since it was last told; once a second at most.
  std::optional<SwapNews> swap_news(std::uint64_t now_ns);

  /// Bytes of the device's memory that it holds, or may hold by what it was granted; at most `size`.
  std::uint64_t memory(std::size_t slot, std::uint64_t size) const;

  /// Its lease has expired: it has no demand and no job, and is not found to disobey. What it may be using counts until
  /// its deadline has passed, as ever.
  bool silent() const { return lease_.expired(options_->lease); }

  /// Whether a shrink is still not applied `deadline` and the client's own time after it was written: the longest time
  /// that it was lately seen to take, as far as it also says that its block-tasks take so long.
  bool overdue(std::size_t slot, std::chrono::nanoseconds deadline, std::uint64_t now_ns) const;

  /// True at the moment when the client, alive, is found to hold more than its grant past the deadline and the most
  /// time that anybody has. Then false until a shrink is applied or it holds no more than its grant.
  bool check_deadline(std::size_t slot, std::chrono::nanoseconds deadline, std::uint64_t now_ns);

  /// Remembers kernels that are new or changed, within the bounds above and as long as they all take no more than
  /// `room` bytes.
  void report(std::vector<ipc::Kernel> kernels, std::size_t room = kMaxKernelTextOfClient);
  /// Bytes that its kernels take here.
  std::size_t kernel_text() const { return kernel_text_; }

  /// For a client whose process has ended: what is left of it on the GPU may use all SMs, so it runs to its end. Grants
  /// that are written later do not reach the page.
  void open_grants();

  /// Whether the client says that its process is about to end or to become another program.
  bool leaving() const { return ipc::load(stub_->leaving) != 0; }

  /// The client is gone; nothing else may be called after that.
  LeftPage leave() { return {identity_.pid, identity_.uid, std::move(stub_), slots_.size()}; }

  /// What the client reports became of Grant::time_slice_us.
  ipc::TimeSlice time_slice(std::size_t slot) const;

  ipc::ClientUsage usage(std::size_t slot) const;
  std::vector<ipc::Kernel> kernels() const;
  /// With the usage of every managed device. `job`: the state of its job, if it takes turns.
  ipc::Client describe(std::string_view job = {}) const;
  bool busy() const;  ///< any demand or launch outstanding

  /// What is in force for it on the first of its devices where anything is.
  std::string_view in_force() const;

  const ClientIdentity& identity() const { return identity_; }
  /// As what is learnt of programs names it (sched::program_of).
  const std::string& program() const { return program_; }
  const std::string& slice() const { return slice_; }
  /// It goes on in another one.
  void move_to(std::string slice) { slice_ = std::move(slice); }
  /// In the client's order.
  std::vector<Slot>& slots() { return slots_; }
  const std::vector<Slot>& slots() const { return slots_; }
  int memfd() const { return memfd_.get(); }

  bool isolated = false;  ///< the program says that it shares no context with others than those of its slice
  std::string mps;        ///< and in which MPS of the daemon's own it is (MpsPlaces); "": in none of those
  /// Found by the scheduler: none: that of all that are not apart; "": its own; else that of the MPS of this name.
  std::optional<std::string> context;
  bool keeps_mps = false;  ///< its user has said where it is to look for MPS, and it was not led to another one
  /// No program is attached: this stands in for one that an earlier daemon granted SMs to.
  bool stands_in = false;
  bool waits_for_room = false;       ///< its memory is to come back, and others hold too much
  std::uint32_t node = 0;            ///< index of the slice in the current SliceTree::nodes()
  std::uint64_t names_told_ns = 0;   ///< when its kernels were last looked through for names
  std::optional<std::int32_t> hint;  ///< priority that the program asked for, within what the slice allows

 private:
  Client() = default;
  std::optional<SwapNews> news_since(const ipc::Swap& before, bool waited) const;

  ClientIdentity identity_;
  std::string program_, slice_;
  ipc::UniqueFd memfd_;
  ipc::StubMap stub_;
  std::vector<Slot> slots_;
  std::vector<LaunchCounts> taken_;       ///< by slot: by take_counts()
  std::vector<ClientLatency> latencies_;  ///< by slot
  std::uint64_t latencies_ns_ = 0;        ///< when they were last read
  bool opened_ = false;                   ///< open_grants()
  bool swap_wanted_ = false;              ///< the daemon's own copy, because the client can write to the page
  ipc::Swap swap_, told_swap_;
  bool told_waits_ = false;
  std::uint64_t swap_told_ns_ = 0;  ///< 0: nothing was told yet
  const DaemonOptions* options_ = &kDefaultOptions;
  Lease lease_;
  std::uint32_t records_read_ = 0;                                      ///< the daemon's own copy
  std::map<std::pair<std::string, std::string>, ipc::Kernel> kernels_;  ///< by module and name
  std::size_t kernel_text_ = 0;
};

}  // namespace gpuctl::daemon
