// Limits of memory that the driver keeps for control groups (NVML of drivers from 615 on). To set one takes root, which
// the daemon is not, and the library maps the driver, which the daemon does not. So `gpuctld --limit-memory` does it,
// as root behind a socket of the service manager, or as the daemon's child. It takes one group, and says of each GPU
// what came of it.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/nvml_library.h"
#include "base/result.h"
#include "gpuctld/host/child_program.h"
#include "sched/group_limits.h"

namespace gpuctl::daemon {

/// What is to be in force for a control group on one GPU.
struct LimitOnGpu {
  std::string uuid;
  sched::DriverLimit limit;
  /// None of ours was set there: one that is there is somebody else's, and stays.
  bool first = false;
};
struct GroupLimits {
  std::string cgroup;  ///< path, "/system.slice/ollama.service"
  std::vector<LimitOnGpu> gpus;
};
inline constexpr std::size_t kMostGpusAtOnce = 16, kMostCgroupPath = 1024;

/// Whether it is a path as the kernel has them, which leads to no other place: such as can be limited.
bool is_cgroup_path(std::string_view path);

/// The library in this process.
class NvmlLimits {
 public:
  explicit NvmlLimits(const std::string& library) : library_(library, "nvmlDeviceSetMemoryLimits_v1") {}
  /// Whether the driver can do it at all.
  bool can() const { return library_.function<void()>() != nullptr; }
  /// "": done, or the GPU is none of NVML's, as the software GPU. Else why not, for a person.
  std::string set(const std::string& cgroup, const LimitOnGpu& wanted) const;

 private:
  NvmlLibrary library_;
};

/// The first line, without its end. It is cut where it is longer than any question.
std::string read_limits_question(int in);

/// Both are one line. An answer to a question that is not understood is an error too.
std::string limits_question(const GroupLimits& wanted);
std::string limits_answer(std::string_view question, const std::string& nvml);

/// By GPU, "" or why not; empty: the driver sets no limits.
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
  /// Whether there is anybody to be asked.
  bool is_there() const;
  /// `done` is called once, later, unless stop() comes first. None may be under way.
  void ask(const GroupLimits& wanted, Done done);
  void stop();

 private:
  void ask_child(const std::string& question);
  void ask_socket(std::string question);
  void hear_soon(const Error& error);
  void hear(const Result<std::string>& answer);

  boost::asio::io_context& context_;
  Place place_;
  boost::asio::local::stream_protocol::socket connection_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<ChildProgram> child_;
  std::string text_;  ///< what is sent, then what is read
  Done done_;
};

}  // namespace gpuctl::daemon
