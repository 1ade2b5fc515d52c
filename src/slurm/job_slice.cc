#include "slurm/job_slice.h"

#include <algorithm>
#include <chrono>

#include "base/latency_text.h"
#include "base/slurm_job.h"
#include "ipc/codec.h"

namespace gpuctl::slurm {
namespace {

using namespace std::chrono_literals;
using boost::json::object;

constexpr std::string_view kStep = "step-";
constexpr std::int64_t kGraceMs = 2000;            // between SIGTERM and SIGKILL
constexpr std::chrono::milliseconds kToEnd = 15s;  // Kill waits for the programs' ends

std::string above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "/" : path.substr(0, slash);
}

bool is_in(const std::string& path, const std::string& slice) {
  return path == slice || path.starts_with(slice + '/');
}

/// Below these a job has its slice without owning them.
std::vector<std::string> open_to_jobs(const Arguments& arguments) {
  std::vector<std::string> all = arguments.slices;
  all.emplace_back(kParent);
  return all;
}

std::optional<std::int64_t> lesser(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return !a ? b : !b ? a : std::min(*a, *b);
}

/// Whether `asked` is a limit that is below `present`.
bool narrows(const std::optional<std::int64_t>& asked, const std::optional<std::int64_t>& present) {
  return asked && (!present || *asked < *present);
}

object settings_of(const Request& request, const Limits& limits, const Job& job) {
  object settings{{"owner_uid", static_cast<std::int64_t>(job.uid)}};
  if (limits.sms) settings["max"] = *limits.sms;
  if (limits.memory) settings["memory_max"] = *limits.memory;
  if (request.latency) settings["latency"] = *request.latency;
  return settings;
}

template <class T>
Answer<T> read_reply(const object& reply, T (*read)(ipc::Fields&)) {
  ipc::Fields fields(reply);
  T value = read(fields);
  if (!fields.ok()) return Refusal("the daemon's reply is not understood: " + fields.error().message);
  return value;
}

/// Makes a slice, unless it is there already.
Answer<void> create(Daemon& daemon, const std::string& path, object settings) {
  const auto made = daemon.call("CreateSlice", {{"path", path}, {"settings", std::move(settings)}});
  if (made || made.error().name == "SliceExists") return {};
  return made.error();
}

bool has_share(const Arguments& arguments, const Job& job) {
  return arguments.shards > 0 && job.shards > 0;
}

}  // namespace

std::string job_name(std::uint32_t job) {
  return std::string(kSlurmJob) + std::to_string(job);
}

bool wants_slice(const Request& request, const Arguments& arguments, const Job& job) {
  return request.any() || has_share(arguments, job);
}

Request of_whole_job(const Request& step, const Arguments& arguments, const Job& job) {
  Request whole = step;
  if (!job.batch && has_share(arguments, job)) whole.sms = whole.memory = std::nullopt;
  return whole;
}

bool needs_own(const Request& step, const ipc::Slice& of_job) {
  // A daemon that reads it otherwise says what is wrong.
  const bool same_target =
      !step.latency || *step.latency == of_job.latency ||
      (parse_latency(*step.latency) && parse_latency(*step.latency) == parse_latency(of_job.latency));
  return !same_target || narrows(step.sms, of_job.max) || narrows(step.memory, of_job.memory_max);
}

Limits limits_of(const Request& request, const Arguments& arguments, const Job& job,
                 const std::vector<ipc::Device>& devices) {
  Limits limits{request.sms, request.memory};
  const std::int64_t on_each = (job.shards + job.gpus - 1) / job.gpus;
  if (arguments.shards == 0 || on_each == 0 || on_each >= arguments.shards) return limits;
  for (const ipc::Device& device : devices) {
    limits.sms = lesser(limits.sms, std::max<std::int64_t>(device.sms * on_each / arguments.shards, 1));
    limits.memory = lesser(limits.memory, device.memory_bytes / arguments.shards * on_each);
  }
  return limits;
}

bool is_owner(const std::string& path, const Job& job, const std::vector<ipc::Slice>& slices) {
  return job.uid == 0 || std::ranges::any_of(slices, [&](const ipc::Slice& slice) {
           if (slice.path != "/" && !is_in(path, slice.path)) return false;
           return slice.owner_uid == static_cast<std::int64_t>(job.uid) ||
                  std::ranges::any_of(job.groups,
                                      [&](gid_t group) { return slice.owner_gid == static_cast<std::int64_t>(group); });
         });
}

Answer<std::vector<ipc::Slice>> list_slices(Daemon& daemon) {
  const auto reply = daemon.call("ListSlices");
  if (!reply) return reply.error();
  return read_reply<std::vector<ipc::Slice>>(
      *reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::Slice>(fields, "slices"); });
}

Answer<std::string> make_slice(Daemon& daemon, const Request& request, const Arguments& arguments, const Job& job) {
  const auto status = daemon.call("GetStatus");
  if (!status) return status.error();
  const auto devices = read_reply<std::vector<ipc::Device>>(
      *status, [](ipc::Fields& fields) { return ipc::read_list<ipc::Device>(fields, "devices"); });
  if (!devices) return devices.error();
  const auto slices = list_slices(daemon);
  if (!slices) return slices.error();

  const std::string parent = request.slice.value_or(std::string(kParent));
  const auto open = open_to_jobs(arguments);
  if (std::ranges::find(open, parent) == open.end() && !is_owner(parent, job, *slices))
    return Refusal("slice '" + parent +
                   "' is not open to jobs: you own neither it nor one above it, and slices= in plugstack.conf does "
                   "not name it");
  if (parent == kParent)
    if (const auto made = create(daemon, parent, {}); !made) return made.error();

  const Request whole = of_whole_job(request, arguments, job);
  const std::string path = parent + '/' + job_name(job.id);
  const bool exists = std::ranges::any_of(*slices, [&](const ipc::Slice& slice) { return slice.path == path; });
  if (request.latency && !exists && !is_owner(parent, job, *slices))
    return Refusal("--gpu-latency: jobs beside this one would yield, and you own neither slice '" + parent +
                   "' nor one above it");
  const auto made = create(daemon, path, settings_of(whole, limits_of(whole, arguments, job, *devices), job));
  if (!made) return made.error();

  // An earlier step may have made it, perhaps a moment ago.
  const auto reply = daemon.call("GetSlice", {{"path", path}});
  if (!reply) return reply.error();
  const auto there = read_reply<ipc::Slice>(*reply, [](ipc::Fields& fields) {
    ipc::Slice slice;
    ipc::Fields read_from = fields.object("slice");
    read(read_from, slice);
    return slice;
  });
  if (!there) return there.error();
  if (there->owner_uid != static_cast<std::int64_t>(job.uid))
    return Refusal("slice '" + path + "' is there already and belongs to another user");
  if (!needs_own(request, *there)) return path;
  const std::string own = path + '/' + std::string(kStep) + std::to_string(job.step);
  const auto made_own = create(daemon, own, settings_of(request, {request.sms, request.memory}, job));
  if (!made_own) return made_own.error();
  return own;
}

bool is_of_one_step(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with(kStep);  // npos + 1 is 0
}

std::vector<std::string> end_slice(Daemon& daemon, const std::string& path) {
  std::vector<std::string> failed;
  const auto note = [&](const auto& answer) {
    if (!answer && answer.error().name != "NoSuchSlice") failed.push_back(path + ": " + answer.error().message);
  };
  note(daemon.call("Kill", {{"slice", path}, {"timeout_ms", kGraceMs}}, kToEnd));
  const auto slices = list_slices(daemon);
  if (!slices) return note(slices), failed;
  std::vector<std::string> paths;
  for (const ipc::Slice& slice : *slices)
    if (is_in(slice.path, path)) paths.push_back(slice.path);
  // What is below goes first.
  std::ranges::sort(paths, std::greater(), [](const std::string& each) { return std::ranges::count(each, '/'); });
  for (const std::string& each : paths) note(daemon.call("DeleteSlice", {{"path", each}}));
  return failed;
}

std::vector<std::string> slices_of(std::uint32_t job, uid_t uid, const std::vector<ipc::Slice>& slices) {
  std::vector<std::string> paths;
  for (const ipc::Slice& slice : slices)
    if (slurm_job_of(slice.path) == job && slice.owner_uid == static_cast<std::int64_t>(uid))
      paths.push_back(slice.path);
  return paths;
}

std::vector<std::string> leftovers(const std::vector<ipc::Slice>& slices, const std::set<std::uint32_t>& living,
                                   const Arguments& arguments) {
  const auto open = open_to_jobs(arguments);
  std::vector<std::string> paths;
  for (const ipc::Slice& slice : slices) {
    const std::uint32_t job = slurm_job_of(slice.path);
    if (job == 0 || living.contains(job) || std::ranges::find(open, above(slice.path)) == open.end()) continue;
    const bool used = std::ranges::any_of(
        slices, [&](const ipc::Slice& other) { return is_in(other.path, slice.path) && other.clients > 0; });
    if (!used) paths.push_back(slice.path);
  }
  return paths;
}

}  // namespace gpuctl::slurm
