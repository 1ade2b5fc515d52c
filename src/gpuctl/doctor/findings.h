// What `gpuctl doctor` says of a machine and of a program. Pure: from what was seen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ipc/types.h"

namespace gpuctl::cli {

/// From the least grave on.
enum class Severity { good, note, warning, error };
inline constexpr std::array<std::string_view, 4> kSeverities{"ok", "note", "warning", "error"};

struct Finding {
  Severity severity = Severity::good;
  std::string topic;  ///< "driver", "MPS" ...
  std::string what;   ///< what is so, and what it means: one line
  std::string fix;    ///< what to do; "": nothing
};

/// Of a GPU, as nvidia-smi says.
struct SmiDevice {
  std::string uuid, compute_mode, persistence, name;
  std::string clock, most_clock;                ///< of its SMs, "1980 MHz"; "": not known
  std::optional<std::uint64_t> slowed_by = {};  ///< why it is no faster: bits of NVML's clocks event reasons
};

/// What was seen of this machine. Everything may be missing.
struct MachineSeen {
  std::string socket;
  std::optional<ipc::Status> status;  ///< of the daemon
  std::string no_daemon;              ///< why there is none

  bool driver = false;  ///< NVIDIA's kernel module is loaded
  std::string driver_version;
  std::vector<std::string> closed_devices;  ///< device files that this user may not open
  std::vector<SmiDevice> smi;

  std::string mps_directory;       ///< where programs started here look for MPS
  bool mps_directory_set = false;  ///< because CUDA_MPS_PIPE_DIRECTORY says so
  bool mps_control = false;        ///< MPS's control daemon serves there
  bool mps_left = false;           ///< it does not, and files of one that has ended are there
  bool mps_reachable = false;      ///< this user may use its socket
  std::string mps_owner;           ///< whose it is; "": not known
  std::string own_mps_owner;       ///< whose that of gpuctld is (Status::mps_directory)

  std::string library;       ///< path, or ""
  std::string no_library;    ///< why there is none
  std::string library_says;  ///< what ld.so says when it is preloaded; "": it loads
  bool helper = true;        ///< the compile helper is beside it

  std::string no_software_gpu;  ///< why GPUCTL_SOFTGPU names none; "": it does, or is not set

  std::vector<ipc::Slice> slices;  ///< of the daemon

  std::vector<std::string> configuration;  ///< lines of `gpuctld --check-config` that found something
  bool configuration_read = false;         ///< whether it could be asked

  int cgroups = 0;             ///< their version; 0: there are none
  bool dmem = false;           ///< their controller for the memory of devices is there
  bool driver_limits = false;  ///< the driver limits the memory of one

  bool in_container = false;
  std::string container_slice;     ///< whose device the container has; "": none
  bool container_preloads = true;  ///< a program of the container has the library
};
std::vector<Finding> judge(const MachineSeen& seen);

/// What limits the memory of a program on one GPU, in bytes.
struct MemoryLimits {
  std::int64_t device = 0;
  std::optional<std::int64_t> slice;   ///< all programs of its slice together; the library keeps it
  std::optional<std::int64_t> driver;  ///< all processes of its cgroup together; the driver keeps it
};

/// What was seen of one program.
struct ProgramSeen {
  std::int64_t pid = 0;
  std::int64_t user = 0;  ///< the process that uses CUDA, or is hidden: it, or one below it; 0: it
  bool alive = false;
  bool uses_cuda = false;
  bool hidden = false;  ///< nothing that may be looked at uses CUDA, and not all may be
  bool has_library = false;
  std::string obstacle;   ///< why nothing can be preloaded into it; "": nothing is known
  std::string mandatory;  ///< what says that the library is mandatory for it, so that it is ended; "": nothing
  std::optional<ipc::Client> client;
  std::optional<ipc::Slice> slice;   ///< its own
  std::string cgroup;                ///< "": not known
  std::vector<MemoryLimits> memory;  ///< on the GPUs that it uses
  std::string no_daemon;
  std::string container_slice;  ///< whose device the container has in which doctor runs; "": none
};
std::vector<Finding> judge(const ProgramSeen& seen);

Severity worst(const std::vector<Finding>& findings);

}  // namespace gpuctl::cli
