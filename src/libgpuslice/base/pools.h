// Where the memory of the program's pools is: on a device, not always the current one, or in the host's memory. Books
// only.
#pragma once

#include <cuda.h>

#include <mutex>
#include <optional>
#include <unordered_map>

namespace gpuslice {

/// Any thread. Pools that each device has from the start are not known here.
class Pools {
 public:
  /// The instance of this process; never destroyed.
  static Pools& get();

  static constexpr CUdevice kOnNoDevice = -1;

  void add(CUmemoryPool pool, const CUmemLocation& location);
  void remove(CUmemoryPool pool);
  /// The device, or kOnNoDevice. Nothing: the pool is unknown.
  std::optional<CUdevice> device_of(CUmemoryPool pool) const;

  /// In a forked child.
  void forget_after_fork();

 private:
  mutable std::mutex mutex_;
  std::unordered_map<CUmemoryPool, CUdevice> devices_;
};

}  // namespace gpuslice
