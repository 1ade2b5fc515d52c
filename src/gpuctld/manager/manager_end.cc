// The methods of io.gpuctl about the end of programs: ending them in good order, and the faults that they report.
#include <cstdint>
#include <limits>

#include "base/one_line.h"
#include "gpuctld/clock.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "ipc/codec.h"
#include "ipc/message.h"

namespace gpuctl::daemon {

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

  const Attached::Members members = attached_.of(pid, slice);
  if (pid && members.empty()) return refuse_own("NoSuchClient", {{"pid", *pid}});
  const sched::Caller who = caller(session);
  for (const auto& member : members) {
    const Client& client = member->client;
    if (client.identity().uid != who.uid && !scheduler_.tree().may_change_below(client.slice(), who))
      return refuse_own("PermissionDenied", {{"path", client.slice()}});
  }
  if (members.empty()) return success({{"clients", boost::json::array()}});
  if (!budgets_.exempt(who.uid) && ends_.under_way(who.uid) >= kMaxEndingsOfUser)
    return invalid("pid", "user " + std::to_string(who.uid) + " has " + std::to_string(kMaxEndingsOfUser) +
                              " programs ended already, as many as one user may at a time");
  std::vector<Ends::Program> programs;
  for (const auto& member : members) {
    const std::string how = "by " + user_words(who.uid) + " with " + signal_name(order.signal);
    const ipc::Event killed = event_of("killed", member->client, how);
    happened(killed, who_in_slice(killed) + " is ended " + how, who.uid);
    programs.push_back(*attached_.program_of(member->client));
    programs.back().pipe_directory = pipe_directory_of(member->client);
  }
  const auto tell = [asker = session.weak_from_this()](std::vector<ipc::EndedClient> ended) {
    if (const auto waiting = asker.lock()) waiting->finish(success({{"clients", ipc::to_json(ended)}}));
  };
  asked_ends_[&session] = ends_.end(std::move(programs), order, who.uid, tell);
  Answer answer = success();
  answer.later = true;
  return answer;
}

Answer Manager::report_fault(Session& session, ipc::Fields& fields) {
  Attached::Member* const member = attached_.find(session);
  if (member == nullptr) return refuse_own("NotAttached", {});
  Client& client = member->client;
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
  if (ends_.is_ending(pid)) return success();
  ipc::Event event = event_of("fault", client,
                              one_line(ipc::to_utf8(name.substr(0, kMostFaultName))) + " (" + std::to_string(error) +
                                  ") on GPU " + std::to_string(gpu.index));
  const std::string line = ends_.faults().add({.pid = pid,
                                               .command = client.identity().command,
                                               .slice = client.slice(),
                                               .device = gpu.index,
                                               .error = error,
                                               .name = std::move(name),
                                               .time_us = epoch_us(),
                                               .shares_faults = gpu.needs_mps() && !pipe_directory_of(client).empty(),
                                               .of_process = member->faults++});
  if (!line.empty()) happened(std::move(event), line);
  return success();
}

}  // namespace gpuctl::daemon
