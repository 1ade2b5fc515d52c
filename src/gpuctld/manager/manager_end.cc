// The methods of io.gpuctl about the end of programs: ending them in good order, and the faults that they report.
#include <fcntl.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <limits>

#include "base/one_line.h"
#include "gpuctld/clock.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "ipc/codec.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

namespace {

bool in_or_below(std::string_view slice, std::string_view path) {
  return path == "/" || slice == path || (slice.starts_with(path) && slice[path.size()] == '/');
}

std::int64_t microseconds_since_epoch() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

/// One member of each process.
Manager::Members Manager::members_of(std::optional<std::int64_t> pid, const std::optional<std::string>& slice) const {
  Members found;
  for (const auto& [session, member] : members_) {
    const Client& client = member->client;
    const bool meant = pid ? client.identity().pid == *pid : in_or_below(client.slice(), *slice);
    const bool there = std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return other->client.identity().pid == client.identity().pid;
    });
    if (meant && !there) found.push_back(member);
  }
  return found;
}

Answer Manager::kill(Session& session, ipc::Fields& fields) {
  const auto pid = fields.maybe_integer("pid", 1, std::numeric_limits<std::int32_t>::max());
  const auto slice = fields.maybe_text("slice");
  const auto name = fields.maybe_text("signal");
  const auto timeout = fields.maybe_integer("timeout_ms", 0, kLongestEndTimeout.count());
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (pid.has_value() == slice.has_value()) return invalid("pid", "give either 'pid' or 'slice'");
  EndOrder order;
  if (timeout) order.timeout = std::chrono::milliseconds(*timeout);
  if (name) {
    const std::optional<int> signal = ending_signal(*name);
    if (!signal) return invalid("signal", "must be " + std::string(kEndingSignals));
    order.signal = *signal;
  }
  if (slice && scheduler_.tree().find(*slice) == nullptr)
    return refuse_own("NoSuchSlice", {{"path", ipc::to_utf8(*slice)}});

  const Members members = members_of(pid, slice);
  if (pid && members.empty()) return refuse_own("NoSuchClient", {{"pid", *pid}});
  const sched::Caller who = caller(session);
  for (const auto& member : members) {
    const Client& client = member->client;
    if (client.identity().uid != who.uid && !scheduler_.tree().may_change_below(client.slice(), who))
      return refuse_own("PermissionDenied", {{"path", client.slice()}});
  }
  if (members.empty()) return success({{"clients", boost::json::array()}});
  for (const auto& member : members)
    log_("process " + std::to_string(member->client.identity().pid) + " (" +
         one_line(member->client.identity().command) + ", slice " + member->client.slice() + ") is ended by user " +
         std::to_string(who.uid) + " with " + signal_name(order.signal));
  end(members, order, [asker = session.weak_from_this()](std::vector<ipc::EndedClient> ended) {
    if (const auto waiting = asker.lock()) waiting->finish(success({{"clients", ipc::to_json(ended)}}));
  });
  Answer answer = success();
  answer.later = true;
  return answer;
}

/// Ends the members' processes. `done` is called once, later, when all of them have ended or are given up.
void Manager::end(const Members& members, EndOrder order, const AllEnded& done) {
  struct Group {
    std::vector<ipc::EndedClient> results;
    std::size_t left;
    AllEnded done;
  };
  const auto group = std::make_shared<Group>(Group{{}, members.size(), done});
  const auto one_ended = [group](const ipc::EndedClient& result) {
    group->results.push_back(result);
    if (--group->left == 0) group->done(std::move(group->results));
  };
  const bool mps = mps_active();
  std::map<std::int32_t, std::weak_ptr<Ending>> asked;
  for (const auto& member : members) {
    const ClientIdentity& identity = member->client.identity();
    ipc::EndedClient client{identity.pid, identity.command, member->client.slice(), "not active", {}, false};
    ipc::UniqueFd pidfd(member->exit.is_open() ? ::fcntl(member->exit.native_handle(), F_DUPFD_CLOEXEC, 0) : -1);
    if (!pidfd) {
      log_("process " + std::to_string(identity.pid) + " cannot be ended: there is no pidfd of it");
      boost::asio::post(context_, [one_ended, client] { one_ended(client); });
      continue;
    }
    const auto ending = Ending::create(
        context_, std::move(pidfd), std::move(client), order, log_, [this, one_ended](const ipc::EndedClient& result) {
          std::erase_if(endings_, [&](const auto& e) { return e->pid() == result.pid && e->over(); });
          one_ended(result);
        });
    // Work that has to complete before its program can end would wait for a grant, and so would the program's end.
    ending->on_killed([this, pid = identity.pid] {
      for (const auto& [session, killed] : members_)
        if (killed->client.identity().pid == pid) killed->client.open_grants();
    });
    endings_.insert(ending);
    asked.emplace(identity.pid, ending);
    ending->start(mps);
  }
  if (!mps || asked.empty()) return;
  std::vector<std::int32_t> pids;
  for (const auto& [pid, ending] : asked) pids.push_back(pid);
  mps_.terminate({.program = mps_control_program(), .pipe_directory = mps_pipe_directory()}, std::move(pids),
                 [asked = std::move(asked)](std::int32_t pid, const MpsControl::Outcome& outcome) {
                   if (const auto ending = asked.at(pid).lock()) ending->mps_answered(outcome);
                 });
}

Answer Manager::report_fault(Session& session, ipc::Fields& fields) {
  const auto found = members_.find(&session);
  if (found == members_.end()) return refuse_own("NotAttached", {});
  Member& member = *found->second;
  Client& client = member.client;
  const std::int64_t device = fields.integer("device", 0, static_cast<std::int64_t>(client.slots().size()) - 1);
  const std::int64_t error = fields.integer("error", 0, std::numeric_limits<std::int32_t>::max());
  std::string name = fields.text("name");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const auto index = static_cast<std::size_t>(device);
  scheduler_.update(now_ns());  // it may have asked for more since the previous fault
  const Client::Slot& slot = client.slots()[index];
  if (slot.device < 0 || slot.faulted) return success();
  const Gpu& gpu = scheduler_.devices()[static_cast<std::size_t>(slot.device)];
  scheduler_.fault(client, index, now_ns());
  arm_tick();
  const std::int32_t pid = client.identity().pid;
  // Under MPS the driver reports an error to a program that is being ended: that is no fault.
  if (std::any_of(endings_.begin(), endings_.end(), [&](const auto& ending) { return ending->pid() == pid; }))
    return success();
  const std::string line = faults_.add({.pid = pid,
                                        .command = client.identity().command,
                                        .slice = client.slice(),
                                        .device = gpu.index,
                                        .error = error,
                                        .name = std::move(name),
                                        .time_us = microseconds_since_epoch(),
                                        .shares_faults = !gpu.software && mps_active(),
                                        .of_process = member.faults++});
  if (!line.empty()) log_(line);
  return success();
}

}  // namespace gpuctl::daemon
