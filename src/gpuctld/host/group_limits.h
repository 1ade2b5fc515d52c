// Limits of memory that the driver keeps for control groups (NVML of drivers from 615 on). To set one takes root, which
// the daemon is not, and the library maps the driver, which the daemon does not. So `gpuctld --limit-memory` does it,
// as root behind a socket of the service manager, or as the daemon's child. It takes one group, and says of each GPU
// what came of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/nvml_library.h"
#include "base/result.h"
#include "gpuctld/host/child_program.h"
#include "gpuctld/host/helper_question.h"
#include "sched/group_limits.h"

namespace gpuctl::daemon {

/// Where the tree of control groups is; tests have a directory of their own.
inline constexpr char kCgroups[] = "/sys/fs/cgroup";

/// Whether it is one of version 2: the driver knows no other.
bool has_unified_cgroups();

/// Of the control group that has this path now; another one of the same path has another one. 0: there is none.
std::uint64_t id_of_cgroup(const std::string& path);

/// What is to be in force for a control group on one GPU.
struct LimitOnGpu {
  std::string uuid;
  std::uint64_t bytes = sched::kNoDriverLimit;
};
struct GroupLimits {
  std::string cgroup;  ///< path, "/system.slice/ollama.service"
  std::vector<LimitOnGpu> gpus;
};
inline constexpr std::size_t kMostGpusAtOnce = 16, kMostCgroupPath = 1024;

/// What comes of it on one GPU: it is in force; there is no such GPU, as the software GPU is none to NVML, or no such
/// control group any more; else why not, for a person.
inline constexpr char kLimitSet[] = "set", kNothingLimited[] = "nothing";

/// Whether it is a path as the kernel has them, which leads to no other place: such as can be limited.
bool is_cgroup_path(std::string_view path);

/// The library in this process.
class NvmlLimits {
 public:
  explicit NvmlLimits(const std::string& library, std::string cgroups = kCgroups)
      : library_(library, "nvmlDeviceSetMemoryLimits_v1"), cgroups_(std::move(cgroups)) {}
  /// Whether the driver can do it at all.
  bool can() const { return library_.function<void()>() != nullptr; }
  /// What came of it.
  std::string set(const std::string& cgroup, const LimitOnGpu& wanted) const;

 private:
  NvmlLibrary library_;
  std::string cgroups_;
};

/// The first line, without its end. It is cut where it is longer than any question.
std::string read_limits_question(int in);

/// Both are one line. An answer to a question that is not understood is an error too.
std::string limits_question(const GroupLimits& wanted);
std::string limits_answer(std::string_view question, const std::string& nvml, const std::string& cgroups = kCgroups);

/// What came of it by GPU; empty: the driver sets no limits.
Result<std::vector<std::string>> read_limits_answer(const std::string& answer);

/// Asks one question at a time. Everything is called on the thread that runs the io_context.
class LimitsHelper {
 public:
  /// Of who sets them.
  struct Place {
    std::string socket;   ///< where `gpuctld --limit-memory` answers; "": `program --limit-memory` is started
    std::string program;  ///< "" too: nobody is asked
    std::chrono::milliseconds patience{20'000};
  };
  using Done = std::function<void(const Result<std::vector<std::string>>& outcomes)>;

  LimitsHelper(boost::asio::io_context& context, Place place);
  ~LimitsHelper() { stop(); }
  LimitsHelper(const LimitsHelper&) = delete;
  LimitsHelper& operator=(const LimitsHelper&) = delete;
  /// Whether there is anybody to be asked.
  bool is_there() const;
  /// `done` is called once, later, unless stop() comes first. None may be under way.
  void ask(const GroupLimits& wanted, Done done);
  void stop();

 private:
  void ask_child(const std::string& question);
  void ask_socket(const std::string& question);
  void hear_soon(const Error& error);
  void hear(const Result<std::string>& answer);

  boost::asio::io_context& context_;
  Place place_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<ChildProgram> child_;
  std::shared_ptr<HelperQuestion> question_;
  Done done_;
};

}  // namespace gpuctl::daemon
