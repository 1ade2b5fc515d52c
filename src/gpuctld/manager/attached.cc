#include "gpuctld/manager/attached.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "gpuctld/manager/tick_pace.h"
#include "gpuctld/protocol/when_ended.h"

namespace gpuctl::daemon {

using boost::asio::posix::stream_descriptor;
using boost::system::error_code;

namespace {

/// Empties an eventfd that another process may have made blocking.
void drain(int eventfd) {
  std::uint64_t count = 0;
  const iovec into{&count, sizeof count};
  // Offset -1 means the current position. A kernel without RWF_NOWAIT for eventfds gets a plain read.
  if (::preadv2(eventfd, &into, 1, -1, RWF_NOWAIT) < 0 && errno == EOPNOTSUPP)
    (void)!::read(eventfd, &count, sizeof count);
}

}  // namespace

Attached::Attached(boost::asio::io_context& context, Scheduler& scheduler, Hooks hooks)
    : context_(context), scheduler_(scheduler), hooks_(std::move(hooks)), departed_(context) {}

void Attached::Member::wait_for_kick() {
  kick.async_wait(stream_descriptor::wait_read, [self = shared_from_this()](error_code error) {
    if (error || self->gone) return;
    const bool in_time =
        self->all.hooks_.woken(self->client.identity().uid, [&] { drain(self->kick.native_handle()); });
    self->resting = ++self->kicks >= kKicksPerTick || !in_time;
    if (!self->resting) return self->wait_for_kick();
    self->all.any_rests_ = true;
    self->all.hooks_.rests();
  });
}

void Attached::Member::wait_for_exit() {
  when_ended(exit, shared_from_this(), [this](const auto&) {
    if (!gone) session.close();
  });
}

void Attached::add(Session& session, Client& client, ipc::UniqueFd kick, ipc::UniqueFd exit, bool program) {
  const auto member = std::make_shared<Member>(*this, session, client, context_);
  members_.emplace(&session, member);
  member->program = program;
  member->kick.assign(kick.release());
  member->wait_for_kick();
  if (!exit) return;
  member->exit.assign(exit.release());
  member->wait_for_exit();
}

bool Attached::leave(Session& session, std::uint64_t now_ns) {
  const auto found = members_.find(&session);
  if (found == members_.end()) return false;
  const std::shared_ptr<Member> member = std::move(found->second);
  members_.erase(found);
  member->gone = true;
  error_code ignored;
  member->kick.close(ignored);
  ipc::UniqueFd pidfd(member->exit.is_open() ? member->exit.release() : -1);
  if (stopped_) return false;
  departed_.keep(scheduler_.remove(member->client, now_ns), std::move(pidfd));
  return true;
}

Attached::Member* Attached::find(Session& session) const {
  const auto found = members_.find(&session);
  return found == members_.end() ? nullptr : found->second.get();
}

Attached::Members Attached::of(std::optional<std::int64_t> pid, const std::optional<std::string>& slice) const {
  Members found;
  for (const auto& [session, member] : members_) {
    const Client& client = member->client;
    const bool meant = pid ? client.identity().pid == *pid : sched::in_or_below(client.slice(), *slice);
    const bool there = std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return other->client.identity().pid == client.identity().pid;
    });
    if (meant && !there) found.push_back(member);
  }
  return found;
}

Attached::Members Attached::all_of(std::int64_t pid) const {
  Members found;
  for (const auto& [session, member] : members_)
    if (member->client.identity().pid == pid) found.push_back(member);
  return found;
}

std::optional<Ends::Program> Attached::program_of(const Client& client) const {
  for (const auto& [session, member] : members_) {
    if (&member->client != &client) continue;
    const int pidfd = member->exit.is_open() ? ::fcntl(member->exit.native_handle(), F_DUPFD_CLOEXEC, 0) : -1;
    return Ends::Program{client.identity(), client.slice(), ipc::UniqueFd(pidfd), {}};
  }
  return std::nullopt;
}

std::vector<sched::GroupedProgram> Attached::grouped() {
  std::vector<sched::GroupedProgram> programs;
  std::set<std::int32_t> seen;
  for (const auto& [session, member] : members_) {
    const Client& client = member->client;
    if (!seen.insert(client.identity().pid).second) continue;
    if (!member->cgroup) member->cgroup = unified_cgroup_of(client.identity().process());
    programs.push_back({.cgroup = *member->cgroup, .slice = client.slice()});
  }
  return programs;
}

void Attached::open_grants(std::int32_t pid) {
  for (const auto& [session, member] : members_)
    if (member->client.identity().pid == pid) member->client.open_grants();
}

void Attached::wake_resting(std::uint64_t now_ns) {
  if (now_ns < woken_ns_ + static_cast<std::uint64_t>(std::chrono::nanoseconds(kBusyTick).count())) return;
  woken_ns_ = now_ns;
  any_rests_ = false;
  for (const auto& [session, member] : members_) {
    member->kicks = 0;
    if (std::exchange(member->resting, false)) member->wait_for_kick();
  }
}

void Attached::stop() {
  stopped_ = true;
  departed_.stop();
}

}  // namespace gpuctl::daemon
