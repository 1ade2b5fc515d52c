// The life of the daemon: it looks for GPUs, serves what can be served without one, manages those it found, and does
// what signals and the service manager want.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "gpuctld/host/device_search.h"
#include "gpuctld/manager/manager.h"
#include "gpuctld/manager/without_gpu.h"
#include "ipc/unique_fd.h"

namespace gpuctl::daemon {

/// Everything runs on the thread that runs the io_context. When the service ends, the io_context has no more work.
class Service {
 public:
  /// Begins. `listener` is a listening unix stream socket. `software`: manage the software GPU.
  Service(boost::asio::io_context& context, ipc::UniqueFd listener, ManagerOptions options, Config config,
          bool software, Manager::Log log);

  /// Of the program: 0 after an orderly end, 1 if it could not go on.
  int exit_status() const { return exit_status_; }

 private:
  void found(std::vector<Gpu> devices);
  void failed(const std::string& why);
  void wait_for_signal();
  void reload();
  std::vector<std::string> read_again();
  void live(std::chrono::microseconds interval);
  void stop(int exit_status);

  boost::asio::io_context& context_;
  ipc::UniqueFd listener_;
  ManagerOptions options_;
  Config config_;
  bool software_;
  Manager::Log log_;
  int exit_status_ = 0;
  std::unique_ptr<WithoutGpu> without_;
  std::unique_ptr<Manager> manager_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer watchdog_;
  DeviceSearch search_;
};

}  // namespace gpuctl::daemon
