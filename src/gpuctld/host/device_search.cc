#include "gpuctld/host/device_search.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

SearchOptions search_for(bool software, const std::string& probe_socket) {
  SearchOptions options;
  options.software = software;
  if (software)
    options.library = software_gpu_library();
  else
    options.probe_socket = probe_socket;
  return options;
}

DeviceSearch::DeviceSearch(boost::asio::io_context& context, SearchOptions options, Found found, Failed failed)
    : context_(context),
      options_(std::move(options)),
      found_(std::move(found)),
      failed_(std::move(failed)),
      timer_(context),
      pause_(options_.first_pause) {
  pause_for({});
}

void DeviceSearch::stop() {
  timer_.cancel();
  found_ = nullptr;
  failed_ = nullptr;
  if (const auto probe = std::exchange(probe_, nullptr)) probe->cancel();
}

void DeviceSearch::pause_for(std::chrono::milliseconds pause) {
  timer_.expires_after(pause);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) attempt();
  });
}

void DeviceSearch::attempt() {
  if (!found_) return;
  const auto heard = [this](Result<std::vector<Gpu>> answer) { hear(std::move(answer)); };
  auto probe = options_.probe_socket.empty()
                   ? DriverProbe::start(context_, options_.library, options_.timeout, heard)
                   : DriverProbe::connect(context_, options_.probe_socket, options_.timeout, heard);
  if (!probe) return hear(probe.error());
  probe_ = std::move(*probe);
}

void DeviceSearch::hear(Result<std::vector<Gpu>> answer) {
  probe_ = nullptr;
  auto devices = usable_devices(std::move(answer), options_.software);
  if (devices) return std::exchange(found_, nullptr)(std::move(*devices));
  pause_for(std::exchange(pause_, std::min(2 * pause_, options_.longest_pause)));
  const Failed failed = failed_;  // it may call stop()
  failed(devices.error().message);
}

}  // namespace gpuctl::daemon
