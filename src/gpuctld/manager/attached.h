// The attached sessions: which client each one is, its wake-ups, and the end of its process.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpuctld/ends/departed.h"
#include "gpuctld/ends/ends.h"
#include "gpuctld/manager/arrivals.h"
#include "gpuctld/protocol/session.h"
#include "gpuctld/scheduler/scheduler.h"
#include "ipc/unique_fd.h"
#include "sched/group_limits.h"

namespace gpuctl::daemon {

/// How often a client may ask in kBusyTick; then it waits for the next tick. No honest client comes near it.
inline constexpr int kKicksPerTick = 20;

/// Everything is called on the thread that runs the io_context.
class Attached {
 public:
  struct Member : std::enable_shared_from_this<Member> {
    Member(Attached& all, Session& session, Client& client, boost::asio::io_context& context)
        : all(all), session(session), client(client), kick(context), exit(context) {}
    Attached& all;
    Session& session;
    Client& client;
    boost::asio::posix::stream_descriptor kick;  ///< eventfd: its demand rose above its grant
    boost::asio::posix::stream_descriptor exit;  ///< pidfd
    std::optional<std::string> cgroup;           ///< once it was of interest; "": not known
    bool program = false;  ///< it is the library in a program, not `gpuctl run`, which joins for a moment before
    bool gone = false, resting = false;
    int kicks = 0, faults = 0;
    std::uint64_t memory_told_ns = 0;  ///< when it was last told of that a limit refused it memory
    std::uint64_t wait_told_ns = 0;    ///< the same, of one that let it wait
    std::uint64_t disobeyed_told_ns = 0;
    void wait_for_kick();
    void wait_for_exit();
  };
  using Members = std::vector<std::shared_ptr<Member>>;

  struct Hooks {
    /// A client of this user wakes the daemon: `drain` first. False if the user has taken too much of the daemon's
    /// time.
    std::function<bool(std::uint32_t uid, const std::function<void()>& drain)> woken;
    /// A client wakes the daemon too often, and is looked at with the next tick.
    std::function<void()> rests;
  };

  /// `scheduler` outlives this object.
  Attached(boost::asio::io_context& context, Scheduler& scheduler, Hooks hooks);

  /// `client` is in the scheduler. `kick`: its eventfd. `exit`: its pidfd, or empty. `program`: as in Member.
  void add(Session& session, Client& client, ipc::UniqueFd kick, ipc::UniqueFd exit, bool program);

  /// The session is closed: what its client held is freed before this returns. False if it was not attached, or after
  /// stop().
  bool leave(Session& session, std::uint64_t now_ns);

  /// Null: the session is not attached.
  Member* find(Session& session) const;
  /// One member of each process: of this number, or in this slice or below it.
  Members of(std::optional<std::int64_t> pid, const std::optional<std::string>& slice) const;
  /// All members of the process.
  Members all_of(std::int64_t pid) const;
  /// What it takes to end the client's program. Empty if no session is attached for the client.
  std::optional<Ends::Program> program_of(const Client& client) const;
  /// One of each process.
  std::vector<sched::GroupedProgram> grouped();
  /// Opens the grants of all clients of the process (Client::open_grants).
  void open_grants(std::int32_t pid);

  bool empty() const { return members_.empty(); }
  std::size_t size() const { return members_.size(); }
  bool any_rests() const { return any_rests_; }
  /// A tick: those that rest are listened to again, if it is not one of a handover, which come sooner.
  void wake_resting(std::uint64_t now_ns);

  /// Whether the log has not said this of the process yet: its slice, or why it is in none.
  bool is_news(std::int32_t pid, const std::string& what) { return arrivals_.news(pid, what); }

  /// The daemon ends: clients keep their grants.
  void stop();

 private:
  boost::asio::io_context& context_;
  Scheduler& scheduler_;
  Hooks hooks_;
  std::map<Session*, std::shared_ptr<Member>> members_;
  Departed departed_;
  Arrivals arrivals_;
  std::uint64_t woken_ns_ = 0;  ///< when those that rested were listened to again
  bool any_rests_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
