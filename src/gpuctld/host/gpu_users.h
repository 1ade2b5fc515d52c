// Programs that use a GPU past gpuctl: by CUDA, without its library, and so in no slice. Only who may look into all
// processes sees them, and the daemon may not. So `gpuctld --look` looks, as root behind a socket of the service
// manager. It takes nothing from the daemon, and tells it nothing but who they are.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpuctl::daemon {

/// NVIDIA's driver opens this device for CUDA, and not for what only asks about GPUs.
inline constexpr char kCudaDevice[] = "/dev/nvidia-uvm";

struct GpuUser {
  std::int32_t pid = 0;
  std::uint64_t start = 0;  ///< with `pid` it identifies the process (start_of)
  std::uint32_t uid = 0;    ///< its effective user
  std::string name;         ///< of its program, at most 15 characters
  std::string cgroup;       ///< path; "": not known
  bool driver = false;      ///< it has CUDA's driver, so it did not only inherit the device from who has
  bool child = false;       ///< of one that is told of, as those that load data for it
};

inline bool same_process(const GpuUser& a, const GpuUser& b) {
  return a.pid == b.pid && a.start == b.start;
}

inline constexpr std::size_t kMostGpuUsers = 256, kMostGpuUsersOfUser = 32;  ///< that are told of

/// Looks at all processes, and returns those that have `device` open and not gpuctl's library, for read_gpu_users. A
/// server of MPS is none of them, nor is the child of one of them that has not the driver: it may have only inherited
/// the device. Those with the driver come first, their children after them, then those that run for longest. Of
/// each user but root it looks at so many descriptors, in the order of the processes: each takes some 5 us.
/// Who keeps it from reading what it has mapped is told of as one without the driver (mapped.h).
std::string gpu_users_answer(const std::string& device = kCudaDevice, std::size_t most_descriptors_of_user = 1u << 17);
Result<std::vector<GpuUser>> read_gpu_users(const std::string& answer);

/// Asks again and again. Everything is called on the thread that runs the io_context.
class GpuUserWatch {
 public:
  /// Those that two looks in a row have seen: a program that comes and goes, as one that asks for the GPUs, is none.
  /// Called after each look that did not fail. True: it waits for something to become of one of them.
  using Seen = std::function<bool(const std::vector<GpuUser>&)>;

  struct Pace {
    std::chrono::milliseconds every{60'000};  ///< from a look to the next
    std::chrono::milliseconds again{5'000};   ///< while not sure of somebody, `Seen` waits, or a look failed
    std::chrono::milliseconds patience{20'000};
  };

  /// `socket`: where `gpuctld --look` answers; "": nobody is looked for. begin() begins with the first look.
  GpuUserWatch(boost::asio::io_context& context, std::string socket, Seen seen, Pace pace);
  void begin();
  /// Does not wait for its time. Between begin() and stop().
  void look_now();
  /// Nothing is called any more.
  void stop();
  /// Whether the latest look did not fail.
  bool sees() const { return sees_; }

 private:
  void look();
  void read();
  void hear(bool whole);
  void wait(std::chrono::milliseconds pause);

  std::string socket_;
  Seen seen_;
  Pace pace_;
  boost::asio::local::stream_protocol::socket connection_;
  boost::asio::steady_timer timer_;
  std::string answer_;
  std::vector<GpuUser> latest_;  ///< of the latest look
  bool looks_ = false;           ///< a look is under way
  bool sees_ = false;
  bool stopped_ = false;
};

/// Whether any process may have the device of CUDA open, as the kernel counts the users of its module in this file. It
/// is readable for everybody.
bool cuda_may_be_used(const std::string& file = "/sys/module/nvidia_uvm/refcnt");

}  // namespace gpuctl::daemon
