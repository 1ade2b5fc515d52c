// What happens, told: to the log or the journal at once, and to callers of Events.
#include <algorithm>
#include <span>
#include <utility>

#include "base/one_line.h"
#include "base/process_owner.h"
#include "gpuctld/budgets/monitor_pace.h"
#include "gpuctld/clock.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/event_kinds.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "ipc/codec.h"
#include "ipc/message.h"
#include "sched/joins.h"

namespace gpuctl::daemon {

namespace {

/// Those who follow are told of what happened meanwhile together.
constexpr std::chrono::milliseconds kTellTogether{100}, kTellTheRest{1};
/// How often targets and MPS are looked at.
constexpr std::uint64_t kLookEveryNs = 1'000'000'000;
/// A program that is refused memory again and again is told of so often.
constexpr std::uint64_t kTellMemoryEveryNs = 1'000'000'000;
/// A slice that was not throttled for so long is told of anew.
constexpr std::uint64_t kTellThrottledEveryNs = 60'000'000'000;
constexpr std::size_t kMostPath = 600;

/// Whether a refusal of the method is told: those that change something for others, or somebody's place.
bool is_told(std::string_view method) {
  constexpr std::string_view kTold[] = {"CreateSlice", "DeleteSlice", "SetSlice", "ApplySlices",  "NoteSaved",
                                        "Attach",      "Kill",        "Move",     "ForgetKernels"};
  return std::ranges::find(kTold, method) != std::end(kTold);
}

/// "PermissionDenied", "InvalidValue, field max, reason must be 0 to 16777214, not -1"
std::string error_words(const ipc::Reply& reply) {
  std::string words = reply.error.substr(reply.error.rfind('.') + 1);
  for (const auto& [name, value] : reply.parameters) {
    if (!value.is_string() && !value.is_int64()) continue;
    words.append(", ").append(name.data(), name.size()).append(" ");
    words += value.is_string() ? std::string(value.get_string()) : std::to_string(value.get_int64());
  }
  return one_line(words);
}

std::string where(const GpuUser& user) {
  return "in " + (user.cgroup.empty() ? std::string("no cgroup that is known") : user.cgroup);
}

std::string fate_of(const Unmanaged& program) {
  const bool ended = !program.mandatory.empty();
  return "nothing limits it" + (ended ? ", and it is ended: the library is mandatory for " + program.mandatory : "");
}

ipc::Event event_of_user(const char* kind, const GpuUser& user, const std::string& text) {
  return {.kind = kind,
          .slice = {},
          .uid = user.uid,
          .pid = user.pid,
          .command = user.name,
          .text = where(user) + ": " + text};
}

}  // namespace

void Manager::happened(ipc::Event event, const std::string& line, std::optional<std::uint32_t> by) {
  event.time_us = epoch_us();
  if (!by && event.uid) by = static_cast<std::uint32_t>(*event.uid);
  if (!line.empty()) log_of(by.value_or(options_.root_uid), line, &event);
  events_.add(std::move(event), by);
  if (!events_.followed() || tells_) return;
  tells_ = true;
  telling_.expires_after(kTellTogether);
  telling_.async_wait([this](boost::system::error_code error) {
    tells_ = false;
    if (error) return;
    for (Session* const reader : events_.readers()) reader->wake();
  });
}

ipc::Event Manager::event_of(const char* kind, const Client& client, std::string text) {
  return {.kind = kind,
          .slice = client.slice(),
          .uid = client.identity().uid,
          .pid = client.identity().pid,
          .command = client.identity().command,
          .text = std::move(text)};
}

void Manager::tell_changes(const sched::Slices& before, std::optional<std::uint32_t> by) {
  const std::string whose = by ? user_words(*by) : "the configuration";
  const auto tell = [&](const char* kind, const std::string& path, std::string text) {
    const std::string line = "slice " + path + " is " + kind + " by " + whose + (text.empty() ? "" : ": ") + text;
    happened({.kind = kind, .slice = path, .uid = by, .command = {}, .text = std::move(text)}, line);
  };
  const sched::Slices& now = scheduler_.tree().slices();
  for (const auto& [path, slice] : before)
    if (!now.contains(path)) tell("deleted", path, "");
  for (const auto& [path, slice] : now) {
    const auto was = before.find(path);
    if (was == before.end())
      tell("created", path, change_text(nullptr, slice));
    else if (was->second == slice)
      continue;
    else if (std::string text = change_text(&was->second, slice); !text.empty())
      tell("changed", path, std::move(text));  // what isolation "auto" came to is not what anybody set
  }
}

void Manager::tell_refused(Session& session, const ipc::Call& call, const ipc::Reply& reply) {
  const auto is_true = [&](const char* name) {
    const auto* value = call.parameters.if_contains(name);
    return value != nullptr && value->is_bool() && value->get_bool();
  };
  const bool no_slice = reply.error == "io.gpuctl.NoSlice";  // told at the program's first question
  if ((!is_told(call.member()) && !no_slice) || is_true("check") || is_true("dry_run")) return;
  if (reply.error == "io.gpuctl.NoPage") return;                                // it tries again
  if (no_slice && !attached_.is_news(session.peer().pid, reply.error)) return;  // and again
  ipc::Event event{.kind = "refused",
                   .slice = {},
                   .uid = session.peer().uid,
                   .pid = session.peer().pid,
                   .command = {},
                   .text = std::string(call.member()) + ": " + error_words(reply)};
  for (const char* const name : {"path", "slice"})
    if (const auto* value = call.parameters.if_contains(name); value != nullptr && value->is_string())
      event.slice = one_line(ipc::to_utf8(std::string(value->get_string()).substr(0, kMostPath)));
  const std::string line = user_words(session.peer().uid) + ", process " + std::to_string(session.peer().pid) +
                           ", was refused " + event.text + (event.slice.empty() ? "" : " (slice " + event.slice + ")");
  happened(std::move(event), line);
}

void Manager::tell_memory(Attached::Member& member, std::size_t slot, std::int64_t bytes,
                          const Scheduler::MemoryAnswer& answer) {
  const std::uint64_t now = now_ns();
  std::uint64_t& told_ns = answer.granted ? member.wait_told_ns : member.memory_told_ns;
  if (told_ns != 0 && now < told_ns + kTellMemoryEveryNs) return;
  told_ns = now;
  const int device = member.client.slots()[slot].device;
  const std::string gpu =
      device < 0 ? "" : " of GPU " + std::to_string(scheduler_.devices()[static_cast<std::size_t>(device)].index);
  if (answer.granted) {
    ipc::Event waits =
        event_of("memory", member.client,
                 "it waits " + std::to_string(answer.wait.count()) + " us with " + std::to_string(bytes) + " bytes" +
                     gpu + ": slice " + answer.decided_by + " is above its memory_high");
    const std::string line = who_in_slice(waits) + " allocates slowly: " + waits.text;
    return happened(std::move(waits), line);
  }
  ipc::Event event = event_of("memory", member.client,
                              "it asked to hold " + std::to_string(bytes) + " bytes" + gpu + "; it may have " +
                                  std::to_string(answer.free.value_or(0)) + " more, by a limit of " +
                                  std::to_string(answer.total.value_or(0)) +
                                  (answer.kept   ? "; the rest is kept for " + answer.decided_by
                                   : answer.full ? "; the GPU is full"
                                                 : ""));
  const std::string line = who_in_slice(event) + " was refused memory: " + event.text;
  happened(std::move(event), line);
}

/// Slices that are throttled on a GPU, and were not there for some time.
void Manager::tell_throttled(std::uint64_t now_ns) {
  std::erase_if(throttled_, [&](const auto& entry) { return scheduler_.tree().find(entry.first.first) == nullptr; });
  const std::vector<Gpu>& gpus = scheduler_.devices();
  for (const auto& [path, slice] : scheduler_.tree().slices()) {
    if (slice.quota == kNoQuota) continue;
    std::string on;
    for (std::size_t device = 0; device < gpus.size(); ++device) {
      auto& [times, last_ns] = throttled_[{path, device}];
      const std::int64_t now_times = scheduler_.throttled_times(path, device, now_ns);
      if (std::exchange(times, now_times) == now_times || now_times == 0) continue;  // less: it is another quota
      const std::uint64_t before_ns = std::exchange(last_ns, now_ns);
      if (before_ns != 0 && now_ns < before_ns + kTellThrottledEveryNs) continue;
      on += (on.empty() ? " on GPU " : " and GPU ") + std::to_string(gpus[device].index);
    }
    if (on.empty()) continue;
    if (gpus.size() == 1) on.clear();
    happened(
        {.kind = "throttled", .slice = path, .command = {}, .text = "its quota of " + slice.quota + " is used up" + on},
        "slice " + path + " has used up its quota of " + slice.quota + on, slice.owner_uid);
  }
}

void Manager::tell_swaps(std::uint64_t now_ns) {
  for (auto& [client, news] : scheduler_.swap_news(now_ns)) {
    ipc::Event event = event_of(news.event, *client, std::move(news.text));
    const std::string line = who_in_slice(event) + " is " + news.event + (event.text.empty() ? "" : ": " + event.text);
    happened(std::move(event), line);
  }
}

/// Sees what nobody reports: quotas that are used up, targets of latency that are met or missed, and MPS.
void Manager::look_around(std::uint64_t now_ns) {
  if (now_ns < looked_around_ns_ + kLookEveryNs) return;
  looked_around_ns_ = now_ns;
  scheduler_.swap_clients(now_ns);
  tell_throttled(now_ns);
  std::map<std::pair<std::string, std::size_t>, bool> met;
  for (const Scheduler::TargetSeen& target : scheduler_.targets()) {
    using State = sched::Steer::State;
    const State state = target.steer->state();
    const auto key = std::pair(target.slice, target.device);
    const auto before = targets_met_.find(key);
    if (state != State::met && state != State::trying && state != State::seeking && state != State::unmet) {
      if (before != targets_met_.end()) met.insert(*before);
      continue;
    }
    const bool is_met = met[key] = state == State::met || state == State::trying;
    if (before != targets_met_.end() && before->second == is_met) continue;
    const Gpu& gpu = scheduler_.devices()[target.device];
    ipc::Event event{.kind = is_met ? "met" : "missed",
                     .slice = target.slice,
                     .command = {},
                     .text = "GPU " + std::to_string(gpu.index) + ": " + sched::words(*target.steer, gpu.sms)};
    const std::string line =
        "slice " + target.slice + (is_met ? " meets" : " misses") + " its target of latency on " + event.text;
    happened(std::move(event), line, scheduler_.tree().find(target.slice)->owner_uid);
  }
  targets_met_ = std::move(met);

  if (std::ranges::none_of(scheduler_.devices(), &Gpu::needs_mps)) return;
  const bool there = mps_.serves();
  if (mps_there_ != there)
    happened({.kind = there ? "mps-came" : "mps-went", .slice = {}, .command = {}, .text = {}},
             there ? "MPS has come: programs that start now run side by side" : "MPS is gone");
  mps_there_ = there;
  tell_mps_of_slices();
}

/// Isolated slices whose own MPS runs. One that is gone is looked at as long as its MPS is there.
std::set<std::string> Manager::slices_with_mps() {
  std::set<std::string> found;
  const sched::Slices& slices = scheduler_.tree().slices();
  const auto look = [&](const std::string& path) {
    if (mps_.runs(MpsPlaces::name_of(path))) found.insert(path);
  };
  for (const auto& [path, slice] : slices)
    if (slice.isolated && sched::topmost_isolated(slices, path) == path) look(path);
  std::ranges::for_each(slices_with_mps_, look);
  return found;
}

void Manager::tell_mps_of_slices() {
  std::set<std::string> now = slices_with_mps();
  const auto tell = [&](const char* kind, const std::string& path, const std::string& what) {
    const sched::Slice* slice = scheduler_.tree().find(path);
    happened({.kind = kind, .slice = path, .command = {}, .text = "its own, as it is isolated"},
             "the MPS of slice " + path + what, slice == nullptr ? options_.root_uid : slice->owner_uid);
  };
  for (const std::string& path : now)
    if (!slices_with_mps_.contains(path)) tell("mps-came", path, " has come");
  for (const std::string& path : slices_with_mps_)
    if (!now.contains(path)) tell("mps-went", path, " is gone");
  slices_with_mps_ = std::move(now);
}

bool Manager::tell_unmanaged(const std::vector<GpuUser>& users) {
  const std::uint64_t now = now_ns();
  const std::vector<Unmanaged> before = std::exchange(unmanaged_, {});
  bool waits = false;
  for (const GpuUser& user : users) {
    if (!attached_.all_of(user.pid).empty()) continue;
    Unmanaged& program = unmanaged_.emplace_back(as_seen(before, user));
    program.mandatory = mandatory_for(user);
    if (program.since_ns == 0) program.since_ns = now;
    if (!program.told && !user.child) {
      program.told = true;
      ipc::Event event = event_of_user("unmanaged", user, "it has not gpuctl's library, so " + fate_of(program));
      const std::string line = who(event) + " of " + user_words(user.uid) + " uses a GPU, " + event.text;
      happened(std::move(event), line);
    }
    const UnmanagedStep step = next_step(program, now);
    waits |= step == UnmanagedStep::wait;
    if (step == UnmanagedStep::end) program.ended = end_unmanaged(program);
  }
  return waits;
}

/// What says that the library is mandatory for it; "": nothing.
std::string Manager::mandatory_for(const GpuUser& user) const {
  const std::string& list = scheduler_.options().mandatory;
  const auto owner = list.empty() || !user.driver ? std::nullopt : owner_of(user.pid);
  if (!owner || owner->uid != user.uid) return {};
  return sched::mandatory_for(list, {.caller = {.uid = owner->uid, .gids = owner->gids}, .cgroup = user.cgroup});
}

bool Manager::end_unmanaged(const Unmanaged& program) {
  const GpuUser& user = program.user;
  std::vector<Ends::Program> programs;
  programs.push_back({.identity = {.pid = user.pid, .uid = user.uid, .command = user.name, .start = user.start},
                      .slice = {},
                      .pidfd = pidfd_of({user.pid, user.start, user.uid}),
                      .pipe_directory = !mps_.ours() && mps_active() ? mps_pipe_directory() : ""});
  if (!programs.front().pidfd) return false;
  ipc::Event event = event_of_user(
      "killed", user,
      "it uses a GPU without gpuctl's library, which is mandatory for " + program.mandatory + "; with SIGTERM");
  const std::string line = who(event) + " of " + user_words(user.uid) + " is ended, " + event.text;
  happened(std::move(event), line);
  // Nobody is told. It is the program's own user whose budget of lines that takes.
  (void)ends_.end(std::move(programs), {.timeout = kMandatoryTimeout}, user.uid, [](const auto&) {});
  return true;
}

/// For GetStatus, which tells everybody: without names.
std::vector<std::string> Manager::about_unmanaged() const {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> lines;
  for (const Unmanaged& one : std::span(unmanaged_).first(std::min(kMostNamed, unmanaged_.size())))
    lines.push_back("process " + std::to_string(one.user.pid) + " of " + user_words(one.user.uid) + ", " +
                    where(one.user) + ", uses a GPU without gpuctl's library: " + fate_of(one));
  if (unmanaged_.size() > kMostNamed)
    lines.push_back("so do " + std::to_string(unmanaged_.size() - kMostNamed) + " more processes");
  const std::string& list = scheduler_.options().mandatory;
  if (!list.empty() && !unmanaged_watch_.sees())
    lines.push_back("the library is mandatory for " + list +
                    ", but nobody sees who runs without: gpuctld-look.socket does not answer");
  return lines;
}

Answer Manager::events(Session& session, ipc::Fields& fields) {
  const auto slice = fields.maybe_text("slice");
  const auto after = fields.maybe_integer("after", 0);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const sched::Caller viewer = caller(session);
  const auto may_see = [&](const ipc::Event& event) {
    const auto uid = static_cast<std::uint32_t>(event.uid.value_or(sched::kNobody));
    return may_look_into(uid, event.slice, viewer);
  };
  const auto within = [&](const ipc::Event& event) { return !slice || sched::in_or_below(event.slice, *slice); };
  const auto wanted = [&](const ipc::Event& event) {
    return within(event) && (event.kind != "refused" || may_see(event));
  };
  if (slice && scheduler_.tree().find(*slice) == nullptr && !events_.any(wanted))
    return refuse_own("NoSuchSlice", {{"path", ipc::to_utf8(*slice)}});
  EventLog::Part part = session.streaming()
                            ? events_.go_on(session, wanted)
                            : events_.begin(session, static_cast<std::uint64_t>(after.value_or(0)), wanted);
  for (ipc::Event& event : part.events) {
    const bool tells_amounts = event.kind == "memory" || event.kind == "swapped" || event.kind == "not-restored";
    if ((event.command.empty() && !tells_amounts) || may_see(event)) continue;
    event.command.clear();
    if (tells_amounts) event.text.clear();
  }
  Answer answer = success({{"events", ipc::to_json(part.events)}, {"lost", static_cast<std::int64_t>(part.lost)}});
  answer.again = part.more ? kTellTheRest : kSlowestMonitor;
  return answer;
}

}  // namespace gpuctl::daemon
