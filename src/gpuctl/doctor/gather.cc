#include "gpuctl/doctor/gather.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/cgroup.h"
#include "base/in_container.h"
#include "base/installed.h"
#include "base/mps_home.h"
#include "base/process_owner.h"
#include "gpuctl/doctor/child.h"
#include "gpuctl/doctor/driver_limits.h"
#include "gpuctl/doctor/machine.h"
#include "gpuctl/line/daemon.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/run/preload_obstacle.h"
#include "gpuctl/run/run_watch.h"
#include "gpuctl/views/run_environment.h"
#include "sched/joins.h"

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<std::vector<ipc::Slice>> list_slices(const Context& context) {
  const auto list = ask(context, "ListSlices");
  if (!list) return {};
  auto slices = decode_reply(*list, [](ipc::Fields& fields) { return ipc::read_list<ipc::Slice>(fields, "slices"); });
  return slices ? std::optional(std::move(*slices)) : std::nullopt;
}

void see_daemon(const Context& context, MachineSeen& seen) {
  seen.socket = context.socket;
  const auto reply = ask(context, "GetStatus");
  if (!reply) {
    seen.no_daemon = reply.error().message;
    return;
  }
  auto status = decode(ipc::from_json<ipc::Status>(*reply));
  if (status)
    seen.status = std::move(*status);
  else
    seen.no_daemon = status.error().message;
  if (auto slices = list_slices(context)) seen.slices = std::move(*slices);
}

void see_software_gpu(MachineSeen& seen) {
  const char* named = std::getenv("GPUCTL_SOFTGPU");
  if (named == nullptr || *named == '\0') return;
  if (const Result<std::string> found = find_software_gpu(own_executable()); !found)
    seen.no_software_gpu = found.error().message;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ...": the word with dots.
std::string version_in(const std::string& line) {
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 && word.find('.') != word.npos) return word;
  return "of a version that is not known";
}

void see_driver(MachineSeen& seen) {
  std::ifstream version("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(version, line)) return;
  seen.driver = true;
  seen.driver_version = version_in(line);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev", ignored)) {
    const std::string name = entry.path().filename();
    const bool gpu = name.starts_with("nvidia") && name.size() > 6 &&
                     std::all_of(name.begin() + 6, name.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    if ((gpu || name == "nvidiactl" || name == "nvidia-uvm") && ::access(entry.path().c_str(), R_OK | W_OK) != 0)
      seen.closed_devices.push_back(entry.path());
  }
  std::ranges::sort(seen.closed_devices);
  seen.smi = ask_smi();
}

void see_mps(MachineSeen& seen) {
  const char* directory = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  seen.mps_directory_set = directory != nullptr && *directory != '\0';
  seen.mps_directory = seen.mps_directory_set ? directory : "/tmp/nvidia-mps";
  const std::string control = seen.mps_directory + "/control";
  const auto owner = mps_owner(seen.mps_directory);
  // A container has processes of its own, and may have the directory of the host's MPS, which removes this at its end.
  seen.mps_control =
      owner || (seen.in_container && exists(mps_home(seen.mps_directory) + "/nvidia-cuda-mps-control.pid"));
  seen.mps_left = !seen.mps_control && exists(control);
  seen.mps_reachable = ::access(control.c_str(), W_OK) == 0;
  if (owner) seen.mps_owner = user_name(*owner);
  if (seen.status && seen.status->mps_directory)
    if (const auto own = mps_owner(*seen.status->mps_directory)) seen.own_mps_owner = user_name(*own);
}

void see_cgroups(MachineSeen& seen) {
  const Cgroups found = cgroups_of();
  seen.cgroups = found.version;
  seen.dmem = found.dmem;
  seen.driver_limits = DriverLimits::can();
}

/// gpuctl brings what it needs itself, so a program of the container's image is asked whether it has the library.
void see_container(MachineSeen& seen) {
  seen.in_container = exists("/.dockerenv") || exists("/run/.containerenv");
  seen.container_slice = container_slice();
  if (seen.container_slice.empty()) return;
  const auto mapped = ask_child({"cat", "/proc/self/maps"});  // an image need not have this program
  seen.container_preloads = !mapped || mapped->text.find("/libgpuslice.so") != mapped->text.npos;
}

void see_library(MachineSeen& seen) {
  const Result<std::string> library = find_library(own_executable());
  if (!library) {
    seen.no_library = library.error().message;
    return;
  }
  seen.library = *library;
  const char* before = std::getenv("LD_PRELOAD");
  const std::string preload = *library + (before != nullptr && *before != '\0' ? ":" + std::string(before) : "");
  const auto said = ask_child({"/bin/true"}, {{"LD_PRELOAD", preload}});
  if (!said)
    seen.library_says = "a program with it did not end";
  else if (said->status != 0 || said->text.find(*library) != std::string::npos)
    seen.library_says = trimmed(said->text.substr(0, said->text.find('\n')));
  const fs::path beside = fs::path(*library).parent_path();
  seen.helper = std::ranges::any_of(kCompileHelperPlaces, [&](const char* place) { return exists(beside / place); });
}

void see_configuration(MachineSeen& seen) {
  const fs::path beside = fs::path(own_executable()).parent_path();
  std::string gpuctld = beside / "gpuctld";
  if (!exists(gpuctld)) gpuctld = beside / "../gpuctld/gpuctld";
  if (!exists(gpuctld)) gpuctld = beside / "../sbin/gpuctld";
  if (!exists(gpuctld) || ::access("/etc/gpuctl.toml", R_OK) != 0) return;
  const auto said = ask_child({gpuctld, "--check-config"});
  if (!said) return;
  seen.configuration_read = true;
  if (said->status == 0) return;
  std::istringstream lines(said->text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) seen.configuration.push_back(line);
}

/// Bytes that the programs of the slice may hold on the device together.
std::optional<std::int64_t> memory_limit(const ipc::Slice& slice, std::int64_t device) {
  const auto on = std::ranges::find(slice.on_gpus, device, &ipc::SliceOnGpu::device);
  if (on != slice.on_gpus.end()) return on->memory_max;
  return slice.effective_memory_max ? slice.effective_memory_max : slice.memory_max;
}

/// Its slice, and what limits its memory.
void see_limits(const Context& context, ProgramSeen& seen) {
  const auto reply = ask(context, "GetStatus");
  if (!reply) return;
  const auto status = decode(ipc::from_json<ipc::Status>(*reply));
  const auto slices = list_slices(context);
  if (!slices || !status) return;
  const auto own = std::ranges::find(*slices, seen.client->slice, &ipc::Slice::path);
  if (own != slices->end()) seen.slice = *own;
  seen.cgroup = cgroup_of(static_cast<std::int32_t>(seen.client->pid));
  const DriverLimits driver;
  for (const ipc::ClientUsage& usage : seen.client->usage) {
    const auto device = std::ranges::find(status->devices, usage.device, &ipc::Device::index);
    if (device == status->devices.end()) continue;
    seen.memory.push_back({.device = usage.device,
                           .slice = seen.slice ? memory_limit(*seen.slice, usage.device) : std::nullopt,
                           .driver = driver.of(seen.cgroup, device->uuid, device->memory_bytes)});
  }
}

/// What says that the library is mandatory for the process; "": nothing.
std::string mandatory_for(const Context& context, std::int32_t pid) {
  const auto reply = ask(context, "GetStatus");
  const auto status = reply ? decode(ipc::from_json<ipc::Status>(*reply)) : Outcome<ipc::Status>(reply.error());
  const auto owner = owner_of(pid);
  if (!status || !status->mandatory || !owner) return {};
  const std::string cgroup = cgroup_of(pid);
  return sched::mandatory_for(*status->mandatory,
                              {.caller = {.uid = owner->uid, .gids = owner->gids}, .cgroup = cgroup});
}

}  // namespace

MachineSeen see_machine(const Context& context) {
  MachineSeen seen;
  see_container(seen);
  see_daemon(context, seen);
  see_driver(seen);
  see_mps(seen);
  see_library(seen);
  see_software_gpu(seen);
  see_configuration(seen);
  see_cgroups(seen);
  return seen;
}

ProgramSeen see_program(const Context& context, std::int64_t pid) {
  ProgramSeen seen;
  seen.container_slice = container_slice();
  seen.pid = pid;
  const std::string proc = "/proc/" + std::to_string(pid);
  seen.alive = exists(proc);
  if (!seen.alive && seen.container_slice.empty()) return seen;  // in a container it may be an id of the host
  const Result<std::string> library = find_library(own_executable());
  const CudaUse use = cuda_use(static_cast<pid_t>(pid), library ? *library : "");
  seen.uses_cuda = use.managed != 0 || use.unmanaged != 0;
  seen.has_library = use.unmanaged == 0 && use.managed != 0;
  seen.hidden = use.hidden != 0 && !seen.uses_cuda;
  seen.user = use.unmanaged != 0 ? use.unmanaged : seen.hidden ? use.hidden : use.managed;
  if (use.unmanaged != 0) {
    seen.obstacle = preload_obstacle("/proc/" + std::to_string(use.unmanaged) + "/exe");
    seen.mandatory = mandatory_for(context, use.unmanaged);
  }
  const auto reply = ask(context, "ListClients");
  if (!reply) {
    seen.no_daemon = reply.error().message;
    return seen;
  }
  const auto clients =
      decode_reply(*reply, [](ipc::Fields& fields) { return ipc::read_list<ipc::Client>(fields, "clients"); });
  if (!clients) {
    seen.no_daemon = clients.error().message;
    return seen;
  }
  auto found = std::ranges::find(*clients, pid, &ipc::Client::pid);
  // A shell or the like, whose child is the program.
  if (found == clients->end()) found = std::ranges::find(*clients, use.managed, &ipc::Client::pid);
  if (found == clients->end()) return seen;
  seen.client = *found;
  seen.alive = true;
  seen.user = found->pid;
  see_limits(context, seen);
  return seen;
}

}  // namespace gpuctl::cli
