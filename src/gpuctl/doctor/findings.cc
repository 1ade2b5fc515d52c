#include "gpuctl/doctor/findings.h"

#include <algorithm>

#include "base/plural.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/slice_rows.h"

namespace gpuctl::cli {
namespace {

using enum Severity;

void judge_daemon(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (!seen.status) {
    findings.push_back({error, "daemon",
                        seen.no_daemon + ": 'gpuctl run' starts nothing, and programs that are linked with libgpuslice "
                                         "run WITHOUT LIMITS",
                        seen.in_container
                            ? "mount the directory of the host's socket into the container, or start gpuctld here"
                        : !seen.configuration.empty() ? "mend the configuration first"
                                                      : "systemctl enable --now gpuctld.socket, or set GPUCTL_SOCKET"});
    return;
  }
  findings.push_back({good, "daemon", "gpuctld " + printable(seen.status->version) + " answers at " + seen.socket, ""});
  if (seen.status->devices.empty())
    findings.push_back({error, "daemon", "gpuctld has no GPU to manage", "see what it says: journalctl -u gpuctld"});
  for (const std::string& note : seen.status->notes)
    if (!note.starts_with("MPS is ") && !note.starts_with("how long a turn lasts"))
      findings.push_back({Severity::note, "daemon", printable(note), ""});
}

bool manages(const MachineSeen& seen, std::string_view mode) {
  return seen.status && std::ranges::any_of(seen.status->devices, [&](const auto& one) { return one.mode == mode; });
}

bool software_only(const MachineSeen& seen) {
  return seen.status && !seen.status->devices.empty() &&
         std::ranges::all_of(seen.status->devices, [](const auto& one) { return one.kind == "software"; });
}

/// Why a GPU's clock is no higher, as NVML has it.
struct ClockReason {
  std::uint64_t bits;
  Severity severity;
  const char* text;
};
constexpr std::uint64_t kIdle = 0x1;
constexpr ClockReason kClockReasons[] = {{0x8, warning, "slowed down by the hardware"},
                                         {0x20 | 0x40, warning, "throttled, as it is too hot"},
                                         {0x80, warning, "throttled, as its power supply asks for it"},
                                         {0x2, note, "limited by the clocks that were set"},
                                         {0x4, note, "limited by how much power it may use"},
                                         {0x10 | 0x100, note, "limited for another GPU or a display"}};

/// What it is, how fast it runs, and what keeps it from running faster.
Finding judge_clocks(const SmiDevice& device) {
  const std::uint64_t by = device.slowed_by.value_or(0);
  std::string what = "GPU " + printable(device.uuid) + " (" + printable(device.name) + ")";
  if (!device.clock.empty())
    what += ": its SMs run at " + printable(device.clock) + " of " + printable(device.most_clock);
  if ((by & kIdle) != 0) what += ", idle";
  if (device.slowed_by == 0u) what += ", not slowed down";
  Severity severity = good;
  for (const ClockReason& reason : kClockReasons) {
    if ((by & reason.bits) == 0) continue;
    what.append(", ").append(reason.text);
    severity = std::max(severity, reason.severity);
  }
  return {severity, "GPU", what, severity == warning ? "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER says more" : ""};
}

void judge_driver(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (software_only(seen)) {
    findings.push_back({note, "driver", "gpuctld manages the software GPU: this is for tests", ""});
    return;
  }
  if (!seen.driver) {
    // Without a daemon it is not known whether there is to be one.
    findings.push_back({seen.status ? error : note, "driver",
                        "NVIDIA's kernel module is not loaded, so there is no GPU",
                        "install the driver, or use the software GPU: software_gpu = true below [daemon] in "
                        "gpuctl.toml (Debian: package gpuctl-softgpu), and start gpuctld anew"});
    return;
  }
  findings.push_back({good, "driver", "NVIDIA driver " + printable(seen.driver_version), ""});
  for (const std::string& device : seen.closed_devices)
    findings.push_back({error, "rights", "this user may not open " + device + ": CUDA programs fail",
                        "give the user the group of " + device});
  for (const SmiDevice& device : seen.smi) {
    findings.push_back(judge_clocks(device));
    if (device.compute_mode == "Prohibited")
      findings.push_back({error, "driver",
                          "GPU " + printable(device.uuid) + " is in compute mode PROHIBITED: no program can use it",
                          "nvidia-smi -c DEFAULT"});
    if (device.compute_mode == "Exclusive_Process" && !seen.mps_control && !(seen.status && seen.status->mps_directory))
      findings.push_back({error, "driver",
                          "GPU " + printable(device.uuid) +
                              " is in compute mode EXCLUSIVE_PROCESS and MPS does not run: one program at a time",
                          "start MPS, or nvidia-smi -c DEFAULT"});
    if (device.persistence == "Disabled")
      findings.push_back({note, "driver",
                          "GPU " + printable(device.uuid) + " has no persistence: the first program waits for seconds",
                          "systemctl enable --now nvidia-persistenced"});
  }
}

/// As gpuctld has it, after "; "; "": it does not say.
std::string why_no_mps(const MachineSeen& seen) {
  constexpr std::string_view kStart = "MPS is not active";
  for (const std::string& note : seen.status ? seen.status->notes : std::vector<std::string>())
    if (const std::size_t why = note.rfind("; "); note.starts_with(kStart) && why != note.npos)
      return printable(note.substr(why));
  return "";
}

/// Whose it is, as far as known.
std::string started_by(const std::string& owner) {
  return owner.empty() ? "" : ", which " + printable(owner) + " started";
}

/// That of gpuctld.
void judge_own_mps(const MachineSeen& seen, const std::string& directory, std::vector<Finding>& findings) {
  const std::string where = printable(directory);
  if (!seen.mps_directory_set) {
    findings.push_back(
        {good, "MPS", "programs of slices run side by side by MPS in " + where + started_by(seen.own_mps_owner), ""});
    return;
  }
  if (seen.mps_directory != directory)
    findings.push_back({warning, "MPS",
                        "MPS is in " + where + ", but programs started from here look for it in " +
                            printable(seen.mps_directory) + ": they take turns with all others",
                        "unset CUDA_MPS_PIPE_DIRECTORY"});
}

void judge_mps(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (software_only(seen) || !seen.driver) return;
  const bool shared = manages(seen, "mps");
  if (seen.status && seen.status->mps_directory) return judge_own_mps(seen, *seen.status->mps_directory, findings);
  if (shared && !seen.mps_control)
    findings.push_back({error, "MPS",
                        "MPS runs, but programs started from here look for it in " + printable(seen.mps_directory) +
                            ", where it is not: they take turns with all others",
                        "set CUDA_MPS_PIPE_DIRECTORY to the directory of MPS"});
  else if (shared && !seen.mps_reachable)
    findings.push_back({error, "MPS",
                        "this user may not use MPS in " + printable(seen.mps_directory) + started_by(seen.mps_owner),
                        "MPS serves one user at a time unless root started it; see NVIDIA's documentation"});
  else if (shared)
    findings.push_back(
        {good, "MPS",
         "programs run side by side by MPS in " + printable(seen.mps_directory) + started_by(seen.mps_owner), ""});
  else if (seen.mps_control)
    findings.push_back(
        {warning, "MPS",
         "MPS is in " + printable(seen.mps_directory) + started_by(seen.mps_owner) + ", and gpuctld does not know it",
         "give gpuctld the same CUDA_MPS_PIPE_DIRECTORY: systemctl edit gpuctld"});
  else if (seen.status && std::ranges::any_of(seen.status->notes, [](const std::string& note) {
             return note.starts_with("MPS is started for the first program");
           }))
    findings.push_back({good, "MPS", "gpuctld starts MPS for the first program of a slice", ""});
  else
    findings.push_back(
        {warning, "MPS",
         "MPS does not run: programs take turns, and a reserve keeps no SMs" + why_no_mps(seen) +
             (seen.mps_left ? "; what is in " + printable(seen.mps_directory) + " is of one that ended" : ""),
         "mps = \"manage\" in gpuctl.toml, or nvidia-cuda-mps-control -d"});
}

void judge_library(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (seen.library.empty()) {
    findings.push_back({error, "library", seen.no_library, ""});
    return;
  }
  if (!seen.library_says.empty())
    findings.push_back({error, "library",
                        printable(seen.library) + " cannot be loaded, so programs run WITHOUT LIMITS or not at all: " +
                            printable(seen.library_says),
                        "install gpuctl for this system's C library"});
  else
    findings.push_back({good, "library", printable(seen.library) + " loads", ""});
  if (!seen.helper)
    findings.push_back({warning, "library",
                        "the compile helper is not beside it: no kernel can give SMs back while it runs",
                        "install gpuslice-compile"});
}

void judge_software_gpu(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (!seen.no_software_gpu.empty())
    findings.push_back({software_only(seen) ? error : warning, "software GPU", printable(seen.no_software_gpu),
                        "set GPUCTL_SOFTGPU to the directory of the software libcuda.so.1, or unset it"});
}

Finding max_is_0(const ipc::Slice& slice, const std::string& topic) {
  const std::string path = printable(slice.path);
  if (slice.max == 0)
    return {warning, topic, "slice " + path + " has max 0: no program in it and below it gets an SM",
            "gpuctl set " + path + " max=none"};
  return {warning, topic, "a slice above " + path + " has max 0: no program in it gets an SM",
          "gpuctl list says which"};
}

void judge_slices(const MachineSeen& seen, std::vector<Finding>& findings) {
  for (const ipc::Slice& slice : seen.slices) {
    if (slice.max == 0) findings.push_back(max_is_0(slice, "slices"));
    if (slice.path == "/" && is_frozen(slice))
      findings.push_back({warning, "slices", "all slices are frozen: no program gets an SM", "gpuctl thaw /"});
  }
}

/// Which slices share no context of the GPU with others, and what that costs.
void judge_isolation(const MachineSeen& seen, std::vector<Finding>& findings) {
  constexpr std::size_t kNamed = 8;
  std::vector<std::string> isolated;
  for (const ipc::Slice& slice : seen.slices)
    if (slice.effective_isolation.value_or(slice.isolation) == kIsolations.back())
      isolated.push_back(printable(slice.path));
  if (isolated.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, isolated.size()); ++i) names += (i == 0 ? "" : ", ") + isolated[i];
  if (isolated.size() > kNamed) names += " and " + std::to_string(isolated.size() - kNamed) + " more";
  findings.push_back({good, "isolation",
                      "isolated now: " + names +
                          "; a context or MPS of their own takes some 600 MiB of each GPU, and "
                          "each turn some 0.2 ms (seen on an H200)",
                      ""});
}

void judge_cgroups(const MachineSeen& seen, std::vector<Finding>& findings) {
  if (seen.cgroups == 1)
    findings.push_back(
        {note, "cgroups", "are of version 1, so limits of memory that the driver keeps by cgroup are not seen", ""});
  if (seen.cgroups == 2 && seen.driver_limits)
    findings.push_back({good, "cgroups",
                        std::string("are of version 2, and the driver limits their memory, by ") +
                            (seen.dmem ? "the controller dmem" : "itself: there is no controller dmem"),
                        ""});
  else if (seen.cgroups == 2)
    findings.push_back({good, "cgroups",
                        "are of version 2, and this driver cannot limit their memory" +
                            std::string(seen.dmem ? ", though there is the controller dmem" : "") +
                            ": the library alone keeps memory-max",
                        ""});
}

void judge_container(const MachineSeen& seen, std::vector<Finding>& findings) {
  const std::string slice = printable(seen.container_slice);
  if (!seen.container_slice.empty() && !seen.container_preloads)
    findings.push_back({error, "container",
                        "the library is not in this container's programs, though it has the device of slice " + slice +
                            ": they run WITHOUT LIMITS",
                        "take an image with glibc 2.34 or later"});
  else if (!seen.container_slice.empty())
    findings.push_back({good, "container", "its programs are in slice " + slice + ", if their user may be in it", ""});
  else if (seen.in_container)
    findings.push_back({note, "container",
                        "it has no device of a slice: what 'gpuctl run' does not start runs WITHOUT LIMITS",
                        "start it with --device gpuctl.io/slice=NAME"});
}

void judge_configuration(const MachineSeen& seen, std::vector<Finding>& findings) {
  for (const std::string& line : seen.configuration)
    findings.push_back({error, "configuration", printable(line),
                        seen.status ? "mend it, then: systemctl reload gpuctld"
                                    : "mend it, then: systemctl reset-failed gpuctld.service gpuctld.socket; systemctl "
                                      "restart gpuctld.socket"});
  if (seen.configuration_read && seen.configuration.empty())
    findings.push_back({good, "configuration", "is valid", ""});
}

/// What it gets on one GPU.
std::string share_text(const ipc::ClientUsage& usage) {
  std::string text = "on GPU " + std::to_string(usage.device) + ": mode " + printable(usage.mode);
  if (usage.mode == "free") return text + ", all SMs, as without gpuctl";
  if (usage.common_sms > 0) return text + ", " + plural(usage.common_sms, "SM") + " in common with others";
  return text + ", " + plural(usage.granted, "SM") + " of its own now" +
         (usage.granted == 0 ? "; gpuctl explain says what is in force" : "");
}

/// Why a program in the slice may get less than it asks for, or later.
void judge_slice(const ipc::Slice& slice, std::vector<Finding>& findings) {
  const std::string path = printable(slice.path);
  if (is_frozen(slice)) findings.push_back({note, "program", "frozen: it gets no SMs", "gpuctl thaw " + path});
  if (slice.effective_max.value_or(slice.max.value_or(-1)) == 0 && !is_frozen(slice))
    findings.push_back(max_is_0(slice, "program"));
  if (slice.quota_now) findings.push_back({note, "program", "throttled: " + printable(*slice.quota_now), ""});
  if (const auto high = slice.effective_memory_high ? slice.effective_memory_high : slice.memory_high;
      high && slice.memory_waits > 0)
    findings.push_back({note, "program",
                        "allocations in its slice waited " + plural(slice.memory_waits, "time") + ", above memory_high",
                        "gpuctl show " + path});
}

/// What its memory is kept to on one GPU, and by whom.
void judge_memory(const MemoryLimits& limits, const std::string& cgroup, std::vector<Finding>& findings) {
  if (!limits.slice && !limits.driver) return;
  const std::string on = "on GPU " + std::to_string(limits.device) + ": ";
  const std::string slice = !limits.slice ? ""
                                          : "at most " + format_bytes(*limits.slice) + " for its slice, kept by the " +
                                                "library" + (limits.driver ? "; " : " alone");
  if (!limits.driver) return findings.push_back({good, "memory", on + slice, ""});
  const std::string both =
      on + slice + "at most " + format_bytes(*limits.driver) + " for " + printable(cgroup) + ", kept by the driver";
  if (limits.slice && *limits.driver > *limits.slice) return findings.push_back({good, "memory", both, ""});
  // The driver counts what it needs itself, the library does not.
  findings.push_back({limits.slice ? warning : note, "memory",
                      both + (limits.slice ? ", which refuses memory that the slice allows" : ""),
                      limits.slice ? "raise it (nvidia-smi memory-limits), or lower memory-max" : ""});
}

}  // namespace

std::vector<Finding> judge(const MachineSeen& seen) {
  std::vector<Finding> findings;
  judge_daemon(seen, findings);
  judge_driver(seen, findings);
  judge_mps(seen, findings);
  judge_library(seen, findings);
  judge_software_gpu(seen, findings);
  judge_slices(seen, findings);
  judge_configuration(seen, findings);
  judge_isolation(seen, findings);
  judge_cgroups(seen, findings);
  judge_container(seen, findings);
  return findings;
}

std::vector<Finding> judge(const ProgramSeen& seen) {
  std::string name = "process " + std::to_string(seen.pid);
  if (!seen.no_daemon.empty()) return {{error, "daemon", seen.no_daemon, ""}};
  if (!seen.client && !seen.container_slice.empty())
    return {{note, "program",
             "gpuctl knows programs by their ids on the host, so " + name + " of this container is not found",
             "ask for its id on the host, which 'gpuctl top --once' shows"}};
  if (!seen.alive) return {{error, "program", name + " does not run", ""}};
  if (seen.user != 0 && seen.user != seen.pid) name = "process " + std::to_string(seen.user) + ", below " + name + ",";
  if (!seen.client) {
    if (seen.hidden)
      return {{warning, "program", name + " may not be looked at: whether it uses CUDA is not known", "ask as root"}};
    if (!seen.uses_cuda) return {{note, "program", name + " does not use CUDA, and is in no slice", ""}};
    if (seen.has_library)
      return {
          {warning, "program",
           name +
               " has gpuctl's library and is in no slice, so NOTHING LIMITS IT: it has no connection to this daemon, "
               "or the daemon refused it",
           "compare GPUCTL_SOCKET of the program with that of gpuctl; gpuctl events says who was refused, and why"}};
    return {{error, "program",
             name + " uses CUDA without gpuctl's library, so NOTHING LIMITS IT" +
                 (seen.obstacle.empty() ? "" : ": " + printable(seen.obstacle)) +
                 (seen.mandatory.empty()
                      ? ""
                      : "; gpuctld ends it, as the library is mandatory for " + printable(seen.mandatory)),
             "start it again with: gpuctl run --slice NAME ..."}};
  }
  std::vector<Finding> findings;
  findings.push_back({good, "program", name + " is in slice " + printable(seen.client->slice), ""});
  for (const ipc::ClientUsage& usage : seen.client->usage) findings.push_back({good, "program", share_text(usage), ""});
  if (seen.slice) judge_slice(*seen.slice, findings);
  for (const MemoryLimits& limits : seen.memory) judge_memory(limits, seen.cgroup, findings);
  if (seen.client->state == "disobeying")
    findings.push_back({warning, "program", "it holds SMs that were taken from it: a thread block of it runs on", ""});
  if (seen.client->state == "faulted")
    findings.push_back(
        {warning, "program", "the driver broke its context: what it asks of CUDA fails", "start it again"});
  if (seen.client->state == "silent")
    findings.push_back({note, "program", "it is stopped, and gets nothing until it goes on", ""});
  return findings;
}

Severity worst(const std::vector<Finding>& findings) {
  const auto by_severity = [](const Finding& a, const Finding& b) { return a.severity < b.severity; };
  const auto found = std::ranges::max_element(findings, by_severity);
  return found == findings.end() ? good : found->severity;
}

}  // namespace gpuctl::cli
