// The methods of io.gpuctl about programs: attaching them, and reporting what is known of them.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/cgroup.h"
#include "base/one_line.h"
#include "base/plural.h"
#include "gpuctld/clock.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/stub_map.h"
#include "sched/joins.h"

namespace gpuctl::daemon {

namespace {

/// Recorder keeps more than many programs launch in this time.
constexpr std::chrono::milliseconds kRecordEvery{500}, kRecordTheRest{1};
constexpr std::size_t kMostStuckName = 1000, kMostCommand = 256;
/// More than any GPU has.
constexpr std::int64_t kMostSmsSaid = 1'000'000;

/// `sms`: by device of the client. As many as the GPU has, or more, means that MPS keeps the program to nothing.
void note_mps_sms(Client& client, const std::vector<std::int64_t>& sms, const std::vector<Gpu>& gpus) {
  for (std::size_t i = 0; i < sms.size(); ++i) {
    Client::Slot& slot = client.slots()[i];
    if (slot.device >= 0 && sms[i] < gpus[static_cast<std::size_t>(slot.device)].sms)
      slot.mps_sms = static_cast<std::uint32_t>(sms[i]);
  }
}

/// Whether the slice could be made with other settings: its place in the tree is none's fault.
bool may_be_made(const sched::SliceError& error) {
  return error.code != sched::SliceError::Code::no_such_slice && error.field != "path";
}

std::string in_a_row(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text.append(text.empty() ? "" : "; ").append(line);
  return text;
}

}  // namespace

Answer Manager::list_clients(Session& session, ipc::Fields&) {
  return success({{"clients", ipc::to_json(describe_clients(nullptr, caller(session)))}});
}

Answer Manager::explain(Session& session, ipc::Fields& fields) {
  const std::int64_t pid = fields.integer("pid");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const auto& clients = scheduler_.clients();
  const auto found = std::find_if(clients.rbegin(), clients.rend(),
                                  [&](const Client& c) { return c.identity().pid == pid && !c.stands_in; });
  if (found == clients.rend()) return refuse_own("NoSuchClient", {{"pid", pid}});
  const sched::Caller viewer = caller(session);
  const bool open = may_look_into(found->identity().uid, found->slice(), viewer);
  return success({{"client", ipc::to_json(describe_client(*found, viewer))},
                  {"slice", slice_now(found->slice()).at("slice")},
                  {"kernels", ipc::to_json(open ? found->kernels() : std::vector<ipc::Kernel>())}});
}

/// Those of the caller's programs, to root all.
Answer Manager::list_kernels(Session& session, ipc::Fields&) {
  const std::uint32_t caller = session.peer().uid;
  std::vector<ipc::KernelDurations> kernels = scheduler_.knowledge().list();
  if (!budgets_.exempt(caller)) std::erase_if(kernels, [caller](const auto& kernel) { return kernel.uid != caller; });
  return success({{"kernels", ipc::to_json(kernels)}});
}

Answer Manager::forget_kernels(Session& session, ipc::Fields& fields) {
  const std::uint32_t caller = session.peer().uid;
  const auto given = fields.maybe_integer("uid", 0, kIdGreatest);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  std::optional<std::uint32_t> uid;
  if (given)
    uid = static_cast<std::uint32_t>(*given);
  else if (!budgets_.exempt(caller))
    uid = caller;
  if (uid != caller && !budgets_.exempt(caller)) return refuse_of_user(*uid);
  return success({{"forgotten", static_cast<std::int64_t>(scheduler_.knowledge().forget(uid))}});
}

Answer Manager::get_fairness(Session&, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (scheduler_.tree().find(path) == nullptr) return refuse_own("NoSuchSlice", {{"path", path}});
  return success({{"fairness", ipc::to_json(describe(path, scheduler_.fairness(now_ns())[path]))}});
}

Answer Manager::advise(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  std::optional<ipc::SliceSettings> settings;
  if (fields.has("settings")) {
    ipc::Fields nested = fields.object("settings");
    ipc::read(nested, settings.emplace());
    nested.refuse_unknown();
  }
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const auto& slices = scheduler_.tree().slices();
  const auto found = slices.find(path);
  if (found == slices.end() && !settings) return refuse_own("NoSuchSlice", {{"path", path}});
  std::optional<sched::SliceResult<std::vector<std::string>>> admitted;
  if (settings) admitted = would_admit(path, *settings);
  if (found == slices.end() && !*admitted && !may_be_made(admitted->error())) return refuse(admitted->error());
  const sched::IsolationEvidence evidence = scheduler_.isolation_evidence(path);
  const sched::IsolationChoice choice = sched::choose_isolation(evidence);
  const std::size_t index = static_cast<std::size_t>(std::distance(slices.begin(), found));
  const bool isolated = found == slices.end() ? choice.isolated : scheduler_.effective()[index].isolated;
  ipc::Advice advice{.isolation = std::string(sched::isolation_name(choice.isolated)),
                     .why = sched::words(choice, evidence),
                     .in_force = std::string(sched::isolation_name(isolated)),
                     .measured = {},
                     .room = room_for(path)};
  if (admitted) {
    advice.admitted = admitted->has_value();
    if (const std::string reason = *admitted ? in_a_row(**admitted) : admitted->error().message(); !reason.empty())
      advice.reason = reason;
  }
  const bool open = may_look_into(sched::kNobody, path, caller(session));
  for (const auto& [program, measured] : scheduler_.isolation_record().of(path))
    for (const bool isolated : {false, true})
      if (const auto& its = isolated ? measured.isolated : measured.shared)
        advice.measured.push_back({.program = open ? program : "",
                                   .isolation = std::string(sched::isolation_name(isolated)),
                                   .bursts = static_cast<std::int64_t>(its->bursts),
                                   .p99_us = std::chrono::duration<double, std::micro>(its->p99).count(),
                                   .others_per_s = its->others_per_s});
  return success(ipc::to_json(advice));
}

/// Whether the slice, which need not exist, could have the settings, were root to ask; if so, what may not come of
/// them.
sched::SliceResult<std::vector<std::string>> Manager::would_admit(const std::string& path,
                                                                  const ipc::SliceSettings& settings) const {
  sched::SliceTree tree = scheduler_.tree();
  const sched::Caller root{.uid = options_.root_uid, .gids = {}};
  const auto made = tree.find(path) == nullptr ? tree.create(path, settings, root) : tree.change(path, settings, root);
  if (!made) return made.error();
  std::vector<std::string> doubts;
  if (const auto refused = refuse_targets(tree, doubts)) return *refused;
  for (std::string& line : scheduler_.unfit_reserves(tree, {&path, 1})) doubts.push_back(std::move(line));
  return doubts;
}

/// What is promised beside the slice, which need not exist, and what can still be promised to it, on each device.
std::vector<ipc::Room> Manager::room_for(const std::string& path) {
  std::vector<ipc::Room> rooms;
  for (std::size_t device = 0; device < scheduler_.devices().size(); ++device) {
    const sched::Unpromised room = scheduler_.room_for(device, path);
    rooms.push_back({.device = scheduler_.devices()[device].index,
                     .reserved = room.reserved.count,
                     .reserve_free = room.reserve_free.count,
                     .memory_kept = static_cast<std::int64_t>(room.memory_kept),
                     .memory_free = static_cast<std::int64_t>(room.memory_free),
                     .isolated_part = scheduler_.isolated_part(device, path, now_ns())});
  }
  return rooms;
}

Answer Manager::record(Session& session, ipc::Fields& fields) {
  const bool original = fields.maybe_boolean("original").value_or(false);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  Recorder::Part part = scheduler_.read_records(&session, now_ns(), original);
  boost::json::array launches;
  const sched::Caller viewer = caller(session);
  for (auto& [uid, launch] : part.launches) {
    if (!may_look_into(uid, launch.slice, viewer)) launch.kernel.clear(), launch.module.clear(), launch.key.clear();
    launches.emplace_back(to_json(launch));
  }
  Answer answer = success({{"launches", std::move(launches)}, {"lost", static_cast<std::int64_t>(part.lost)}});
  answer.again = part.more ? kRecordTheRest : kRecordEvery;
  return answer;
}

/// The slice that a program asks for, or, where that is "", that which takes it in. Whose programs a slice takes in who
/// may change the root has said: it need not be their own. `exe`: the file that the program says it runs.
sched::SliceResult<std::string> Manager::slice_for(const Session& session, const std::string& asked,
                                                   const std::string& exe) const {
  if (asked.empty()) {
    std::string path = slice_of(session, exe);
    if (path.empty())
      return sched::SliceError{.code = sched::SliceError::Code::no_slice, .path = {}, .field = {}, .reason = {}};
    return path;
  }
  const auto may = scheduler_.tree().may_join(asked, caller(session));
  const bool taken_in =
      !may && may.error().code == sched::SliceError::Code::permission_denied && slice_of(session, exe) == asked;
  if (!may && !taken_in) return may.error();
  return asked;
}

/// Where programs in no slice are refused, so is one that names a slice in which it cannot be.
sched::SliceError Manager::refused_start(sched::SliceError error) const {
  using Code = sched::SliceError::Code;
  const bool nowhere = error.code == Code::no_such_slice || error.code == Code::permission_denied;
  if (nowhere && scheduler_.options().default_slice.empty()) error.code = Code::no_slice;
  return error;
}

/// That takes the program in, if it asks for none; "": none does.
std::string Manager::slice_of(const Session& session, const std::string& exe) const {
  const sched::SliceTree& tree = scheduler_.tree();
  const std::string cgroup = sched::join_by_cgroup(tree.slices()) ? cgroup_of(session.peer().pid) : "";
  const sched::Caller who = caller(session);
  const auto may_join = [&](std::string_view path) { return tree.may_join(path, who).has_value(); };
  return sched::slice_to_join(tree.slices(), {.caller = who, .cgroup = cgroup, .exe = exe, .may_join = may_join},
                              scheduler_.options().default_slice);
}

Answer Manager::make_page(Session& session, ipc::Fields& fields) {
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  auto page = ipc::NewStub::create();
  Answer answer = success({{"stub_bytes", ipc::kStubBytes}});
  if (page) answer.fds.emplace_back(::dup(page->fd.get()));
  if (!page || !answer.fds.front())
    return refuse_own("Unavailable", {{"reason", "gpuctld is out of file descriptors or memory"}});
  pages_.keep(session, std::move(*page));
  answer.next_within = PagesMade::kSoon;  // the page waits no longer
  return answer;
}

/// Without a page the program is asked for: `gpuctl run` joins for a moment, and nobody reads its grants.
Answer Manager::attach(Session& session, ipc::Fields& fields) {
  const std::string asked = fields.text("slice");
  const std::vector<std::string> uuids = fields.texts("device_uuids");
  const bool resumed = fields.boolean("resumed");
  const auto version = fields.maybe_integer("stub_version", 0, std::numeric_limits<std::uint32_t>::max());
  const std::vector<std::int64_t> mps_sms = fields.maybe_integers("mps_sms", 1, kMostSmsSaid);
  const auto queues = fields.maybe_integer("queues", 1, kMostQueues);
  const auto said = fields.maybe_text("command");
  const std::string exe = fields.maybe_text("exe").value_or("");
  const bool isolated = fields.maybe_boolean("isolated").value_or(false);
  const auto pipe_directory = fields.maybe_text("pipe_directory");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (!mps_sms.empty() && mps_sms.size() != uuids.size())
    return invalid("mps_sms", "must have a number for each of device_uuids");
  if (version && *version != ipc::stub_version()) return refuse_version(session, *version);
  if (attached_.find(session) != nullptr) return invalid("slice", "this connection is attached already");
  const MovedProgram* const moved =
      resumed ? kept_.moved({session.peer().pid, session.peer().start, session.peer().uid}) : nullptr;
  const bool goes_on = moved != nullptr && scheduler_.tree().find(moved->slice) != nullptr;
  // Who moved it had the right to.
  auto found = goes_on ? moved->slice : slice_for(session, asked, exe);
  // Refused it would go on without limits.
  if (!found && resumed && found.error().code == sched::SliceError::Code::permission_denied) {
    const std::string instead = slice_of(session, exe);
    found = instead.empty() ? "/" : instead;
  }
  if (!found) return refuse(resumed ? found.error() : refused_start(found.error()));
  const std::string& slice = *found;
  if (!budgets_.exempt(session.peer().uid) && clients_of(session.peer().uid) >= kMaxClientsOfUser)
    return invalid("slice", "user " + std::to_string(session.peer().uid) + " has " + std::to_string(kMaxClientsOfUser) +
                                " programs attached, as many as one user may have");
  auto devices = match_devices(uuids);
  if (!devices) return invalid("device_uuids", devices.error().message);
  std::optional<ipc::NewStub> page;
  if (version || pages_.any_for(session)) {
    page = pages_.take(session);
    if (!page) return refuse_own("NoPage", {});
  }

  const Peer& peer = session.peer();
  const std::string command = one_line(said ? ipc::to_utf8(said->substr(0, kMostCommand)) : name_of(peer.pid));
  ClientIdentity identity{peer.pid, peer.uid, command, peer.start};
  auto client = page ? Client::create(std::move(identity), slice, std::move(*devices), std::move(*page))
                     : Client::create(std::move(identity), slice, std::move(*devices));
  if (client) note_mps_sms(*client, mps_sms, scheduler_.devices());
  // Who comes back may be of a slice that was isolated when the program started, and so may who starts.
  const auto told = told_isolated_.find(&session);
  const bool was_told = told != told_isolated_.end() && told->second == slice;
  if (client) client->isolated = isolated && (resumed || was_told || is_isolated(slice));
  if (client && pipe_directory) {
    // Nobody keeps others' MPS in use by saying so. Who was moved stays in the one of its former slice.
    const std::string mps = mps_.name_in(*pipe_directory);
    if (mps == kSharedMps || MpsPlaces::is_for(mps, slice) || (goes_on && moved->mps == mps)) client->mps = mps;
  }
  if (client) client->keeps_mps = pipe_directory && client->mps.empty();
  ipc::UniqueFd kick(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Answer answer = success({{"slice", slice},
                           {"latency_target_us", scheduler_.options().latency_target.count()},
                           {"block_target_us", scheduler_.options().block_target.count()}});
  if (kick) answer.fds.emplace_back(::dup(kick.get()));
  if (!client || answer.fds.empty() || !answer.fds.front()) {
    log_of(peer.uid, "process " + std::to_string(peer.pid) + " cannot be attached: out of file descriptors or memory");
    return invalid("slice", "gpuctld is out of file descriptors or memory");
  }

  const bool time_sliced = look_at_mps();
  if (!resumed) kept_.forget_moved({peer.pid, peer.start, peer.uid}, now_ns());
  Client& added = kept_.attach(std::move(*client), time_sliced, now_ns());
  if (!goes_on) scheduler_.isolate_as(added, now_ns());
  session.trust_as_client();
  // A program that says nothing has what MPS makes, unless it was promised more. `gpuctl run`, which attaches without
  // the version of a library, has none.
  const bool in_mps = added.context ? !added.context->empty() : !time_sliced;
  if (queues || (version && in_mps && !queues_.has(session)))
    queues_.note(session, budgets_.exempt(peer.uid), static_cast<std::uint32_t>(queues.value_or(kUsualQueues)));
  attached_.add(session, added, std::move(kick), peer_pidfd(session.socket(), peer), version.has_value());
  keep_usage_later();
  answer.reply.parameters["in_force"] = added.in_force();
  const ipc::Event joined = event_of("joined", added, resumed ? "came back" : "");
  const bool is_news = attached_.is_news(peer.pid, slice) || resumed;
  const std::string line = is_news ? who(joined) + (resumed ? " came back to" : " joined") + " slice " + slice : "";
  if (version)  // else it is `gpuctl run`, before it becomes the program
    happened(joined, line);
  else if (is_news)
    log_of(peer.uid, line);
  note_mps_use();
  driver_limits_.look_soon();
  arm_tick();
  return answer;
}

Answer Manager::move(Session& session, ipc::Fields& fields) {
  const std::int64_t pid = fields.integer("pid", 1, std::numeric_limits<std::int32_t>::max());
  const std::string slice = fields.text("slice");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const Attached::Members members = attached_.all_of(pid);
  if (members.empty()) return refuse_own("NoSuchClient", {{"pid", pid}});
  const sched::Caller by = caller(session);
  for (const auto& member : members) {
    const std::string& from = member->client.slice();
    if (member->client.identity().uid != by.uid && !scheduler_.tree().may_change_below(from, by))
      return refuse_own("PermissionDenied", {{"path", from}});
  }
  if (scheduler_.tree().find(slice) == nullptr) return refuse_own("NoSuchSlice", {{"path", slice}});
  if (const auto may = slice_for(session, slice); !may) return refuse(may.error());
  move_members(members, slice, by.uid);
  const Client& client = members.front()->client;
  boost::json::array notes;
  const bool apart = scheduler_.is_apart(client);
  if (apart && !client.mps.empty() && client.mps != mps_of(slice))
    notes.emplace_back(
        "until it starts again it shares a context with programs of the slice that it was in, and neither counts for "
        "the SMs of the other");
  else if (apart != scheduler_.effective()[client.node].isolated)
    notes.emplace_back(apart ? "until it starts again it has a context of its own, and takes turns with others"
                             : "until it starts again it shares a context with others");
  const auto kept = std::ranges::find_if(client.slots(), [](const Client::Slot& slot) { return slot.mps_sms > 0; });
  if (kept != client.slots().end())
    notes.emplace_back("until it starts again MPS keeps it to " + plural(kept->mps_sms, "SM"));
  boost::json::object reply{{"client", ipc::to_json(describe_client(client, by))}};
  if (!notes.empty()) reply["notes"] = std::move(notes);
  return success(std::move(reply));
}

/// A program may have many connections. They are moved with one decision and one record, and told of once.
void Manager::move_members(const Attached::Members& members, const std::string& slice, std::uint32_t by_uid) {
  std::vector<Client*> clients;
  std::vector<MovedProgram> programs;
  std::map<std::string, const Client*> from;  // by slice
  for (const auto& member : members) {
    Client& client = member->client;
    if (client.slice() == slice) continue;
    ends_.ended().moved(client.slice(), client.take_counts());
    clients.push_back(&client);
    programs.push_back({client.identity().process(), slice, client.mps});
    from.emplace(client.slice(), &client);
  }
  if (clients.empty()) return;
  scheduler_.move(clients, slice, now_ns());
  kept_.note_moved(std::move(programs), now_ns());
  driver_limits_.look_soon();
  arm_tick();
  const std::string by = " by " + user_words(by_uid);
  for (const auto& [before, client] : from) {
    ipc::Event left = event_of("moved", *client, "to " + slice + by),
               came = event_of("moved", *client, "from " + before + by);
    left.slice = before;
    happened(std::move(left), {}, by_uid);
    const std::string line = who(came) + " is moved from slice " + before + " to slice " + slice + by;
    happened(std::move(came), line, by_uid);
  }
}

Answer Manager::refuse_version(Session& session, std::int64_t version) {
  const Peer& peer = session.peer();
  const std::string theirs = "version " + std::to_string(version), ours = std::to_string(ipc::stub_version());
  if (attached_.is_news(peer.pid, theirs))
    log_of(peer.uid, "process " + std::to_string(peer.pid) + " (" + name_of(peer.pid) + ") has a library with " +
                         theirs + " of the stub page, gpuctld has " + ours + ": it runs without limits");
  return refuse_own("OtherVersion", {{"client", version}, {"daemon", ipc::stub_version()}});
}

Answer Manager::report_kernels(Session& session, ipc::Fields& fields) {
  const Attached::Member* member = attached_.find(session);
  if (member == nullptr) return refuse_own("NotAttached", {});
  auto kernels = ipc::read_list<ipc::Kernel>(fields, "kernels");
  const std::optional<std::string> stuck = fields.maybe_text("stuck");
  const std::int64_t sms = fields.maybe_integer("sms", 0).value_or(0), ms = fields.maybe_integer("ms", 0).value_or(0);
  if (!fields.ok()) return invalid(fields);
  Client& client = member->client;
  if (stuck) {
    const ClientIdentity& who = client.identity();
    log_of(who.uid, "process " + std::to_string(who.pid) + " (" + who.command + ", slice " + client.slice() +
                        "): a launch of " + one_line(ipc::to_utf8(stuck->substr(0, kMostStuckName))) +
                        " has not ended for " + std::to_string(ms) + " ms on the " + plural(sms, "SM") +
                        " to which it is confined; its blocks may wait for some that have no room there; its next "
                        "launches run on any SMs, and gpuctl kill ends this one");
  }
  const std::uint32_t uid = client.identity().uid;
  std::size_t room = kMaxKernelTextOfClient;
  if (!budgets_.exempt(uid)) {
    const auto [of_user, of_all] = kernel_text_of(uid);
    const auto left = [&](std::size_t most, std::size_t used) {
      return most - std::min(most, used - client.kernel_text());
    };
    room = std::min({room, left(kMaxKernelTextOfUser, of_user), left(kMaxKernelTextOfAll, of_all)});
  }
  client.report(std::move(kernels), room);
  return success();
}

Answer Manager::set_hint(Session& session, ipc::Fields& fields) {
  const Attached::Member* member = attached_.find(session);
  if (member == nullptr) return refuse_own("NotAttached", {});
  Client& client = member->client;
  const sched::Effective& slice = scheduler_.effective()[client.node];
  const std::int32_t allowed = std::max(slice.priority, slice.turn_priority);
  const auto priority = static_cast<std::int32_t>(fields.integer("priority", sched::kPriorityMin, allowed));
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  scheduler_.set_hint(client, priority, now_ns());
  return success();
}

Answer Manager::hold_memory(Session& session, ipc::Fields& fields) {
  Attached::Member* const member = attached_.find(session);
  if (member == nullptr) return refuse_own("NotAttached", {});
  Client& client = member->client;
  const std::int64_t device = fields.integer("device", 0, static_cast<std::int64_t>(client.slots().size()) - 1);
  const std::int64_t bytes = fields.integer("bytes", 0);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const Scheduler::MemoryAnswer answer =
      scheduler_.hold_memory(client, static_cast<std::size_t>(device), static_cast<std::uint64_t>(bytes), now_ns());
  const int gpu = client.slots()[static_cast<std::size_t>(device)].device;
  if (answer.granted && gpu >= 0) see_memory_of(static_cast<std::size_t>(gpu));
  if (!answer.decided_by.empty()) {
    MemoryCounts& counts = memory_counts_[answer.decided_by];
    ++(answer.granted ? counts.waits : counts.refusals);
    if (!answer.granted && !answer.kept && !answer.full)
      ++memory_on(answer.decided_by, static_cast<std::size_t>(gpu)).max_refusals;
    tell_memory(*member, static_cast<std::size_t>(device), bytes, answer);
  }
  boost::json::object parameters{{"granted", answer.granted}};
  if (answer.wait.count() > 0) parameters["wait_us"] = answer.wait.count();
  if (answer.total) parameters["total"] = static_cast<std::int64_t>(*answer.total);
  if (answer.free) parameters["free"] = static_cast<std::int64_t>(*answer.free);
  return success(std::move(parameters));
}

std::size_t Manager::clients_of(std::uint32_t uid) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(scheduler_.clients(), [uid](const Client& c) { return c.identity().uid == uid; }));
}

/// Of this user, and of all users with a budget.
std::pair<std::size_t, std::size_t> Manager::kernel_text_of(std::uint32_t uid) const {
  std::size_t of_user = 0, of_all = 0;
  for (const Client& client : scheduler_.clients()) {
    const std::uint32_t whose = client.identity().uid;
    if (whose == uid) of_user += client.kernel_text();
    if (!budgets_.exempt(whose)) of_all += client.kernel_text();
  }
  return {of_user, of_all};
}

/// Whether the viewer may see what a program of this user in this slice runs: its command line, and the names of its
/// kernels. The program's user, owners of its slice and of those above it, and root may; others see what it has.
bool Manager::may_look_into(std::uint32_t uid, const std::string& slice, const sched::Caller& viewer) const {
  return uid == viewer.uid || budgets_.exempt(viewer.uid) ||
         (scheduler_.tree().find(slice) != nullptr && scheduler_.tree().may_change_below(slice, viewer));
}

/// Names its devices by the driver's index, whichever of them are managed.
ipc::Client Manager::describe_client(const Client& client, const sched::Caller& viewer) const {
  ipc::Client result = client.describe(job_state(client));
  result.isolated = scheduler_.is_apart(client);
  if (!may_look_into(client.identity().uid, client.slice(), viewer)) result.command.clear();
  for (ipc::ClientUsage& usage : result.usage)
    usage.device = scheduler_.devices()[static_cast<std::size_t>(usage.device)].index;
  return result;
}

std::vector<ipc::Client> Manager::describe_clients(const std::string* slice, const sched::Caller& viewer) const {
  std::vector<ipc::Client> result;
  for (const Client& client : scheduler_.clients())
    if (!client.stands_in && (slice == nullptr || client.slice() == *slice))
      result.push_back(describe_client(client, viewer));
  return result;
}

/// For each of a client's devices the index of the managed device; -1 if it is not managed.
Result<std::vector<int>> Manager::match_devices(const std::vector<std::string>& uuids) const {
  if (uuids.empty() || uuids.size() > ipc::kMaxDevices)
    return fail("must name 1 to " + std::to_string(ipc::kMaxDevices) + " devices");
  std::vector<int> result;
  const std::vector<Gpu>& gpus = scheduler_.devices();
  for (const std::string& uuid : uuids) {
    const auto found =
        std::find_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return same_uuid(gpu.uuid, uuid); });
    const int index = found == gpus.end() ? -1 : static_cast<int>(found - gpus.begin());
    if (index >= 0 && std::find(result.begin(), result.end(), index) != result.end())
      return fail("names a device twice");
    result.push_back(index);
  }
  if (std::all_of(result.begin(), result.end(), [](int device) { return device < 0; }))
    return fail("none of them is managed by this gpuctld; it manages " + gpus.front().uuid +
                (gpus.size() > 1 ? " and others" : ""));
  return result;
}

}  // namespace gpuctl::daemon
