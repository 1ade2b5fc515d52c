#include "gpuctld/host/energy.h"

#include <algorithm>
#include <utility>

namespace gpuctl::daemon {

Nvml::Nvml(const std::string& library) : library_(library, "nvmlDeviceGetTotalEnergyConsumption") {}

std::optional<std::uint64_t> Nvml::millijoules(const std::string& uuid) const {
  auto* const read = library_.function<int(NvmlLibrary::Device, unsigned long long*)>();
  const NvmlLibrary::Device device = library_.device(uuid);
  unsigned long long millijoules = 0;
  if (device == nullptr || read(device, &millijoules) != NvmlLibrary::kSuccess) return std::nullopt;
  return millijoules;
}

EnergyWatch::EnergyWatch(boost::asio::io_context& context, Place place, Heard heard)
    : context_(context), place_(std::move(place)), heard_(std::move(heard)), timer_(context), pause_(place_.every) {}

void EnergyWatch::begin() {
  if (place_.socket.empty() && place_.program.empty()) return;
  if (std::exchange(on_, true) || probe_ || child_) return;
  timer_.expires_at(not_before_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error && on_) ask();
  });
}

void EnergyWatch::rest() {
  on_ = false;
  timer_.cancel();
}

void EnergyWatch::stop() {
  stopped_ = true;
  rest();
  if (probe_) probe_->cancel();
  if (child_) child_->kill();
}

void EnergyWatch::ask() {
  if (!place_.socket.empty()) {
    auto asked = DriverProbe::connect(context_, place_.socket, kProbeTimeout, [this](Result<std::vector<Gpu>> gpus) {
      probe_.reset();
      hear(gpus);
    });
    if (!asked) return hear(asked.error());
    probe_ = *asked;
    return;
  }
  auto started =
      ChildProgram::start(context_, place_.program, {}, "",
                          [this](const Result<std::string>& output) {
                            child_.reset();
                            hear(output ? read_driver_answer(*output) : Result<std::vector<Gpu>>(output.error()));
                          },
                          {"--probe"});
  if (!started) return hear(started.error());
  child_ = *started;
}

void EnergyWatch::hear(const Result<std::vector<Gpu>>& gpus) {
  if (stopped_) return;
  const bool any = gpus && std::ranges::any_of(*gpus, [](const Gpu& gpu) { return gpu.millijoules.has_value(); });
  pause_ = any ? place_.every : std::min(2 * pause_, place_.longest);
  not_before_ = any ? std::chrono::steady_clock::time_point{} : std::chrono::steady_clock::now() + pause_;
  if (any && on_) heard_(*gpus);
  if (on_ && !stopped_) wait();
}

void EnergyWatch::wait() {
  timer_.expires_after(pause_);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error && on_) ask();
  });
}

}  // namespace gpuctl::daemon
