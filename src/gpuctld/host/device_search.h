// Looks for GPUs until there are some. A driver may be loaded, or come to itself, long after the daemon was started.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gpuctld/host/driver_probe.h"

namespace gpuctl::daemon {

struct SearchOptions {
  std::string library = kDriverLibrary;
  std::string probe_socket;  ///< where another process answers for the library; "": a child of this one does
  bool software = false;     ///< the library is the software GPU's, and may be
  /// Between the end of an attempt and the next one. Each pause is twice as long as the one before.
  std::chrono::milliseconds first_pause{1000}, longest_pause{60'000};
  std::chrono::milliseconds timeout = kProbeTimeout;  ///< of one attempt
};

/// The options for NVIDIA GPUs, asked for at `probe_socket` if that is not empty, or for the software GPU.
SearchOptions search_for(bool software, const std::string& probe_socket);

/// Everything is called on the thread that runs the io_context.
class DeviceSearch {
 public:
  using Found = std::function<void(std::vector<Gpu>)>;
  using Failed = std::function<void(const std::string& why)>;

  /// Begins. `failed` is called after each attempt that found nothing, `found` at most once. Neither is called from
  /// within this, nor after stop().
  DeviceSearch(boost::asio::io_context& context, SearchOptions options, Found found, Failed failed);
  ~DeviceSearch() { stop(); }
  DeviceSearch(const DeviceSearch&) = delete;
  DeviceSearch& operator=(const DeviceSearch&) = delete;

  void stop();

 private:
  void pause_for(std::chrono::milliseconds pause);
  void attempt();
  void hear(Result<std::vector<Gpu>> answer);

  boost::asio::io_context& context_;
  SearchOptions options_;
  Found found_;
  Failed failed_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<DriverProbe> probe_;
  std::chrono::milliseconds pause_;
};

}  // namespace gpuctl::daemon
