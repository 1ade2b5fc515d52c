#include "libgpuslice/launch/slots.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/stage.h"

namespace gpuslice {

using gpuctl::fail;
using gpuctl::Result;
using gpuctl::ptx::DeviceSlot;
using gpuctl::ptx::HostSlot;

namespace {
/// Most slots that one copy zeroes.
constexpr std::size_t kZeros = 256;
}  // namespace

Result<Slots> Slots::create() {
  const Stage stage("allocating launch blocks");
  Slots slots;
  constexpr std::size_t kPolledOffset = kSlots * sizeof(HostSlot) + kZeros * sizeof(DeviceSlot);
  constexpr std::size_t kHereOffset = kPolledOffset + sizeof(gpuctl::Polled);
  constexpr std::size_t host_bytes = kHereOffset + kCopies * sizeof(Here);
  void* host = nullptr;
  if (driver().cuMemHostAlloc(&host, host_bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE) !=
      CUDA_SUCCESS) {
    return fail("no mapped host memory for launch blocks");
  }
  std::memset(host, 0, host_bytes);
  if (driver().cuMemHostGetDevicePointer_v2(&slots.memory_.host_device, host, 0) != CUDA_SUCCESS ||
      driver().cuMemAlloc_v2(&slots.memory_.device, kSlots * sizeof(DeviceSlot) + kScratchBytes) != CUDA_SUCCESS) {
    driver().cuMemFreeHost(host);
    return fail("no device memory for launch blocks");
  }
  slots.memory_.host = static_cast<HostSlot*>(host);
  slots.memory_.zeros = reinterpret_cast<DeviceSlot*>(slots.memory_.host + kSlots);
  auto* bytes = static_cast<std::byte*>(host);
  slots.memory_.polled = reinterpret_cast<gpuctl::Polled*>(bytes + kPolledOffset);
  slots.memory_.polled_device = slots.memory_.host_device + kPolledOffset;
  slots.memory_.here = reinterpret_cast<Here*>(bytes + kHereOffset);
  slots.free_.reserve(kSlots);
  slots.dirty_.reserve(kSlots);
  for (std::uint32_t i = kSlots; i-- > 0;) slots.free_.push_back(i);
  if (!slots.zero_all()) return fail("cannot clear launch blocks");
  return slots;
}

// Zeroes all slots and waits until that is done. The driver's memset is no substitute: it returns before anything is
// set, and it is ordered only with the default stream. It was seen to zero slots in the middle of the first launch in
// another stream, where programs are time-sliced.
bool Slots::zero_all() const {
  CUstream stream;
  if (driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return false;
  std::vector<std::uint32_t> all(kSlots);
  std::iota(all.begin(), all.end(), 0);
  const bool done = zero(all, stream) == CUDA_SUCCESS && driver().cuStreamSynchronize(stream) == CUDA_SUCCESS;
  driver().cuStreamDestroy_v2(stream);
  return done;
}

std::optional<std::uint32_t> Slots::take() {
  if (free_.empty()) return std::nullopt;
  std::uint32_t slot = free_.back();
  free_.pop_back();
  return slot;
}

std::optional<std::vector<std::uint32_t>> Slots::take(std::size_t count) {
  if (free_.size() < count) {
    wanted_ = std::max(wanted_, count);
    return std::nullopt;
  }
  wanted_ = 1;
  std::vector<std::uint32_t> taken(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(count));
  free_.resize(free_.size() - count);
  return taken;
}

void Slots::give_back(std::uint32_t slot, bool touched) {
  (touched ? given_back_ : free_).push_back(slot);
}

void Slots::age(std::uint64_t now_ns) {
  if (now_ns - aged_ns_ < kRestNs) return;
  aged_ns_ = now_ns;
  dirty_.insert(dirty_.end(), resting_.begin(), resting_.end());
  resting_.clear();
  resting_.swap(given_back_);
}

std::vector<std::uint32_t> Slots::take_dirty() {
  std::sort(dirty_.begin(), dirty_.end());
  zeroing_.swap(dirty_);
  return zeroing_;
}

// Slots come back nearly in order, so there are few runs. Zeros are copied from the host instead of being set by the
// driver's memset. That memset is a kernel, which the driver may have to load first. Loading blocks until the device is
// idle, and the device is not idle while a launch is evicted.
CUresult Slots::zero(const std::vector<std::uint32_t>& sorted, CUstream stream) const {
  for (std::size_t i = 0; i < sorted.size();) {
    const std::uint32_t first = sorted[i];
    std::size_t run = 1;
    while (run < kZeros && i + run < sorted.size() && sorted[i + run] == first + run) ++run;
    std::memset(static_cast<void*>(&memory_.host[first]), 0, run * sizeof(HostSlot));
    CUresult result =
        driver().cuMemcpyHtoDAsync_v2(device_address(first), memory_.zeros, run * sizeof(DeviceSlot), stream);
    if (result != CUDA_SUCCESS) return result;
    i += run;
  }
  return CUDA_SUCCESS;
}

CUresult Slots::copy_here(std::uint32_t index, std::uint32_t slot, CUstream stream) const {
  return driver().cuMemcpyDtoHAsync_v2(memory_.here[index], device_address(slot) + offsetof(DeviceSlot, here),
                                       sizeof(Here), stream);
}

std::uint32_t Slots::here(std::uint32_t index) const {
  return std::accumulate(std::begin(memory_.here[index]), std::end(memory_.here[index]), 0u);
}

bool Slots::here_outside(std::uint32_t index, std::uint32_t range) const {
  const Here& workers = memory_.here[index];
  for (std::uint32_t sm = 0; sm < gpuctl::kMaxSms; ++sm) {
    if (workers[sm] != 0 && (sm < (range & 0xffff) || sm >= range >> 16)) return true;
  }
  return false;
}

void Slots::zeroed() {
  // Puts the lowest slot last. It is taken first, so runs stay long.
  free_.insert(free_.begin(), zeroing_.rbegin(), zeroing_.rend());
  zeroing_.clear();
}

}  // namespace gpuslice
