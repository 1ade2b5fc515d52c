// Asks a CUDA driver for its devices, in another process: a child of the daemon's, or gpuctld --probe behind a socket
// of the service manager. The daemon itself never maps a driver: a context would cost it memory on every GPU and tie
// its life to the driver's, and drivers map memory that they write and execute. A driver that crashes or hangs does
// that elsewhere.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpuctld/host/devices.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// How long a driver may take to answer: it initialises every GPU of the machine first.
inline constexpr std::chrono::seconds kProbeTimeout{60};
inline constexpr char kDriverLibrary[] = "libcuda.so.1", kNvmlLibrary[] = "libnvidia-ml.so.1";

/// Loads the library into this process, and returns what it says of its devices, for DriverProbe to understand; with
/// the energy of those that `nvml` knows (energy.h).
std::string driver_answer(const std::string& library, const std::string& nvml = kNvmlLibrary);
/// The devices in such an answer, or why there is none.
Result<std::vector<Gpu>> read_driver_answer(const std::string& text);

/// One question. Everything is called on the thread that runs the io_context. The process has no other thread.
class DriverProbe : public std::enable_shared_from_this<DriverProbe> {
 public:
  /// An empty list if the driver has no devices. An error names the library.
  using Done = std::function<void(Result<std::vector<Gpu>>)>;

  /// `library`: a path, or a name for the dynamic linker. `done` is called once, later, unless cancel() comes first.
  static Result<std::shared_ptr<DriverProbe>> start(boost::asio::io_context& context, const std::string& library,
                                                    std::chrono::milliseconds timeout, Done done);
  /// Reads driver_answer(kDriverLibrary) from a unix stream socket.
  static Result<std::shared_ptr<DriverProbe>> connect(boost::asio::io_context& context, const std::string& socket,
                                                      std::chrono::milliseconds timeout, Done done);
  ~DriverProbe();

  /// Ends the child process, if it still runs.
  void cancel();

 private:
  DriverProbe(boost::asio::io_context& context, std::string library, pid_t child, ipc::UniqueFd answer, Done done);
  void begin(std::chrono::milliseconds timeout);
  void wait();
  bool read();
  void finish();
  void reap();

  std::string library_;
  pid_t child_;  ///< 0: reaped, or none of ours
  boost::asio::posix::stream_descriptor answer_, exit_;
  boost::asio::steady_timer timer_;
  std::string text_;
  bool whole_ = false;  ///< the end of the answer was read
  Done done_;
};

}  // namespace gpuctl::daemon
