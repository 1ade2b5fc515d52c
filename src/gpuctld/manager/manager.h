// The daemon without its process: event loop, clients, slices, state. The methods of the interface are in
// manager_varlink.cc, manager_apply.cc, manager_clients.cc, manager_end.cc, manager_events.cc and manager_usage.cc.
// Everything runs on the thread that runs the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "gpuctld/accounts/energy_shares.h"
#include "gpuctld/accounts/usage_keeper.h"
#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/config/config.h"
#include "gpuctld/ends/ends.h"
#include "gpuctld/ends/mandatory.h"
#include "gpuctld/host/energy.h"
#include "gpuctld/host/gpu_users.h"
#include "gpuctld/host/mps_places.h"
#include "gpuctld/manager/attached.h"
#include "gpuctld/manager/driver_limits.h"
#include "gpuctld/manager/event_log.h"
#include "gpuctld/manager/mps_servers.h"
#include "gpuctld/manager/pages_made.h"
#include "gpuctld/manager/promised_queues.h"
#include "gpuctld/manager/ticker.h"
#include "gpuctld/protocol/varlink_server.h"
#include "gpuctld/restart/kept.h"
#include "gpuctld/scheduler/scheduler.h"
#include "ipc/fields.h"
#include "sched/pressure_trigger.h"

namespace gpuctl::daemon {

struct ManagerOptions {
  KeptFiles kept;
  std::string usage;        ///< file of what was used; "": nothing is kept
  std::string config_file;  ///< "": none; read again on reload
  bool config_required = false;
  std::string probe_socket;  ///< SearchOptions::probe_socket
  std::string look_socket;   ///< of GpuUserWatch, and its pace
  GpuUserWatch::Pace look_pace = {};
  EnergyWatch::Place energy = {};
  LimitsHelper::Place limits = {};
  DriverLimits::Pace limits_pace = {};
  std::string socket;         ///< its own, for the library in an MPS that it starts
  std::string mps_directory;  ///< MpsPlaces::Settings::directory, and the next one
  std::string mps_start_socket;
  std::string mps_control_socket;            ///< MpsControl::Place::socket
  std::uint32_t root_uid = 0;                ///< owner of the root slice
  std::chrono::microseconds evict_storm{0};  ///< mean time between random grants; 0: off
  std::vector<std::string> notes;            ///< shown by GetStatus
  /// Takes what happened and the line that says so. False: the line goes to the log as others do.
  std::function<bool(const ipc::Event&, const std::string& line)> journal = {};
  bool leaves_out_gpus = false;  ///< set by Manager::create: the configuration selects some GPUs alone
};

/// Connects the parts of the daemon, each of which is a class with a task of its own.
class Manager {
 public:
  using Log = std::function<void(const std::string&)>;

  /// Restores the state and applies the configuration. `devices` are all that exist; the configuration may select some.
  static Result<std::unique_ptr<Manager>> create(boost::asio::io_context& context, ManagerOptions options,
                                                 std::vector<Gpu> devices, Config config, Log log);
  ~Manager();

  /// Takes calls on a listening socket, which the manager then owns, and on connections of another server.
  void serve(int listener, std::vector<HandedOver> connections = {});

  /// Reads the configuration again. If anything in it is wrong the old one stays as a whole, and the lines say why.
  std::vector<std::string> reload();

  /// Closes all connections; clients keep their last grant. Then the io_context has no more work.
  void stop();

  const Scheduler& scheduler() const { return scheduler_; }
  /// Of MPS's hardware queues.
  const QueueLedger& queues() const { return queues_.ledger(); }

 private:
  Manager(boost::asio::io_context& context, ManagerOptions options, const DaemonOptions& daemon,
          std::vector<Gpu> devices, sched::SliceTree tree, std::map<std::string, std::string> configured, Log log);

  bool on_kick(std::uint32_t uid, const std::function<void()>& drain);
  DaemonOptions with_storm(DaemonOptions daemon) const;
  void on_closed(Session& session);
  void on_refused(std::uint32_t uid);
  /// A line that this user caused; with what it says has happened.
  void log_of(std::uint32_t uid, const std::string& line, const ipc::Event* event = nullptr);
  std::size_t clients_of(std::uint32_t uid) const;
  std::pair<std::size_t, std::size_t> kernel_text_of(std::uint32_t uid) const;
  void arm_tick();
  void note_mps_use();
  DriverLimits::Hooks limits_hooks();
  std::vector<std::uint64_t> limits_of(const std::string& slice, std::size_t programs) const;
  void tick();
  void handle_disobedience(const Client& client);
  void tell_disobedience(const Client& client, const std::string& line);
  /// Of a slice on one device, since the daemon started.
  struct MemoryOn {
    std::uint64_t peak = 0;         ///< the most bytes that were seen to be held
    std::int64_t max_refusals = 0;  ///< by its memory_max
  };
  MemoryOn& memory_on(const std::string& slice, std::size_t device);
  void see_memory();
  void see_memory_of(std::size_t device);
  std::vector<ipc::SliceOnGpu> describe_on_gpus(std::size_t index, const std::string& path,
                                                const Scheduler::SliceUse& use) const;
  void on_freed();
  void change_tree(sched::SliceTree tree, std::uint32_t by) { change(std::move(tree), scheduler_.options(), by); }
  /// `by`: a user; none: the configuration.
  void change(sched::SliceTree tree, const DaemonOptions& daemon, std::optional<std::uint32_t> by);
  void log_unfit();
  void note_of_devices(const sched::SliceTree& tree, const std::string& path, std::vector<std::string>& lines) const;
  std::vector<std::string> odd_settings(const sched::SliceTree& tree, std::span<const std::string> paths) const;
  std::vector<std::string> odd_settings_of(const sched::SliceTree& tree, const std::string& path) const;

  // manager_events.cc
  /// `line`: for the log; "": it says nothing. `by`: whose line that is, if not the event's user's.
  void happened(ipc::Event event, const std::string& line, std::optional<std::uint32_t> by = std::nullopt);
  static ipc::Event event_of(const char* kind, const Client& client, std::string text);
  void tell_changes(const sched::Slices& before, std::optional<std::uint32_t> by);
  void tell_refused(Session& session, const ipc::Call& call, const ipc::Reply& reply);
  void tell_memory(Attached::Member& member, std::size_t slot, std::int64_t bytes,
                   const Scheduler::MemoryAnswer& answer);
  std::set<std::string> slices_with_mps();
  void tell_mps_of_slices();
  void look_around(std::uint64_t now_ns);
  /// True: one of them is to be ended, and has time until then.
  bool tell_unmanaged(const std::vector<GpuUser>& users);
  std::string mandatory_for(const GpuUser& user) const;
  /// False: it has ended, or runs as another user now.
  bool end_unmanaged(const Unmanaged& program);
  std::vector<std::string> about_unmanaged() const;
  void tell_throttled(std::uint64_t now_ns);
  void tell_swaps(std::uint64_t now_ns);
  Answer events(Session& session, ipc::Fields& fields);

  // manager_usage.cc
  void keep_usage();
  void keep_usage_later();
  void share_energy(const std::vector<Gpu>& gpus);
  Answer get_usage(Session& session, ipc::Fields& fields);
  Answer tell_usage(const Result<Accounts>& sums) const;

  // manager_varlink.cc, manager_apply.cc, manager_clients.cc, manager_end.cc
  Answer call(Session& session, const ipc::Call& call);
  Answer create_slice(Session& session, ipc::Fields& fields);
  Answer delete_slice(Session& session, ipc::Fields& fields);
  Answer set_slice(Session& session, ipc::Fields& fields);
  Answer apply_slices(Session& session, ipc::Fields& fields);
  Answer note_saved(Session& session, ipc::Fields& fields);
  Answer list_slices(Session& session, ipc::Fields& fields);
  Answer get_slice(Session& session, ipc::Fields& fields);
  Answer list_clients(Session& session, ipc::Fields& fields);
  Answer explain(Session& session, ipc::Fields& fields);
  Answer get_status(Session& session, ipc::Fields& fields);
  Answer list_kernels(Session& session, ipc::Fields& fields);
  Answer forget_kernels(Session& session, ipc::Fields& fields);
  Answer advise(Session& session, ipc::Fields& fields);
  Answer watch_pressure(Session& session, ipc::Fields& fields);
  Answer get_fairness(Session& session, ipc::Fields& fields);
  Answer record(Session& session, ipc::Fields& fields);
  Answer monitor(Session& session, ipc::Fields& fields);
  Answer get_mps_percentage(Session& session, ipc::Fields& fields);
  bool is_isolated(const std::string& slice) const;
  std::string mps_of(const std::string& slice) const;
  sched::SliceError refused_start(sched::SliceError error) const;
  std::string slice_of(const Session& session, const std::string& exe) const;
  sched::SliceResult<std::string> slice_for(const Session& session, const std::string& asked,
                                            const std::string& exe = {}) const;
  bool look_at_mps();
  std::string pipe_directory_of(const Client& client);
  Answer mps_start(Session& session, const std::string& slice, std::optional<std::int64_t> own_queues);
  Answer make_page(Session& session, ipc::Fields& fields);
  Answer attach(Session& session, ipc::Fields& fields);
  std::optional<std::uint32_t> promise_queues(Session& session, std::size_t slice, std::int64_t own,
                                              std::optional<std::uint32_t> hundredths);
  Answer refuse_version(Session& session, std::int64_t version);
  Answer report_kernels(Session& session, ipc::Fields& fields);
  Answer serve_mps(Session& session, ipc::Fields& fields);
  Answer set_hint(Session& session, ipc::Fields& fields);
  Answer hold_memory(Session& session, ipc::Fields& fields);
  Answer move(Session& session, ipc::Fields& fields);
  void move_members(const Attached::Members& members, const std::string& slice, std::uint32_t by_uid);
  Answer kill(Session& session, ipc::Fields& fields);
  Answer report_fault(Session& session, ipc::Fields& fields);
  using Method = Answer (Manager::*)(Session&, ipc::Fields&);
  static const std::map<std::string_view, Method>& methods();
  std::optional<std::string> why_not_isolated() const;
  std::optional<std::string> about_default_slice() const;
  std::optional<std::string> about_server_turns();
  std::vector<std::string> about_mps();
  std::optional<std::vector<ipc::Mps>> describe_mps();
  Answer changed(boost::json::object reply, std::span<const std::string> paths,
                 const std::vector<std::string>& more = {}) const;
  std::vector<std::string> notes_about(std::span<const std::string> paths) const;
  Answer checked(const sched::SliceTree& tree, std::span<const std::string> paths,
                 const std::vector<std::string>& more = {}) const;
  std::optional<sched::SliceError> refuse_targets(const sched::SliceTree& tree, std::vector<std::string>& doubts) const;
  sched::SliceResult<std::vector<std::string>> would_admit(const std::string& path,
                                                           const ipc::SliceSettings& settings) const;
  std::vector<ipc::Room> room_for(const std::string& path);
  std::vector<ipc::SliceDifference> differences(const sched::SliceTree& tree) const;
  std::vector<std::string> come_back(const sched::SliceTree& tree, std::uint32_t caller) const;
  Answer refuse_with_programs(const sched::SliceError& error, bool below, const Session& session) const;
  boost::json::array programs_in(const std::string& path, bool below, const sched::Caller& viewer) const;
  boost::json::object slice_now(const std::string& path) const;
  ipc::Slice describe_slice(std::size_t index, const std::string& path,
                            const std::vector<Scheduler::SliceUse>& use) const;
  std::vector<ipc::Slice> describe_slices() const;
  std::vector<ipc::Client> describe_clients(const std::string* slice, const sched::Caller& viewer) const;
  std::vector<ipc::Device> describe_devices();
  bool may_look_into(std::uint32_t uid, const std::string& slice, const sched::Caller& viewer) const;
  ipc::Client describe_client(const Client& client, const sched::Caller& viewer) const;
  Result<std::vector<int>> match_devices(const std::vector<std::string>& uuids) const;

  boost::asio::io_context& context_;
  ManagerOptions options_;
  Log log_;
  Scheduler scheduler_;
  Kept kept_;
  UserBudgets budgets_;
  LimitsHelper limits_helper_;
  std::unique_ptr<VarlinkServer> server_;
  Attached attached_;
  PagesMade pages_;
  PromisedQueues queues_;
  MpsServers servers_;
  MpsPlaces mps_;
  Ends ends_;
  std::map<const Session*, std::shared_ptr<void>> asked_ends_;  ///< who waits for the end of programs (Ends::end)
  std::map<const Session*, std::string> told_isolated_;         ///< that a program which starts in this slice is
  std::map<const Session*, sched::PressureTrigger> triggers_;   ///< who waits for pressure
  DriverLimits driver_limits_;
  Ticker ticker_;
  EventLog events_;
  boost::asio::steady_timer telling_;  ///< until those who follow events are told of new ones
  bool tells_ = false;                 ///< telling_ runs
  UsageKeeper usage_;
  boost::asio::steady_timer keeping_;  ///< until what was used is written
  bool keeps_ = false;                 ///< keeping_ runs
  EnergyShares energy_shares_;
  EnergyWatch energy_watch_;  ///< while programs are there
  /// By slice, with those below it, since it was made or the daemon started.
  std::map<std::string, double, std::less<>> joules_, sm_seconds_;
  bool knows_energy_ = false;  ///< some GPU counts its energy
  std::uint64_t looked_around_ns_ = 0;
  bool mps_there_ = false;                 ///< as last seen
  std::set<std::string> slices_with_mps_;  ///< the same
  struct MemoryCounts {
    std::int64_t waits = 0, refusals = 0;
  };
  std::map<std::string, MemoryCounts, std::less<>> memory_counts_;       ///< by the slice whose limit it was
  std::map<std::string, std::vector<MemoryOn>, std::less<>> memory_on_;  ///< by device
  std::uint64_t saw_memory_ns_ = 0;
  std::vector<Unmanaged> unmanaged_;  ///< programs that use a GPU past gpuctl, as last seen
  GpuUserWatch unmanaged_watch_;
  std::map<std::pair<std::string, std::size_t>, bool> targets_met_;  ///< by slice and device
  /// By slice with a quota and device: how often it was seen to be throttled, and when that was last more.
  std::map<std::pair<std::string, std::size_t>, std::pair<std::int64_t, std::uint64_t>> throttled_;
  std::uint64_t started_ns_;
};

}  // namespace gpuctl::daemon
