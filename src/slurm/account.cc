#include "slurm/account.h"

#include <fstream>
#include <iterator>

#include "base/plural.h"
#include "ipc/codec.h"

namespace gpuctl::slurm {
namespace {

using namespace std::chrono_literals;

/// Whether the environment has the line, which begins a variable: "SLURM_JOB_ID=7" with its end, or "SLURM_STEP_ID=".
bool has(const std::string& environment, const std::string& line) {
  return environment.find('\0' + line) != std::string::npos;
}

/// By the environment that it began with.
bool is_of_step(std::int64_t pid, const Job& job) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  const std::string environment = '\0' + std::string(std::istreambuf_iterator<char>(file), {});
  const std::string step = "SLURM_STEP_ID=";
  if (!has(environment, "SLURM_JOB_ID=" + std::to_string(job.id) + '\0')) return false;
  return job.batch ? !has(environment, step) : has(environment, step + std::to_string(job.step) + '\0');
}

Answer<boost::json::object> look(Daemon& daemon, const std::string& path) {
  return daemon.call("GetSlice", {{"path", path}});
}

}  // namespace

void end_left_behind(Daemon& daemon, const std::string& path, const Job& job) {
  const auto reply = look(daemon, path);
  if (!reply) return;
  ipc::Fields fields(*reply);
  for (const ipc::Client& client : ipc::read_list<ipc::Client>(fields, "clients"))
    if (is_of_step(client.pid, job)) (void)daemon.call("Kill", {{"pid", client.pid}, {"timeout_ms", 2000}}, 10s);
}

Answer<std::string> account(Daemon& daemon, const std::string& path) {
  const auto reply = look(daemon, path);
  if (!reply) return reply.error();
  ipc::Fields fields(*reply);
  ipc::Slice slice;
  ipc::Fields said = fields.object("slice");
  read(said, slice);
  std::int64_t launches = slice.ended_launches, evictions = slice.ended_evictions, programs = slice.ended;
  for (const ipc::Client& client : ipc::read_list<ipc::Client>(fields, "clients")) {
    ++programs;
    for (const ipc::ClientUsage& usage : client.usage) {
      launches += usage.launches - usage.launches_before.value_or(0);
      evictions += usage.evictions - usage.evictions_before.value_or(0);
    }
  }
  if (!fields.ok()) return Refusal("the daemon's reply is not understood: " + fields.error().message);
  std::string line = "gpuctl: " + path + ": ";
  if (slice.max) line += "max " + plural(*slice.max, "SM") + ", ";
  line += plural(programs, "program") + ", " + std::to_string(launches) + " launches, ";
  return line + std::to_string(evictions) + " evictions, " + plural(slice.faults, "fault");
}

}  // namespace gpuctl::slurm
