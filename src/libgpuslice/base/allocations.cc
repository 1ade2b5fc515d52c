#include "libgpuslice/base/allocations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <mutex>
#include <new>

namespace gpuslice {

Allocations& Allocations::get() {
  static auto* all = new Allocations;
  return *all;
}

void Allocations::add(CUdeviceptr address, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::lock_guard lock(mutex_);
  sizes_[address] = bytes;
}

void Allocations::remove(CUdeviceptr address, std::uint64_t range) {
  std::lock_guard lock(mutex_);
  for (auto at = sizes_.lower_bound(address); at != sizes_.end() && at->first - address < range;) at = sizes_.erase(at);
}

std::uint64_t Allocations::bytes_behind(std::span<const std::byte> parameters) const {
  std::array<CUdeviceptr, kMostPointers> counted;
  std::size_t looked_up = 0, found = 0;
  std::uint64_t bytes = 0;
  std::shared_lock lock(mutex_);
  if (sizes_.empty()) return 0;
  const CUdeviceptr lowest = sizes_.begin()->first, end = sizes_.rbegin()->first + sizes_.rbegin()->second;
  for (std::size_t at = 0; at + sizeof(CUdeviceptr) <= parameters.size(); at += sizeof(CUdeviceptr)) {
    CUdeviceptr word = 0;
    std::memcpy(&word, parameters.data() + at, sizeof word);
    if (word < lowest || word >= end) continue;
    if (looked_up++ == kMostPointers) break;
    const auto [address, size] = *std::prev(sizes_.upper_bound(word));
    if (word - address >= size) continue;
    if (std::find(counted.begin(), counted.begin() + found, address) != counted.begin() + found) continue;
    counted[found++] = address;
    bytes += size;
  }
  return bytes;
}

void Allocations::forget_after_fork() {
  new (this) Allocations;
}

}  // namespace gpuslice
