// Memory that a program makes apart from addresses (cuMemCreate) and maps where it wants to. It exists until its last
// handle is released and its last mapping is gone, in any order. This keeps books only: it calls neither the driver nor
// the daemon.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace gpuslice {

/// Any thread. Memory that another process made is not known here, and does not count.
class PhysicalMemory {
 public:
  /// The instance of this process; never destroyed.
  static PhysicalMemory& get();

  struct Made {
    CUdevice device = 0;
    std::uint64_t bytes = 0;
  };
  using Freed = std::vector<Made>;

  void made(CUmemGenericAllocationHandle handle, const Made& memory);
  /// The driver returned another handle of the memory that is mapped at `address`.
  void retained(CUmemGenericAllocationHandle handle, CUdeviceptr address);
  void mapped(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle);

 private:
  struct Memory {
    Made made;
    std::uint32_t handles = 0;
  };
  struct Mapping {
    std::size_t size;
    std::shared_ptr<Memory> memory;
  };
  using Mappings = std::map<CUdeviceptr, Mapping>;

 public:
  /// A handle, or mappings, that are about to go. Another allocation may get the same handle or address right after the
  /// driver's call, so these are taken out of the books before it. Then call ended(), or put_back() if the driver
  /// refused.
  class Leaving {
    friend class PhysicalMemory;
    CUmemGenericAllocationHandle handle_ = 0;
    std::shared_ptr<Memory> memory_;
    Mappings mappings_;
  };
  Leaving release(CUmemGenericAllocationHandle handle);
  Leaving unmap(CUdeviceptr address, std::size_t size);
  /// Returns the memory that no longer exists.
  Freed ended(Leaving&& leaving);
  void put_back(Leaving&& leaving);
  /// Whether the driver's call would free memory.
  bool frees(const Leaving& leaving);

  /// In a forked child.
  void forget_after_fork();

 private:
  std::mutex mutex_;  ///< guards everything, the use counts of each Memory too
  std::unordered_map<CUmemGenericAllocationHandle, std::shared_ptr<Memory>> handles_;
  Mappings mappings_;
};

}  // namespace gpuslice
