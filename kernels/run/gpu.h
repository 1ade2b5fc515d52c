// Owners of what the driver hands out. All of them need the Gpu that was opened first to be still there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/run/driver.h"

namespace gpuctl::bench {

enum class Priority { kNone, kLow, kHigh };

/// Device 0 with its primary context, current in the thread that opened it.
class Gpu {
 public:
  Gpu();
  const std::string& name() const { return name_; }
  int sms() const { return sms_; }

 private:
  CUdevice device_ = 0;
  std::string name_;
  int sms_ = 0;
};

class Stream {
 public:
  explicit Stream(Priority priority);
  ~Stream() { driver().cuStreamDestroy_v2(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  CUstream get() const { return stream_; }

 private:
  CUstream stream_ = nullptr;
};

class Event {
 public:
  explicit Event(bool timed);
  ~Event() {
    if (event_ != nullptr) driver().cuEventDestroy_v2(event_);
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CUevent get() const { return event_; }

 private:
  CUevent event_ = nullptr;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory() {
    if (address_ != 0) driver().cuMemFree_v2(address_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  CUdeviceptr address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
};

/// Host memory that the GPU's copy engines read and write directly.
class PinnedWords {
 public:
  explicit PinnedWords(std::size_t words);
  ~PinnedWords() { driver().cuMemFreeHost(words_); }
  PinnedWords(const PinnedWords&) = delete;
  PinnedWords& operator=(const PinnedWords&) = delete;
  std::uint32_t* data() const { return words_; }

 private:
  std::uint32_t* words_ = nullptr;
};

/// Loads PTX (NUL-terminated). The module stays loaded until the process ends.
CUmodule load_module(std::string_view ptx);

/// The entry of that name.
CUfunction find_entry(CUmodule module, std::string_view entry);

/// Both in one: for PTX with one entry.
inline CUfunction load_kernel(std::string_view ptx, std::string_view entry) {
  return find_entry(load_module(ptx), entry);
}

}  // namespace gpuctl::bench
