// The daemon without its process: event loop, clients, slices, state. The methods of the interface are in
// manager_varlink.cc, manager_clients.cc and manager_end.cc. Everything runs on the thread that runs the io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "gpuctld/budgets/user_budgets.h"
#include "gpuctld/clients/departed.h"
#include "gpuctld/clients/end_client.h"
#include "gpuctld/clients/faults.h"
#include "gpuctld/config/config.h"
#include "gpuctld/config/state.h"
#include "gpuctld/grants/scheduler.h"
#include "gpuctld/host/mps_control.h"
#include "gpuctld/manager/arrivals.h"
#include "gpuctld/manager/tick_pace.h"
#include "gpuctld/protocol/varlink_server.h"
#include "gpuctld/restart/holdings_record.h"
#include "gpuctld/restart/returning.h"
#include "gpuctld/restart/state_keeper.h"
#include "ipc/fields.h"

namespace gpuctl::daemon {

/// What was learnt about kernels is written this often at most. What is newer is lost when the daemon is killed.
inline constexpr std::chrono::seconds kSaveKernelsEvery{5};
/// How often a client may ask between two ticks; then it waits for the next tick. No honest client comes near it.
inline constexpr int kKicksPerTick = 200;

struct ManagerOptions {
  std::string state_file;     ///< "": nothing is kept
  std::string kernels_file;   ///< what was learnt about kernels; "": nothing is kept
  std::string attached_file;  ///< what attached programs may be using; "": nothing is kept
  std::string config_file;    ///< "": none; read again on reload
  bool config_required = false;
  std::uint32_t root_uid = 0;                ///< owner of the root slice
  std::chrono::microseconds evict_storm{0};  ///< mean time between random grants; 0: off
  std::vector<std::string> notes;            ///< shown by GetStatus
};

/// Its many members are the parts of the daemon, each a class with a task of its own; it alone connects them.
class Manager {
 public:
  using Log = std::function<void(const std::string&)>;

  /// Restores the state and applies the configuration. `devices` are all that exist; the configuration may select some.
  static Result<std::unique_ptr<Manager>> create(boost::asio::io_context& context, ManagerOptions options,
                                                 std::vector<Gpu> devices, Config config, Log log);
  ~Manager();

  /// Takes calls on a listening socket, which the manager then owns.
  void serve(int listener);

  /// Reads the configuration again. If anything in it is wrong the old one stays as a whole, and the lines say why.
  std::vector<std::string> reload();

  /// Closes all connections; clients keep their last grant. Then the io_context has no more work.
  void stop();

  const Scheduler& scheduler() const { return scheduler_; }

 private:
  /// An attached session.
  struct Member : std::enable_shared_from_this<Member> {
    Member(Manager& manager, Session& session, Client& client, boost::asio::io_context& context)
        : manager(manager), session(session), client(client), kick(context), exit(context) {}
    Manager& manager;
    Session& session;
    Client& client;
    boost::asio::posix::stream_descriptor kick;  ///< eventfd: its demand rose above its grant
    boost::asio::posix::stream_descriptor exit;  ///< pidfd
    bool gone = false, resting = false;
    int kicks = 0, faults = 0;
    void wait_for_kick();
    void wait_for_exit();
  };

  Manager(boost::asio::io_context& context, ManagerOptions options, Config config, std::vector<Gpu> devices,
          sched::SliceTree tree, std::map<std::string, std::string> configured, Log log);

  bool on_kick(std::uint32_t uid);
  void look(std::uint64_t now_ns);
  Conditions conditions() const;
  void on_closed(Session& session);
  void on_refused(std::uint32_t uid);
  /// A line that this user caused.
  void log_of(std::uint32_t uid, const std::string& line);
  std::size_t clients_of(std::uint32_t uid) const;
  std::pair<std::size_t, std::size_t> kernel_text_of(std::uint32_t uid) const;
  void arm_tick();
  void tick();
  void arm_storm();
  void handle_disobedience(Client& client);
  using Members = std::vector<std::shared_ptr<Member>>;
  using AllEnded = std::function<void(std::vector<ipc::EndedClient>)>;
  void end(const Members& members, EndOrder order, const AllEnded& done);
  Members members_of(std::optional<std::int64_t> pid, const std::optional<std::string>& slice) const;
  void save();
  void load_kernels();
  void save_kernels();
  void expect_holders();
  void on_freed();
  void change_tree(sched::SliceTree tree);

  // manager_varlink.cc, manager_clients.cc, manager_end.cc
  Answer call(Session& session, const ipc::Call& call);
  Answer create_slice(Session& session, ipc::Fields& fields);
  Answer delete_slice(Session& session, ipc::Fields& fields);
  Answer set_slice(Session& session, ipc::Fields& fields);
  Answer list_slices(Session& session, ipc::Fields& fields);
  Answer get_slice(Session& session, ipc::Fields& fields);
  Answer list_clients(Session& session, ipc::Fields& fields);
  Answer explain(Session& session, ipc::Fields& fields);
  Answer get_status(Session& session, ipc::Fields& fields);
  Answer list_kernels(Session& session, ipc::Fields& fields);
  Answer forget_kernels(Session& session, ipc::Fields& fields);
  Answer record(Session& session, ipc::Fields& fields);
  Answer monitor(Session& session, ipc::Fields& fields);
  Answer attach(Session& session, ipc::Fields& fields);
  Answer report_kernels(Session& session, ipc::Fields& fields);
  Answer set_hint(Session& session, ipc::Fields& fields);
  Answer hold_memory(Session& session, ipc::Fields& fields);
  Answer kill(Session& session, ipc::Fields& fields);
  Answer report_fault(Session& session, ipc::Fields& fields);
  using Method = Answer (Manager::*)(Session&, ipc::Fields&);
  static const std::map<std::string_view, Method>& methods();
  Answer slice_reply(const std::string& path) const;
  ipc::Slice describe_slice(std::size_t index, const std::string& path, const sched::Slice& slice,
                            const std::vector<Scheduler::SliceUse>& use) const;
  std::vector<ipc::Slice> describe_slices() const;
  std::vector<ipc::Client> describe_clients(const std::string* slice) const;
  std::vector<ipc::Device> describe_devices() const;
  ipc::Client describe_client(const Client& client) const;
  Result<std::vector<int>> match_devices(const std::vector<std::string>& uuids) const;

  boost::asio::io_context& context_;
  ManagerOptions options_;
  Config config_;
  std::map<std::string, std::string> configured_;
  Log log_;
  Scheduler scheduler_;
  StateKeeper state_keeper_;
  HoldingsRecord holdings_;
  Returning returning_;
  UserBudgets budgets_;
  std::unique_ptr<VarlinkServer> server_;
  std::map<Session*, std::shared_ptr<Member>> members_;
  Arrivals arrivals_;
  Faults faults_;
  MpsControl mps_;
  std::set<std::shared_ptr<Ending>> endings_;
  Departed departed_;
  boost::asio::steady_timer tick_timer_, storm_timer_;
  bool tick_armed_ = false, stopped_ = false;
  bool anybody_rests_ = false;  ///< a client wakes the daemon too often, and is looked at with the next tick
  std::chrono::steady_clock::time_point tick_at_;
  TickPace pace_;
  Random random_{std::random_device{}()};
  std::uint64_t started_ns_, kernels_saved_ns_ = 0;
};

}  // namespace gpuctl::daemon
