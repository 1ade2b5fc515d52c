// The methods of io.gpuctl; those about programs are in manager_clients.cc and manager_end.cc.
// Protocol only: the work is done in manager.cc and scheduler.cc.
#include <algorithm>
#include <filesystem>

#include "base/limit_text.h"
#include "base/plural.h"
#include "gpuctld/budgets/monitor_pace.h"
#include "gpuctld/clients/kept_to_earlier.h"
#include "gpuctld/clock.h"
#include "gpuctld/host/mps.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/protocol/answers.h"
#include "gpuctld/protocol/convert.h"
#include "ipc/codec.h"
#include "ipc/interface.h"

namespace gpuctl::daemon {

namespace {

/// As Linux has them for triggers of PSI. So many times in a window the daemon looks.
constexpr std::int64_t kLeastWindowUs = 500'000, kGreatestWindowUs = 10'000'000, kLooksInWindow = 10;
constexpr std::int64_t kFastestMonitorMs = 100, kSlowestMonitorMs = kSlowestMonitor.count();

/// In units of a look-up: what makes all grants anew, and what writes the state file too.
constexpr double kCostOfDecision = 10, kCostOfTree = 50;
/// Thousands of entries, and another thread that reads as many.
constexpr double kCostOfUsage = 50;
/// A program may ask before each of its allocations.
constexpr double kCostOfMemory = 0.1;

double cost_of(std::string_view method) {
  if (method == "GetUsage") return kCostOfUsage;
  if (method == "CreateSlice" || method == "SetSlice" || method == "DeleteSlice" || method == "ApplySlices" ||
      method == "NoteSaved")
    return kCostOfTree;
  if (method == "Attach" || method == "MakePage" || method == "ServeMps" || method == "GetMpsPercentage" ||
      method == "SetHint" || method == "ReportFault" || method == "Kill" || method == "Move" || method == "Advise")
    return kCostOfDecision;
  return method == "HoldMemory" ? kCostOfMemory : 1;
}

/// Whether nothing comes of the method but its answer.
bool only_answers(std::string_view method) {
  constexpr std::string_view kLookUps[] = {"ListSlices",  "GetSlice",    "ListClients",  "Explain", "GetStatus",
                                           "ListKernels", "GetFairness", "Monitor",      "Record",  "Events",
                                           "Advise",      "GetUsage",    "WatchPressure"};
  return std::ranges::find(kLookUps, method) != std::end(kLookUps);
}

/// What a call wants of one slice, and nothing else.
struct SliceWanted {
  std::string path;
  ipc::SliceSettings settings;
  bool check = false;
};
SliceWanted read_slice(ipc::Fields& fields) {
  SliceWanted wanted{fields.text("path"), {}, fields.maybe_boolean("check").value_or(false)};
  ipc::Fields nested = fields.object("settings");
  ipc::read(nested, wanted.settings);
  nested.refuse_unknown();
  fields.refuse_unknown();
  return wanted;
}

/// Gives all these slices the settings, or none.
sched::SliceResult<void> change_all(const std::vector<std::string>& paths, const ipc::SliceSettings& settings,
                                    const sched::Caller& caller, sched::SliceTree& tree) {
  if (paths.size() == 1) return tree.change(paths.front(), settings, caller);
  using Code = sched::SliceError::Code;
  std::vector<sched::SliceTree::Edit> edits;
  for (const std::string& path : paths) {
    if (tree.find(path) == nullptr)
      return sched::SliceError{.code = Code::no_such_slice, .path = path, .field = {}, .reason = {}};
    if (std::ranges::find(edits, path, &sched::SliceTree::Edit::path) != edits.end())
      return sched::SliceError{
          .code = Code::invalid_value, .path = path, .field = "also", .reason = "names slice '" + path + "' twice"};
    edits.push_back({path, &settings});
  }
  std::size_t at = 0;
  return tree.apply(edits, caller, tree.capacity(), at);
}

}  // namespace

const std::map<std::string_view, Manager::Method>& Manager::methods() {
  static const std::map<std::string_view, Method> table{
      {"CreateSlice", &Manager::create_slice},
      {"DeleteSlice", &Manager::delete_slice},
      {"SetSlice", &Manager::set_slice},
      {"ApplySlices", &Manager::apply_slices},
      {"NoteSaved", &Manager::note_saved},
      {"ListSlices", &Manager::list_slices},
      {"GetSlice", &Manager::get_slice},
      {"ListClients", &Manager::list_clients},
      {"Explain", &Manager::explain},
      {"GetStatus", &Manager::get_status},
      {"ListKernels", &Manager::list_kernels},
      {"Record", &Manager::record},
      {"Monitor", &Manager::monitor},
      {"Events", &Manager::events},
      {"WatchPressure", &Manager::watch_pressure},
      {"MakePage", &Manager::make_page},
      {"Attach", &Manager::attach},
      {"HoldMemory", &Manager::hold_memory},
      {"ReportKernels", &Manager::report_kernels},
      {"ServeMps", &Manager::serve_mps},
      {"SetHint", &Manager::set_hint},
      {"Move", &Manager::move},
      {"Kill", &Manager::kill},
      {"ReportFault", &Manager::report_fault},
      {"ForgetKernels", &Manager::forget_kernels},
      {"GetFairness", &Manager::get_fairness},
      {"Advise", &Manager::advise},
      {"GetUsage", &Manager::get_usage},
      {"GetMpsPercentage", &Manager::get_mps_percentage},
  };
  return table;
}

Answer Manager::call(Session& session, const ipc::Call& call) {
  if (auto answer = about_service(call)) return std::move(*answer);
  const auto method = methods().find(call.member());
  if (method == methods().end()) return refuse(ipc::kMethodNotFound, {{"method", call.method}});
  if (call.oneway && only_answers(method->first)) return success();
  ipc::Fields fields(call.parameters);
  Answer answer = (this->*method->second)(session, fields);
  answer.cost = cost_of(method->first);
  if (!answer.reply.error.empty()) tell_refused(session, call, answer.reply);
  return answer;
}

Answer Manager::create_slice(Session& session, ipc::Fields& fields) {
  const auto [path, settings, check] = read_slice(fields);
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  if (auto created = tree.create(path, settings, caller(session)); !created) return refuse(created.error());
  std::vector<std::string> doubts;
  if (const auto refused = refuse_targets(tree, doubts)) return refuse(*refused);
  if (check) return checked(tree, {&path, 1}, doubts);
  change_tree(std::move(tree), session.peer().uid);
  return changed(slice_now(path), {&path, 1}, doubts);
}

/// A slice that is in use says by which programs.
Answer Manager::refuse_with_programs(const sched::SliceError& error, bool below, const Session& session) const {
  Answer refused = refuse(error);
  if (error.code == sched::SliceError::Code::slice_busy && error.clients > 0)
    refused.reply.parameters["programs"] = programs_in(error.path, below, caller(session));
  return refused;
}

Answer Manager::delete_slice(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  const bool recursive = fields.maybe_boolean("recursive").value_or(false),
             check = fields.maybe_boolean("check").value_or(false);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  std::size_t clients = scheduler_.clients_in(path);
  if (recursive)
    clients = static_cast<std::size_t>(std::ranges::count_if(
        scheduler_.clients(), [&](const Client& client) { return sched::in_or_below(client.slice(), path); }));
  const auto removed =
      recursive ? tree.remove_all(path, clients, caller(session)) : tree.remove(path, clients, caller(session));
  if (!removed) return refuse_with_programs(removed.error(), recursive, session);
  const std::vector<std::string> again = come_back(tree, session.peer().uid);
  if (check) return checked(tree, {&path, 1}, again);
  change_tree(std::move(tree), session.peer().uid);
  return changed({}, {&path, 1}, again);
}

Answer Manager::set_slice(Session& session, ipc::Fields& fields) {
  std::vector<std::string> paths;
  if (fields.has("also")) paths = fields.texts("also");
  const auto [path, settings, check] = read_slice(fields);
  if (!fields.ok()) return invalid(fields);
  paths.insert(paths.begin(), path);
  sched::SliceTree tree = scheduler_.tree();
  if (auto changed = change_all(paths, settings, caller(session), tree); !changed) {
    sched::SliceError error = changed.error();
    if (paths.size() > 1 && !error.reason.empty()) error.reason = "slice " + error.path + ": " + error.reason;
    return refuse(error);
  }
  std::vector<std::string> doubts;
  if (const auto refused = refuse_targets(tree, doubts)) return refuse(*refused);
  if (check) return checked(tree, paths, doubts);
  std::vector<std::string> left_out = kept_to_earlier_max(scheduler_.tree(), tree, scheduler_.clients());
  left_out.insert(left_out.end(), doubts.begin(), doubts.end());
  change_tree(std::move(tree), session.peer().uid);
  if (settings.latency)
    for (const std::string& one : paths) scheduler_.seek_target_anew(one, now_ns());
  boost::json::object reply = slice_now(path);
  if (paths.size() > 1) {
    boost::json::array& described = reply["slices"].emplace_array();
    const auto& slices = scheduler_.tree().slices();
    const auto use = scheduler_.slice_use();
    for (const std::string& one : paths) {
      const auto index = static_cast<std::size_t>(std::distance(slices.begin(), slices.find(one)));
      described.push_back(ipc::to_json(describe_slice(index, one, use)));
    }
  }
  Answer answer = this->changed(std::move(reply), paths, left_out);
  if (!settings.latency && !settings.isolation) return answer;
  for (const std::string& one : paths)
    if (const auto line = scheduler_.isolation_now(one)) {
      boost::json::value& notes = answer.reply.parameters["notes"];
      if (!notes.is_array()) notes = boost::json::array();
      notes.get_array().emplace_back((paths.size() == 1 ? "" : "slice " + one + ": ") + "isolation is auto, now " +
                                     *line);
    }
  return answer;
}

/// Why a target that is new in the tree cannot be kept. `doubts`: why others may not be.
std::optional<sched::SliceError> Manager::refuse_targets(const sched::SliceTree& tree,
                                                         std::vector<std::string>& doubts) const {
  for (const auto& [path, slice] : tree.slices()) {
    const sched::Slice* now = scheduler_.tree().find(path);
    if ((now == nullptr ? "none" : now->latency) == slice.latency) continue;
    const sched::Admission admission = scheduler_.admits_target(tree, path);
    if (!admission.refused.empty())
      return sched::SliceError{.code = sched::SliceError::Code::invalid_value,
                               .path = path,
                               .field = "latency",
                               .reason = admission.refused};
    doubts.insert(doubts.end(), admission.notes.begin(), admission.notes.end());
  }
  return std::nullopt;
}

/// The reply to a change of these slices, or of the whole tree. It is made; what the caller may not expect about it is
/// said beside.
Answer Manager::changed(boost::json::object reply, std::span<const std::string> paths,
                        const std::vector<std::string>& more) const {
  boost::json::array notes(more.begin(), more.end());
  for (const std::string& line : notes_about(paths)) notes.emplace_back(line);
  if (const std::string* problem = kept_.problem()) notes.emplace_back(ipc::to_utf8(*problem));
  if (!notes.empty()) reply["notes"] = std::move(notes);
  return success(std::move(reply));
}

/// The reply to a change that is not made, of what the tree would be. As one that is made it has the first slice, and
/// of several all.
Answer Manager::checked(const sched::SliceTree& tree, std::span<const std::string> paths,
                        const std::vector<std::string>& more) const {
  boost::json::object reply{{"changes", ipc::to_json(differences(tree))}};
  boost::json::array described;
  const auto effective = tree.effective();
  for (const std::string& path : paths) {
    const auto found = tree.slices().find(path);
    if (found == tree.slices().end()) continue;
    const auto index = static_cast<std::size_t>(std::distance(tree.slices().begin(), found));
    described.push_back(ipc::to_json(describe(path, tree, effective[index])));
  }
  if (!described.empty()) reply["slice"] = described.front();
  if (paths.size() > 1) reply["slices"] = std::move(described);
  boost::json::array notes(more.begin(), more.end());
  for (const std::string& line : scheduler_.unfit_reserves(tree, paths)) notes.emplace_back(line);
  for (const std::string& line : odd_settings(tree, paths)) notes.emplace_back(line);
  if (!notes.empty()) reply["notes"] = std::move(notes);
  return success(std::move(reply));
}

/// Those in it, or in it and below it, for people: some of them, if there are many.
boost::json::array Manager::programs_in(const std::string& path, bool below, const sched::Caller& viewer) const {
  constexpr std::size_t kMostNamed = 20;
  boost::json::array names;
  for (const Client& client : scheduler_.clients()) {
    const bool meant = below ? sched::in_or_below(client.slice(), path) : client.slice() == path;
    if (client.stands_in || !meant || names.size() == kMostNamed) continue;
    const bool open = may_look_into(client.identity().uid, client.slice(), viewer);
    names.emplace_back(ipc::to_utf8(std::to_string(client.identity().pid) +
                                    (open ? " " + client.identity().command : "") + " in " + client.slice()));
  }
  return names;
}

boost::json::object Manager::slice_now(const std::string& path) const {
  const auto& slices = scheduler_.tree().slices();
  const auto found = slices.find(path);
  const auto index = static_cast<std::size_t>(std::distance(slices.begin(), found));
  return {{"slice", ipc::to_json(describe_slice(index, path, scheduler_.slice_use()))}};
}

Answer Manager::list_slices(Session&, ipc::Fields&) {
  see_memory();
  return success({{"slices", ipc::to_json(describe_slices())}});
}

Answer Manager::get_slice(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (scheduler_.tree().find(path) == nullptr) return refuse_own("NoSuchSlice", {{"path", path}});
  see_memory();
  boost::json::object answer = slice_now(path);
  answer["clients"] = ipc::to_json(describe_clients(&path, caller(session)));
  return success(std::move(answer));
}

Answer Manager::get_status(Session&, ipc::Fields&) {
  ipc::Status status;
  status.version = GPUCTL_VERSION;
  status.devices = describe_devices();
  status.slices = static_cast<std::int64_t>(scheduler_.tree().slices().size());
  status.clients = static_cast<std::int64_t>(attached_.size());
  status.uptime_s = static_cast<std::int64_t>((now_ns() - started_ns_) / 1'000'000'000);
  status.faults = ends_.faults().total();
  if (!options_.config_file.empty())
    status.config = std::filesystem::absolute(options_.config_file).lexically_normal().string();
  status.notes = options_.notes;
  for (std::string& problem : kept_.problems()) status.notes.push_back(std::move(problem));
  for (std::string& line : scheduler_.unfit_reserves()) status.notes.push_back(std::move(line));
  for (std::string& line : scheduler_.isolation_lags()) status.notes.push_back(std::move(line));
  for (std::string& line : scheduler_.left_out_of_mps()) status.notes.push_back(std::move(line));
  for (const auto& [path, slice] : scheduler_.tree().slices())
    if (const auto line = scheduler_.isolation_now(path))
      status.notes.push_back("slice " + path + ": isolation is auto, now " + *line);
  for (std::string& line : about_unmanaged()) status.notes.push_back(std::move(line));
  if (auto line = about_default_slice()) status.notes.push_back(std::move(*line));
  if (auto line = driver_limits_.problem()) status.notes.push_back(std::move(*line));
  if (auto line = why_not_isolated()) status.notes.push_back(std::move(*line));
  for (std::string& line : about_mps()) status.notes.push_back(std::move(line));
  status.mps = describe_mps();
  if (mps_.ours()) status.mps_directory = mps_.directory_of(kSharedMps);
  if (const std::string& list = scheduler_.options().mandatory; !list.empty() && unmanaged_watch_.sees())
    status.mandatory = list;
  if (const auto line = about_server_turns()) status.notes.push_back(*line);
  if (options_.evict_storm.count() > 0)
    status.notes.push_back("testing: every grant is replaced by a random one each " +
                           std::to_string(options_.evict_storm.count()) + " us in the mean");
  return success(ipc::to_json(status));
}

Answer Manager::monitor(Session& session, ipc::Fields& fields) {
  const std::int64_t interval = fields.integer("interval_ms", kFastestMonitorMs, kSlowestMonitorMs);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const std::uint64_t began = now_ns();
  ipc::Snapshot snapshot;
  snapshot.time_ns = static_cast<std::int64_t>(began);
  see_memory();
  snapshot.devices = describe_devices();
  snapshot.slices = describe_slices();
  snapshot.clients = describe_clients(nullptr, caller(session));
  for (const auto& [path, figures] : scheduler_.fairness(began)) snapshot.fairness.push_back(describe(path, figures));
  Answer answer = success(ipc::to_json(snapshot));
  const std::size_t monitors = server_->streams() + (session.streaming() ? 0 : 1);
  answer.again =
      monitor_pace(std::chrono::milliseconds(interval), std::chrono::nanoseconds(now_ns() - began), monitors);
  return answer;
}

/// Where no amount differs by GPU those on which there is something to be said.
std::vector<ipc::SliceOnGpu> Manager::describe_on_gpus(std::size_t index, const std::string& path,
                                                       const Scheduler::SliceUse& use) const {
  std::vector<ipc::SliceOnGpu> all;
  const bool same = !scheduler_.differs_by_device();
  const auto seen = memory_on_.find(path);
  const std::vector<sched::Effective> each = scheduler_.effective_on_each(index);
  for (std::size_t device = 0; device < each.size(); ++device) {
    const sched::Effective& there = each[device];
    const MemoryOn memory = seen == memory_on_.end() ? MemoryOn() : seen->second[device];
    const auto [granted, bytes] = use.on[device];
    ipc::SliceOnGpu on = describe(scheduler_.devices()[device].index, there);
    if (const sched::Slice& slice = scheduler_.slice_on(device, path); slice.quota != kNoQuota) {
      on.quota = slice.quota;
      if (slice.burst != kNoQuota) on.burst = slice.burst;
    }
    on.same = same;
    on.granted = granted.count;
    on.memory = static_cast<std::int64_t>(bytes);
    on.memory_peak = static_cast<std::int64_t>(std::max(bytes, memory.peak));
    on.max_refusals = memory.max_refusals;
    if (const auto most = driver_limits_.of(path, device)) on.driver_max = static_cast<std::int64_t>(*most);
    const bool is_news = on.driver_max || *on.granted + *on.memory_peak + *on.max_refusals > 0 ||
                         there.memory_min != scheduler_.tree().find(path)->memory_min;
    if (!same || is_news) all.push_back(on);
  }
  return all;
}

/// Only what passed is told, and what is so when it begins.
Answer Manager::watch_pressure(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("slice"), of = fields.text("of");
  const std::int64_t window = fields.integer("window_us", kLeastWindowUs, kGreatestWindowUs);
  const std::int64_t stall = fields.integer("stall_us", 1, window);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (of != "some" && of != "full") return invalid("of", "must be some or full");
  const auto& slices = scheduler_.tree().slices();
  const auto slice = slices.find(path);
  if (slice == slices.end()) return refuse_own("NoSuchSlice", {{"path", ipc::to_utf8(path)}});
  using std::chrono::microseconds;
  if (!session.streaming())
    triggers_.insert_or_assign(&session, sched::PressureTrigger(microseconds(stall), microseconds(window)));
  const auto now = instant(now_ns());
  const auto seen = scheduler_.pressure()[static_cast<std::size_t>(std::distance(slices.begin(), slice))].at(now);
  const auto total = (of == "full" ? seen.full : seen.some).total;
  sched::PressureTrigger& trigger = triggers_.at(&session);
  const bool passed = trigger.passed(total, now);
  const auto us = [](std::chrono::nanoseconds time) { return std::chrono::duration_cast<microseconds>(time).count(); };
  Answer answer = success({{"passed", passed}, {"stall_us", us(trigger.stalled())}, {"total_us", us(total)}});
  answer.again = std::chrono::milliseconds(std::max(kFastestMonitorMs, window / 1000 / kLooksInWindow));
  answer.silent = !passed;
  return answer;
}

ipc::Slice Manager::describe_slice(std::size_t index, const std::string& path,
                                   const std::vector<Scheduler::SliceUse>& use) const {
  ipc::Slice described = describe(path, scheduler_.tree(), scheduler_.effective()[index]);
  described.granted = use[index].granted.count;
  described.demand = use[index].demand.count;
  described.clients = static_cast<std::int64_t>(use[index].clients);
  described.faults = ends_.faults().of(path);
  const Ended::Sums ended = ends_.ended().of(path);
  described.ended = ended.programs;
  described.ended_launches = ended.counts.launches;
  described.ended_evictions = ended.counts.evictions;
  if (const auto counts = memory_counts_.find(path); counts != memory_counts_.end()) {
    described.memory_waits = counts->second.waits;
    described.memory_refusals = counts->second.refusals;
  }
  if (knows_energy_) {
    const auto joules = joules_.find(path);
    described.energy_joules = joules == joules_.end() ? 0 : joules->second;
  }
  ipc::SliceTotals totals;
  if (const auto used = sm_seconds_.find(path); used != sm_seconds_.end()) totals.sm_seconds = used->second;
  scheduler_.latencies().add_up(path, totals);
  if (totals.sm_seconds > 0 || !totals.latency.empty()) described.totals = std::move(totals);
  described.pressure = describe(scheduler_.pressure()[index].at(instant(now_ns())));
  const sched::Bandwidth::Seen throttled = scheduler_.throttled(path, now_ns());
  described.throttled = throttled.times;
  described.throttled_us = std::chrono::duration_cast<std::chrono::microseconds>(throttled.time).count();
  described.quota_now = scheduler_.quota_now(path, now_ns());
  described.latency_now = scheduler_.latency_now(path);
  described.isolation_now = scheduler_.isolation_now(path);
  described.on_gpus = describe_on_gpus(index, path, use[index]);
  described.latencies = scheduler_.latencies().describe(path, now_ns());
  return described;
}

std::vector<ipc::Slice> Manager::describe_slices() const {
  std::vector<ipc::Slice> result;
  result.reserve(scheduler_.tree().slices().size());
  const auto use = scheduler_.slice_use();
  for (const auto& [path, slice] : scheduler_.tree().slices())
    result.push_back(describe_slice(result.size(), path, use));
  return result;
}

std::vector<ipc::Device> Manager::describe_devices() {
  std::vector<ipc::Device> result;
  const bool mps = mps_.serves();
  for (const Gpu& gpu : scheduler_.devices()) {
    ipc::Device device;
    device.index = gpu.index;
    device.name = gpu.name;
    device.uuid = gpu.uuid;
    device.kind = gpu.kind();
    device.sms = gpu.sms;
    device.memory_bytes = static_cast<std::int64_t>(gpu.memory_bytes);
    device.mode = !gpu.needs_mps() ? gpu.kind() : mps ? "mps" : "time-sliced";
    result.push_back(std::move(device));
  }
  return result;
}

}  // namespace gpuctl::daemon
