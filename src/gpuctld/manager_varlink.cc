// The methods of io.gpuctl and org.varlink.service. Protocol only: what they do is in manager.cc and scheduler.cc.
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "gpuctld/clock.h"
#include "gpuctld/convert.h"
#include "gpuctld/manager.h"
#include "gpuctld/mps.h"
#include "ipc/interface.h"
#include "ipc/stub.h"

namespace gpuctl::daemon {

namespace json = boost::json;

namespace {

Answer success(json::object parameters = {}) {
  return {ipc::Reply{std::move(parameters), false, {}}, {}, {}};
}

Answer refuse(std::string_view error, json::object parameters) {
  return {ipc::Reply{std::move(parameters), false, std::string(error)}, {}, {}};
}

Answer refuse_own(const char* error, json::object parameters) {
  return refuse(std::string(ipc::kInterface) + "." + error, std::move(parameters));
}

Answer invalid(const std::string& field, const std::string& reason) {
  return refuse_own("InvalidValue", {{"field", ipc::to_utf8(field)}, {"reason", ipc::to_utf8(reason)}});
}

Answer invalid(const ipc::Fields& fields) {
  return invalid(fields.field(), fields.reason());
}

Answer refuse(const sched::SliceError& error) {
  return {to_reply(error), {}, {}};
}

sched::Caller caller(const Session& session) {
  return {session.peer().uid, session.peer().gids};
}

constexpr std::int64_t kFastestMonitorMs = 100, kSlowestMonitorMs = 60'000;

}  // namespace

const std::map<std::string_view, Manager::Method>& Manager::methods() {
  static const std::map<std::string_view, Method> table{
      {"CreateSlice", &Manager::create_slice},
      {"DeleteSlice", &Manager::delete_slice},
      {"SetSlice", &Manager::set_slice},
      {"ListSlices", &Manager::list_slices},
      {"GetSlice", &Manager::get_slice},
      {"ListClients", &Manager::list_clients},
      {"Explain", &Manager::explain},
      {"GetStatus", &Manager::get_status},
      {"Monitor", &Manager::monitor},
      {"Attach", &Manager::attach},
      {"ReportKernels", &Manager::report_kernels},
      {"SetHint", &Manager::set_hint},
  };
  return table;
}

Answer Manager::call(Session& session, const ipc::Call& call) {
  if (call.interface() == ipc::kServiceInterface) {
    if (call.member() == "GetInfo") return get_info(call);
    if (call.member() == "GetInterfaceDescription") return get_interface_description(call);
  } else if (call.interface() != ipc::kInterface) {
    return refuse(ipc::kInterfaceNotFound, {{"interface", call.interface()}});
  }
  const auto method = methods().find(call.member());
  if (call.interface() != ipc::kInterface || method == methods().end())
    return refuse(ipc::kMethodNotFound, {{"method", call.method}});
  ipc::Fields fields(call.parameters);
  return (this->*method->second)(session, fields);
}

Answer Manager::get_info(const ipc::Call&) {
  return success({{"vendor", "gpuctl"},
                  {"product", "gpuctld"},
                  {"version", GPUCTL_VERSION},
                  {"url", ""},
                  {"interfaces", {ipc::kServiceInterface, ipc::kInterface}}});
}

Answer Manager::get_interface_description(const ipc::Call& call) {
  ipc::Fields fields(call.parameters);
  const std::string name = fields.text("interface");
  if (!fields.ok()) return refuse(ipc::kInvalidParameter, {{"parameter", "interface"}});
  const std::string_view text = ipc::interface_description(name);
  if (text.empty()) return refuse(ipc::kInterfaceNotFound, {{"interface", name}});
  return success({{"description", text}});
}

Answer Manager::create_slice(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  ipc::SliceSettings settings;
  ipc::Fields nested = fields.object("settings");
  ipc::read(nested, settings);
  nested.refuse_unknown();
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  if (auto created = tree.create(path, to_change(settings), caller(session)); !created) return refuse(created.error());
  change_tree(std::move(tree));
  return slice_reply(path);
}

Answer Manager::delete_slice(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  if (auto removed = tree.remove(path, scheduler_.clients_in(path), caller(session)); !removed)
    return refuse(removed.error());
  change_tree(std::move(tree));
  return success();
}

Answer Manager::set_slice(Session& session, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  ipc::SliceSettings settings;
  ipc::Fields nested = fields.object("settings");
  ipc::read(nested, settings);
  nested.refuse_unknown();
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  sched::SliceTree tree = scheduler_.tree();
  if (auto changed = tree.change(path, to_change(settings), caller(session)); !changed) return refuse(changed.error());
  change_tree(std::move(tree));
  return slice_reply(path);
}

/// The reply to a change: the slice as it is now.
Answer Manager::slice_reply(const std::string& path) const {
  for (const ipc::Slice& slice : describe_slices())
    if (slice.path == path) return success({{"slice", ipc::to_json(slice)}});
  return refuse_own("NoSuchSlice", {{"path", path}});
}

Answer Manager::list_slices(Session&, ipc::Fields&) {
  return success({{"slices", ipc::to_json(describe_slices())}});
}

Answer Manager::get_slice(Session&, ipc::Fields& fields) {
  const std::string path = fields.text("path");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  for (const ipc::Slice& slice : describe_slices())
    if (slice.path == path)
      return success({{"slice", ipc::to_json(slice)}, {"clients", ipc::to_json(describe_clients(&path))}});
  return refuse_own("NoSuchSlice", {{"path", path}});
}

Answer Manager::list_clients(Session&, ipc::Fields&) {
  return success({{"clients", ipc::to_json(describe_clients(nullptr))}});
}

Answer Manager::explain(Session&, ipc::Fields& fields) {
  const std::int64_t pid = fields.integer("pid");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  const auto& clients = scheduler_.clients();
  const auto found =
      std::find_if(clients.rbegin(), clients.rend(), [&](const Client& c) { return c.identity().pid == pid; });
  if (found == clients.rend()) return refuse_own("NoSuchClient", {{"pid", pid}});
  return success({{"client", ipc::to_json(found->describe())}, {"kernels", ipc::to_json(found->kernels())}});
}

Answer Manager::get_status(Session&, ipc::Fields&) {
  ipc::Status status;
  status.version = GPUCTL_VERSION;
  status.devices = describe_devices();
  status.slices = static_cast<std::int64_t>(scheduler_.tree().slices().size());
  status.clients = static_cast<std::int64_t>(scheduler_.clients().size());
  status.uptime_s = static_cast<std::int64_t>((now_ns() - started_ns_) / 1'000'000'000);
  status.notes = options_.notes;
  if (std::any_of(status.devices.begin(), status.devices.end(), [](const auto& d) { return d.mode == "time-sliced"; }))
    status.notes.push_back("MPS is not active: programs take turns on the whole GPU and do not run side by side");
  if (options_.evict_storm.count() > 0)
    status.notes.push_back("testing: every grant is replaced by a random one each " +
                           std::to_string(options_.evict_storm.count()) + " us in the mean");
  return success(ipc::to_json(status));
}

Answer Manager::monitor(Session&, ipc::Fields& fields) {
  const std::int64_t interval = fields.integer("interval_ms", kFastestMonitorMs, kSlowestMonitorMs);
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  ipc::Snapshot snapshot;
  snapshot.time_ns = static_cast<std::int64_t>(now_ns());
  snapshot.devices = describe_devices();
  snapshot.slices = describe_slices();
  snapshot.clients = describe_clients(nullptr);
  Answer answer = success(ipc::to_json(snapshot));
  answer.again = std::chrono::milliseconds(interval);
  return answer;
}

Answer Manager::attach(Session& session, ipc::Fields& fields) {
  std::string slice = fields.text("slice");
  if (slice.empty()) slice = "/";
  const std::vector<std::string> uuids = fields.texts("device_uuids");
  const bool resumed = fields.boolean("resumed");
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  if (members_.contains(&session)) return invalid("slice", "this connection is attached already");
  if (auto may = scheduler_.tree().may_join(slice, caller(session)); !may) return refuse(may.error());
  auto devices = match_devices(uuids);
  if (!devices) return invalid("device_uuids", devices.error().message);

  const Peer& peer = session.peer();
  auto client = Client::create({peer.pid, peer.uid, command_of(peer.pid)}, slice, std::move(*devices));
  ipc::UniqueFd kick(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  Answer answer = success({{"slice", slice},
                           {"stub_bytes", ipc::kStubBytes},
                           {"latency_target_us", config_.daemon.latency_target.count()},
                           {"block_target_us", config_.daemon.block_target.count()}});
  if (client) answer.fds.emplace_back(::dup(client->memfd()));
  if (kick) answer.fds.emplace_back(::dup(kick.get()));
  const bool sound = answer.fds.size() == 2 && answer.fds[0] && answer.fds[1];
  if (!sound) {
    log_("process " + std::to_string(peer.pid) + " cannot be attached: out of file descriptors or memory");
    return invalid("slice", "gpuctld is out of file descriptors or memory");
  }

  Client& added = scheduler_.add(std::move(*client), now_ns());
  const auto member = std::make_shared<Member>(*this, session, added, context_);
  members_.emplace(&session, member);
  session.trust_with_long_messages();
  member->kick.assign(kick.release());
  member->wait_for_kick();
  if (ipc::UniqueFd exit = peer_pidfd(session.socket(), peer.pid)) {
    member->exit.assign(exit.release());
    member->wait_for_exit();
  }
  log_("process " + std::to_string(peer.pid) + " (" + added.identity().command + ") " +
       (resumed ? "came back to" : "joined") + " slice " + slice);
  arm_tick();
  return answer;
}

Answer Manager::report_kernels(Session& session, ipc::Fields& fields) {
  const auto member = members_.find(&session);
  if (member == members_.end()) return refuse_own("NotAttached", {});
  auto kernels = ipc::read_list<ipc::Kernel>(fields, "kernels");
  if (!fields.ok()) return invalid(fields);
  member->second->client.report(std::move(kernels));
  return success();
}

Answer Manager::set_hint(Session& session, ipc::Fields& fields) {
  const auto member = members_.find(&session);
  if (member == members_.end()) return refuse_own("NotAttached", {});
  Client& client = member->second->client;
  const std::int32_t allowed = scheduler_.tree().find(client.slice())->priority;
  const auto priority = static_cast<std::int32_t>(fields.integer("priority", sched::kPriorityMin, allowed));
  fields.refuse_unknown();
  if (!fields.ok()) return invalid(fields);
  scheduler_.set_hint(client, priority, now_ns());
  return success();
}

std::vector<ipc::Slice> Manager::describe_slices() const {
  std::vector<ipc::Slice> result;
  const auto use = scheduler_.slice_use();
  for (const auto& [path, slice] : scheduler_.tree().slices()) {
    const Scheduler::SliceUse& used = use[result.size()];
    ipc::Slice described = describe(path, slice);
    described.granted = used.granted.count;
    described.demand = used.demand.count;
    described.clients = static_cast<std::int64_t>(scheduler_.clients_in(path));
    result.push_back(std::move(described));
  }
  return result;
}

std::vector<ipc::Client> Manager::describe_clients(const std::string* slice) const {
  std::vector<ipc::Client> result;
  for (const Client& client : scheduler_.clients())
    if (slice == nullptr || client.slice() == *slice) result.push_back(client.describe());
  return result;
}

std::vector<ipc::Device> Manager::describe_devices() const {
  std::vector<ipc::Device> result;
  const bool mps = mps_active();
  for (const Gpu& gpu : scheduler_.devices()) {
    ipc::Device device;
    device.index = static_cast<std::int64_t>(result.size());
    device.name = gpu.name;
    device.uuid = gpu.uuid;
    device.kind = gpu.software ? "software" : "cuda";
    device.sms = gpu.sms;
    device.memory_bytes = static_cast<std::int64_t>(gpu.memory_bytes);
    device.mode = gpu.software ? "software" : mps ? "mps" : "time-sliced";
    result.push_back(std::move(device));
  }
  return result;
}

/// Which of the managed devices each of a client's is; -1 for those that are not managed.
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
