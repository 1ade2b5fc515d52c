// The energy that GPUs have used, as NVIDIA's management library (NVML) counts it. The daemon maps that library as
// little as the driver: who asks the driver (driver_probe.h) asks it too.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/nvml_library.h"
#include "gpuctld/host/child_program.h"
#include "gpuctld/host/driver_probe.h"

namespace gpuctl::daemon {

/// The library in this process; without one it knows no GPU.
class Nvml {
 public:
  explicit Nvml(const std::string& library);
  /// Since the driver was loaded; none: the GPU is not NVML's, or does not count.
  std::optional<std::uint64_t> millijoules(const std::string& uuid) const;

 private:
  NvmlLibrary library_;
};

/// Asks again and again for all GPUs. Everything is called on the thread that runs the io_context.
class EnergyWatch {
 public:
  /// The GPUs, after each answer in which one has counted its energy.
  using Heard = std::function<void(const std::vector<Gpu>&)>;
  /// Of who asks.
  struct Place {
    std::string socket;   ///< where `gpuctld --probe` answers; "": `program --probe` is started
    std::string program;  ///< "" too: nobody is asked
    std::chrono::milliseconds every{60'000};
    /// After an answer without energy, twice as long each time.
    std::chrono::milliseconds longest{3'600'000};
  };

  EnergyWatch(boost::asio::io_context& context, Place place, Heard heard);
  /// Asks now, unless it asks already, and from then on.
  void begin();
  /// Asks no more. From within Heard too.
  void rest();
  /// For the last time: nothing is called any more.
  void stop();

 private:
  void ask();
  void hear(const Result<std::vector<Gpu>>& gpus);
  void wait();

  boost::asio::io_context& context_;
  Place place_;
  Heard heard_;
  boost::asio::steady_timer timer_;
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point not_before_{};
  std::shared_ptr<DriverProbe> probe_;
  std::shared_ptr<ChildProgram> child_;
  bool on_ = false, stopped_ = false;
};

}  // namespace gpuctl::daemon
