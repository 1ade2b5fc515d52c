// Decides which client may use what: the slice tree, the clients and the grants of every device. Whatever changes, the
// same steps follow once: what the clients report and what the tree says of each is gathered, every device is decided
// (device_decision.h), and DeviceGrants writes the pages. Time is an argument. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gpuctld/accounts/amounts.h"
#include "gpuctld/budgets/token_bucket.h"
#include "gpuctld/clients/client.h"
#include "gpuctld/config/config.h"
#include "gpuctld/grants/device_grants.h"
#include "gpuctld/host/devices.h"
#include "gpuctld/jobs/job_queue.h"
#include "gpuctld/jobs/kernel_knowledge.h"
#include "gpuctld/jobs/recorder.h"
#include "sched/activity.h"
#include "sched/admission.h"
#include "sched/allocator.h"
#include "sched/bandwidth.h"
#include "sched/effective/effective.h"
#include "sched/latency/control.h"
#include "sched/latency/isolation_record.h"
#include "sched/pressure.h"
#include "sched/slice_tree.h"
#include "sched/temporal/fairness.h"

namespace gpuctl::daemon {

/// Its many members are the inputs of the decisions (tree, clients, options) and, by device, what follows from them.
class Scheduler {
 public:
  Scheduler(std::vector<Gpu> devices, sched::SliceTree tree, const DaemonOptions& options = {},
            bool time_sliced = false);
  Scheduler(const Scheduler&) = delete;

  const std::vector<Gpu>& devices() const { return devices_; }
  const sched::SliceTree& tree() const { return tree_; }
  /// In the order of tree().slices(). Where amounts differ by GPU: the most of any.
  const std::vector<sched::Effective>& effective() const { return effective_; }
  /// What is in force for a slice on each device: reserves as far as they fit, of its memory_min what is kept.
  std::vector<sched::Effective> effective_on_each(std::size_t slice) const;
  /// Whether an amount of any slice is not the same on each device, or any names devices.
  bool differs_by_device() const { return !on_.empty(); }
  /// The slice with what it has on the device (sched/on_gpu.h).
  const sched::Slice& slice_on(std::size_t device, const std::string& path) const {
    return *tree_on(device).find(path);
  }
  const std::list<Client>& clients() const { return clients_; }

  /// What the administrator says. It is held here, and nowhere else.
  const DaemonOptions& options() const { return options_; }
  /// Programs take turns on the GPUs (no MPS), but not on the software GPU.
  bool time_sliced() const { return time_sliced_; }

  /// Replaces the tree, the options and whether programs take turns, and decides once. The new tree still has every
  /// slice that a client is in. Returns the tree before.
  sched::SliceTree set_all(sched::SliceTree tree, const DaemonOptions& options, bool time_sliced, std::uint64_t now_ns);
  void set_tree(sched::SliceTree tree, std::uint64_t now_ns) {
    set_all(std::move(tree), options_, time_sliced_, now_ns);
  }
  void set_options(const DaemonOptions& options, std::uint64_t now_ns) {
    set_all(tree_, options, time_sliced_, now_ns);
  }
  void set_time_sliced(bool time_sliced, std::uint64_t now_ns) { set_all(tree_, options_, time_sliced, now_ns); }

  /// Which MPS of the daemon's own the programs share that are not isolated: others are apart then. "": none of those.
  /// From the next decision on.
  void share_by(std::string mps) { shared_mps_ = std::move(mps); }
  /// Whether the client shares no context with programs of slices that are not isolated.
  bool is_apart(const Client& client) const {
    return client.isolated || (!shared_mps_.empty() && client.mps != shared_mps_ && !client.stands_in);
  }

  /// Adds the client and grants it something, by what holds now. It stays until remove(). Its slice exists.
  Client& add(Client client, bool time_sliced, std::uint64_t now_ns);
  Client& add(Client client, std::uint64_t now_ns) { return add(std::move(client), time_sliced_, now_ns); }

  /// add(), in place of clients that stood in for it: nothing is decided in between.
  Client& replace(const std::vector<Client*>& stand_ins, Client client, bool time_sliced, std::uint64_t now_ns);

  /// What the client had is granted to others before this returns; no client waits for one that is gone. The page of
  /// the removed client stays as it is.
  Client remove(Client& client, std::uint64_t now_ns);

  /// The clients go on in another slice, which exists. What their bursts took until now stays with the one they were
  /// in.
  void move(const std::vector<Client*>& clients, const std::string& slice, std::uint64_t now_ns);

  /// Whether programs that start in the slice see the device. `slice`: its index in tree().slices(), also below.
  bool is_seen(std::size_t slice, std::size_t device) const;
  /// With which percentage, in hundredths, MPS keeps a program that starts in the slice to what it may ever have: the
  /// greatest that any device needs that they see, as it is one for all. Only slices with a reserve have one, which can
  /// have no part in common with others: two programs with the same percentage may have different SMs, and together
  /// all, so gpuctl keeps the others off reserves. None while the slice is suspended, and below a policy for jobs,
  /// which knows kernels by what they take on the whole GPU. `slice`: its index in tree().slices().
  std::optional<std::uint32_t> mps_hundredths(std::size_t slice) const;
  /// Whether something would be in force for a program that comes to the slice, so that its kernels have to give SMs
  /// back. `hundredths`: MPS keeps it to that percentage.
  bool would_need_form(std::size_t slice, std::optional<std::uint32_t> hundredths, bool time_sliced) const;
  /// The same of a program that comes to the MPS of an isolated slice, `top`, in which `slice` is.
  bool would_need_form_within(std::size_t slice, const std::string& top) const;

  /// A hint counts within what the client's slice allows.
  void set_hint(Client& client, std::int32_t priority, std::uint64_t now_ns);

  /// The client's context on a device is broken: what it had there is granted to others before this returns. The client
  /// counts again when its demand there changes.
  void fault(Client& client, std::size_t slot, std::uint64_t now_ns);

  /// What HoldMemory answers: whether the client may hold `bytes` of a device's memory. Without `total` nothing limits
  /// it.
  struct MemoryAnswer {
    bool granted = true;
    std::optional<std::uint64_t> total, free;
    std::chrono::microseconds wait{};  ///< before an allocation that is granted
    std::string decided_by;            ///< the slice whose limit refused it or lets it wait; "": none
    bool kept = false;                 ///< it is refused because that is kept for programs of that slice
    bool full = false;                 ///< or because all is held by others, where memory is kept; for whom it asks
  };
  MemoryAnswer hold_memory(Client& client, std::size_t slot, std::uint64_t bytes, std::uint64_t now_ns);

  /// Lets the memory of clients leave the GPUs, as their slices say, and come back. It comes back when it fits beside
  /// what others hold, on the device and within limits: the caller asks again from time to time.
  void swap_clients(std::uint64_t now_ns);
  /// What clients say of that since it was last told.
  std::vector<std::pair<const Client*, Client::SwapNews>> swap_news(std::uint64_t now_ns);

  /// How long the turns of MPS servers are to be, by device, as Grant::time_slice_us. By the name of the MPS
  /// (MpsPlaces); kSharedMps is always there.
  const std::map<std::string, std::vector<std::uint32_t>>& server_us() const { return server_us_; }

  /// Whether time slices work here: what became of those that any client was given so far, on any device.
  ipc::TimeSlice time_slices_work() const;

  /// Reads every client's usage, decides anew if a demand changed, and continues handovers. Allocates nothing, unless a
  /// client began or ceased to launch often on a GPU that programs share by time. True if it decided.
  bool update(std::uint64_t now_ns);

  /// The latest time to call update(), because of a policy for jobs or a reserve that is to be lent: CLOCK_MONOTONIC;
  /// UINT64_MAX: no hurry.
  std::uint64_t again_ns() const;

  KernelKnowledge& knowledge() { return knowledge_; }
  const KernelKnowledge& knowledge() const { return knowledge_; }

  /// Launches that ended since the reader's last call (Recorder::read). Clients report their launches while there is a
  /// reader.
  Recorder::Part read_records(const void* reader, std::uint64_t now_ns, bool original = false);
  void forget_reader(const void* reader, std::uint64_t now_ns);

  /// How well the programs in and below each slice are served, of launches that clients report: where a policy for jobs
  /// rules over them, or launches are recorded. By path.
  std::map<std::string, sched::FairnessFigures> fairness(std::uint64_t now_ns);

  /// How long the bursts and requests of each slice's programs took.
  const SliceLatencies& latencies() const { return latencies_; }
  /// What is done for the slice's target and what came of it, for people; none: it has no target.
  std::optional<std::string> latency_now(const std::string& slice) const;
  /// The slice's target was set again, maybe to what it was: what was found out about it is found out anew.
  void seek_target_anew(const std::string& slice, std::uint64_t now_ns);

  /// What is known of whether the slice's target can be kept, were the tree so. On several devices it is refused where
  /// it cannot be kept on any that its programs used, or, where it has used none, on any.
  sched::Admission admits_target(const sched::SliceTree& tree, const std::string& path) const;

  /// What is promised of a device to the slices beside one, and what is left to promise to it.
  sched::Unpromised room_for(std::size_t device, const std::string& path) const;
  /// Which part of a device's time, 0 to 1, programs of isolated slices beside `path` used in the last ten seconds or
  /// so; none: not known.
  std::optional<double> isolated_part(std::size_t device, const std::string& path, std::uint64_t now_ns) const;

  /// The targets of slices, by device.
  struct TargetSeen {
    std::string slice;
    std::size_t device = 0;
    const sched::Steer* steer = nullptr;
  };
  std::vector<TargetSeen> targets() const;

  /// What programs of slices with a target took beside others, shared and isolated.
  sched::IsolationRecord& isolation_record() { return isolation_record_; }
  const sched::IsolationRecord& isolation_record() const { return isolation_record_; }
  /// For slices whose isolation is "auto" and in which no program is: before one starts, if nothing was updated lately.
  void choose_isolation(std::uint64_t now_ns);
  /// A program has come: of an earlier daemon, or one that was told nothing before it began. The slice that chooses its
  /// isolation has the program's, unless others are there.
  void isolate_as(const Client& first, std::uint64_t now_ns);
  /// Which isolation suits a slice, whatever is set.
  sched::IsolationEvidence isolation_evidence(const std::string& slice) const;
  /// What is in force for such a slice and why, for people; none: nothing is to be said.
  std::optional<std::string> isolation_now(const std::string& slice) const;

  /// Clients that are newly found to disobey.
  std::vector<Client*> check_deadlines(std::uint64_t now_ns);

  /// For tests of programs: every grant is replaced by a random part of what was decided, until the next decision.
  void storm(Random& random, std::uint64_t now_ns);

  /// `record` is called before a client can have more than Slot::recorded says: what Slot::to_record and worked() say
  /// is to outlive the daemon. Where it returns false nobody gets more than is recorded.
  void before_growth(std::function<bool(std::uint64_t now_ns)> record) { before_growth_ = std::move(record); }
  /// Whether anything else is recorded than what clients may have now, which is then in Slot::to_record.
  bool record_is_stale();
  /// Has it recorded. False if that failed.
  bool record(std::uint64_t now_ns);

  /// When the clients of a slice, and of those below it, had work the last time on a device: ended ones count, those of
  /// an earlier daemon too. Only where a reserve is held for a while (NodeInput::hold).
  struct Worked {
    std::string slice;
    std::size_t device = 0;
    std::uint64_t last_ns = 0;
    std::chrono::nanoseconds hold{};
  };
  std::vector<Worked> worked() const;
  /// An earlier daemon saw it.
  void saw_work(std::string_view slice, std::size_t device, std::uint64_t last_ns);

  /// A line for each reserve and each memory_min, of these slices or of all, of which less is in force on some device,
  /// because that is too small. And, of these slices, for each device that is reserved whole.
  std::vector<std::string> unfit_reserves(std::span<const std::string> slices = {}) const {
    return unfit_reserves(tree_, slices);
  }
  /// The same, were the tree so.
  std::vector<std::string> unfit_reserves(const sched::SliceTree& tree, std::span<const std::string> slices) const;

  /// A line for each slice, of those in and below `slice` or of all, with programs whose contexts are not as its
  /// isolation has it now: they go on as they started.
  std::vector<std::string> isolation_lags(std::string_view slice = {}) const;

  /// For which part of the time programs in each slice and below it waited for SMs. In the order of tree().slices().
  const std::vector<sched::Pressure>& pressure() const { return pressure_; }
  /// When update() has something to do because of quotas, as things are; UINT64_MAX: nothing.
  std::uint64_t quota_ns() const;
  /// How often, and for how long, the slice had used up its quota: on all devices together.
  sched::Bandwidth::Seen throttled(const std::string& slice, std::uint64_t now_ns) const;
  /// How often it had used up the quota that it has there now; 0 without one.
  std::int64_t throttled_times(const std::string& slice, std::size_t device, std::uint64_t now_ns) const;
  /// Whose quota is used up now, of the slice and of those above it, and until when, for people; none: nobody's.
  std::optional<std::string> quota_now(const std::string& slice, std::uint64_t now_ns) const;
  /// The daemon stops, and nobody knows for how long: who is throttled may use what its slices have at most.
  void lift_quotas(std::uint64_t now_ns);
  /// A line for each slice with programs that are not in the MPS of the others (share_by()), though they might be.
  std::vector<std::string> left_out_of_mps() const;

  /// What programs used since the last call and until now, those that have ended too.
  Accounts take_accounts(std::uint64_t now_ns);

  /// Whether any client has work, and gives signs of life.
  bool busy() const;
  /// Whether a handover is under way (device_grants.h); then update() must be called again soon.
  bool waiting() const;
  /// `stand_ins`: count those that stand in for a program too.
  std::size_t clients_in(std::string_view slice, bool stand_ins = true) const;

  /// The greatest amounts over all devices.
  struct SliceUse {
    sched::CapSM granted{}, demand{};
    std::size_t clients = 0;  ///< directly in it
    struct OnDevice {
      sched::CapSM granted{};
      std::uint64_t memory = 0;  ///< bytes
    };
    std::vector<OnDevice> on;  ///< by device
  };
  /// In the order of tree().slices().
  std::vector<SliceUse> slice_use() const;
  /// Bytes of a device's memory that programs in each slice and below it hold, in the same order.
  std::vector<std::uint64_t> memory_held(std::size_t device) const;

 private:
  /// What was seen of a device at the last step of the controls.
  struct Seen {
    std::map<std::string, bool> quiet;                      ///< whether no program of another slice had work
    std::map<std::string, sched::LatencyHistogram> bursts;  ///< all so far
    std::string alone;                                      ///< the slice whose programs alone had work; "": none
  };
  struct DeviceWork;

  /// Programs that share the context of one isolated slice's MPS.
  struct SliceContext {
    DeviceGrants grants;
    std::vector<sched::NodeInput> nodes;  ///< the tree as it is for them
    std::vector<sched::Work> work;        ///< scratch of mark_active()
  };

  /// Clients, the tree or what holds on a device changed: gathers everything anew, decides and writes.
  void decide_anew(std::uint64_t now_ns);
  void gather_members();
  template <class Visit>
  void each_grants(Visit visit) {
    for (DeviceGrants& grants : grants_) visit(grants);
    for (DeviceGrants& grants : isolated_) visit(grants);
    for (auto& contexts : contexts_)
      for (auto& [mps, context] : contexts) visit(context.grants);
  }
  /// The same of one device, with the nodes that each decides by.
  template <class Visit>
  void each_with_nodes(std::size_t device, Visit visit) {
    visit(grants_[device], nodes_on_[device]);
    visit(isolated_[device], nodes_on_[device]);
    for (auto& [mps, context] : contexts_[device]) visit(context.grants, context.nodes);
  }
  template <class Visit>
  void each_member(std::size_t device, Visit visit) const {
    for (const DeviceGrants* grants : {&grants_[device], &isolated_[device]})
      for (const DeviceGrants::Member& member : grants->members()) visit(member);
    for (const auto& [mps, context] : contexts_[device])
      for (const DeviceGrants::Member& member : context.grants.members()) visit(member);
  }
  /// Whether the two may be on the device together.
  bool share_context(const Client& a, const Client& b, std::size_t device) const {
    if (!a.context && !b.context) return !grants_[device].time_sliced();
    return a.context && a.context == b.context && !a.context->empty();
  }
  /// Whether the client is never on the device together with others.
  bool takes_turns(const Client& client, std::size_t device) const { return !share_context(client, client, device); }
  std::vector<sched::NodeInput> nodes_of_context(std::size_t device, const std::string& top) const;
  std::string top_of(const std::string& mps) const;
  void keep_for_targets(std::size_t device, std::size_t top, std::vector<sched::NodeInput>& nodes) const;
  void find_contexts();
  std::string mps_of_slice(const Client& client) const;
  void renew_context(std::size_t device, const std::string& mps, std::vector<DeviceGrants::Member> members);
  using LongestTurns = std::vector<std::optional<std::chrono::microseconds>>;
  std::map<std::string, LongestTurns> longest_turns(std::size_t device, std::span<const DeviceGrants::Member> members,
                                                    std::span<const std::string> mps) const;
  void add_time_slices(std::size_t device, std::vector<DeviceGrants::Member>& members);
  void rebuild_queues(std::uint64_t now_ns);
  void learn(std::uint64_t now_ns);
  void learn_from(Client& client, std::uint64_t now_ns);
  void take_names(const Client& client);
  std::optional<GrantHistory::Held> held_by(Client& client, std::size_t index, const ipc::Record& launch) const;
  void record(const Client& client, std::size_t slot, const ipc::Record& launch, sched::Time alone,
              const std::optional<GrantHistory::Held>& held);
  bool update_queues(std::uint64_t now_ns);
  void charge_turns(std::uint64_t now_ns);
  bool read_usage(std::uint64_t now_ns);
  void read_latencies(Client& client, std::uint64_t now_ns, bool at_once);
  bool mark_active(std::uint64_t now_ns);
  std::size_t held_for_nobody() const;
  bool mark_often();
  void renew_targets();
  void note_others(std::string_view slice, std::uint64_t now_ns);
  std::vector<sched::LatencyPromise> promises(std::size_t device, const sched::SliceTree& tree,
                                              const std::string& wanted) const;
  std::vector<sched::WithTarget> levels_above() const;
  sched::LatencyHistogram new_bursts(std::size_t device, const std::string& path);
  DeviceWork work_on(std::size_t device, std::uint64_t now_ns);
  std::uint64_t new_launches(const Client& client, const Client::Slot& slot);
  sched::LatencyStep step_of(std::size_t device, const sched::LatencyControl::Entry& entry, const DeviceWork& work,
                             std::uint64_t now_ns);
  void learn_alone(std::size_t device, const DeviceWork& work, std::uint64_t now_ns);
  bool step_latency(std::uint64_t now_ns);
  bool has_programs(const std::string& slice) const;
  std::optional<bool> isolates_now(const std::string& slice, const sched::Slice& settings) const;
  bool would_isolate_otherwise() const;
  bool isolate_by_record();
  void note_start(const Client& client);
  void record_isolation(std::size_t device, const std::string& slice, const sched::IsolationRecord::Others& others,
                        std::uint64_t now_ns, std::uint64_t passed_ns);
  void forget_client(const Client& client);
  void decide(std::uint64_t now_ns);
  void write(std::uint64_t now_ns);
  void commit(bool more, std::uint64_t now_ns);
  void note_pressure(std::uint64_t now_ns);
  void meter_work(std::uint64_t now_ns, bool all);
  void renew_quotas(std::uint64_t now_ns);
  void use_quotas(const Client& client, Client::Slot& slot, double sms, std::uint64_t now_ns);
  bool step_quotas(std::uint64_t now_ns);
  void throttle(std::size_t device, std::vector<sched::NodeInput>& nodes) const;
  bool is_throttled(std::size_t device, std::size_t node) const;
  /// Frozen or throttled.
  bool stands_still(std::size_t device, std::size_t node) const;
  std::vector<SliceUse> slice_use_on(std::size_t device, const std::vector<bool>& isolated) const;
  void collect(Client& client);
  void settle(Client& client);
  /// The tree as it is on the device.
  const sched::SliceTree& tree_on(std::size_t device) const { return on_.empty() ? tree_ : on_[device].tree; }
  /// What follows for the device from the tree alone.
  const std::vector<sched::NodeInput>& fixed_nodes(std::size_t device) const {
    return on_.empty() ? nodes_ : on_[device].nodes;
  }
  const std::vector<sched::Effective>& effective_on(std::size_t device) const {
    return on_.empty() ? effective_ : on_[device].effective;
  }
  std::optional<std::uint64_t> memory_left(const Client& client, int device, bool recorded,
                                           MemoryAnswer* refused = nullptr, std::uint64_t bytes = 0) const;
  std::uint64_t held_on(const Client& client, int device, bool recorded) const;
  std::uint64_t held_by_others(const Client& client, int device, std::string_view path, bool recorded) const;
  bool keeps_memory(std::size_t device) const;
  std::uint64_t memory_not_kept(const Client& client, int device, bool recorded, std::string_view* by) const;
  void let_wait(const Client& client, int device, std::uint64_t bytes, MemoryAnswer& answer) const;
  bool has_room(Client& client, std::uint64_t now_ns);
  bool record_memory(Client& client, std::size_t slot, std::uint64_t bytes, std::uint64_t now_ns);
  /// What the client's slice allows, or less if the program asked for less.
  std::int32_t priority_of(const Client& client) const;
  /// By client: the levels of the GPU's priorities that it has among those of its context; all, if that is its own.
  std::vector<ipc::PriorityBand> bands() const;

  std::vector<Gpu> devices_;
  std::vector<std::uint32_t> sms_;  ///< SMs that can be granted, per device
  sched::SliceTree tree_;
  /// The tree as it is on one device, and what follows from it.
  struct TreeOn {
    explicit TreeOn(sched::SliceTree on);
    sched::SliceTree tree;
    std::vector<sched::Effective> effective;
    std::vector<sched::NodeInput> nodes;
  };
  std::vector<TreeOn> on_;                           ///< by device; empty: all amounts are the same on each
  std::vector<sched::Effective> effective_;          ///< in the order of tree_.slices(), as are the next
  std::vector<std::vector<std::uint64_t>> kept_on_;  ///< by device: bytes that are kept for each slice
  std::vector<sched::NodeInput> nodes_;
  std::vector<std::vector<sched::NodeInput>> nodes_on_;  ///< by device, because slices are active per device
  std::vector<sched::Pressure> pressure_;                ///< in the same order
  std::vector<bool> waits_, runs_;                       ///< scratch of note_pressure(), in the same order
  struct QuotaUse {
    sched::Bandwidth bandwidth;
    double rate = 0;  ///< which part of the device its programs use now
  };
  /// By device: of slices with a quota, and by node, null: it has none. The latter is empty where no slice has any.
  std::vector<std::map<std::string, QuotaUse>> quotas_;
  std::vector<std::vector<QuotaUse*>> quota_of_;
  /// Of slices in the tree: how they were throttled by quotas that were taken away.
  std::map<std::string, sched::Bandwidth::Seen> throttled_before_;
  /// What was used in a stretch of some seconds.
  struct Stretch {
    std::uint64_t began_ns = 0, ended_ns = 0;
    Accounts used;
  };
  Stretch used_now_, used_lately_;
  Accounts accounts_;             ///< of programs that have ended or moved, not taken yet
  std::vector<double> sms_used_;  ///< scratch of meter_work(), by device
  std::vector<bool> inhabited_;   ///< in the same order: it, or a slice below it, has a client that is not apart
  /// By device, in the same order: when clients that are or were directly in it had work the last time.
  std::vector<std::vector<sched::Work>> work_;
  /// When the first reserve will be lent, unless its slice launches something before.
  std::uint64_t reserve_ends_ns_ = UINT64_MAX;
  std::list<Client> clients_;  ///< in the order of attachment; addresses are stable
  /// By device: of the programs that share a context (MPS), or take turns if there is no MPS; and of isolated ones,
  /// each of which has a context of its own beside these.
  std::vector<DeviceGrants> grants_, isolated_;
  /// By device, then by the name of the MPS: each takes turns with these and with each other.
  std::vector<std::map<std::string, SliceContext>> contexts_;
  sched::Allocator allocator_;
  KernelKnowledge knowledge_;
  std::map<std::uint32_t, TokenBucket> learning_;  ///< by user
  Recorder recorder_;
  sched::Fairness fairness_;
  SliceLatencies latencies_;
  std::vector<sched::LatencyControl> controls_;  ///< by device, as is the next
  std::vector<Seen> seen_;
  std::uint64_t stepped_ns_ = 0;
  /// By path: since when the programs in and below it are the same, and what limits them.
  std::map<std::string, std::uint64_t, std::less<>> same_since_;
  sched::IsolationRecord isolation_record_;
  /// By client and device: what ended since the last step of the controls, and launches until then.
  std::map<std::pair<const Client*, int>, sched::LatencyHistogram> fresh_;
  std::map<std::pair<const Client*, int>, std::uint64_t> launches_;
  std::uint64_t jobs_ = 0;
  std::vector<std::map<std::string, JobQueue>> queues_;  ///< by device, then path of the slice
  std::vector<ipc::Record> records_;                     ///< scratch
  DaemonOptions options_;
  bool time_sliced_ = false;
  std::string shared_mps_;
  std::map<std::string, std::vector<std::uint32_t>> server_us_;
  std::function<bool(std::uint64_t now_ns)> before_growth_;
  ipc::TimeSlice time_slices_worked_ = ipc::TimeSlice::not_tried;  ///< of clients that are gone
};

}  // namespace gpuctl::daemon
