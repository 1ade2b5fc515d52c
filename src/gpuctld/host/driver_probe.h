// Asks a CUDA driver for its devices, in a child process. The daemon itself never initialises CUDA: a context would
// cost it memory on every GPU and tie its life to the driver's. A driver that crashes or hangs does that in the child.
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

namespace gpuctl::daemon {

/// How long a driver may take to answer: it initialises every GPU of the machine first.
inline constexpr std::chrono::seconds kProbeTimeout{60};

/// One question. Everything is called on the thread that runs the io_context. The process has no other thread.
class DriverProbe : public std::enable_shared_from_this<DriverProbe> {
 public:
  /// An empty list if the driver has no devices. An error names the library.
  using Done = std::function<void(Result<std::vector<Gpu>>)>;

  /// `library`: a path, or a name for the dynamic linker. `done` is called once, later, unless cancel() comes first.
  static Result<std::shared_ptr<DriverProbe>> start(boost::asio::io_context& context, const std::string& library,
                                                    std::chrono::milliseconds timeout, Done done);
  ~DriverProbe();

  /// Ends the child process, if it still runs.
  void cancel();

 private:
  DriverProbe(boost::asio::io_context& context, std::string library, pid_t child, Done done);
  void wait();
  bool read();
  void finish();
  void reap();

  std::string library_;
  pid_t child_;  ///< 0: reaped
  boost::asio::posix::stream_descriptor answer_, exit_;
  boost::asio::steady_timer timer_;
  std::string text_;
  bool whole_ = false;  ///< the end of the answer was read
  Done done_;
};

}  // namespace gpuctl::daemon
