// Addresses and physical memory apart from each other (cuMemAddressReserve, cuMemCreate, cuMemMap). Physical memory is
// a part of one unnamed file. It is mapped where the program wants it, several times if the program asks for that.
//
// Memory that is unmapped is unregistered at once, but its pages stay until the addresses are mapped again or freed: a
// running block may have looked the range up before, and must not end the process.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "softgpu/memory/device_memory.h"

namespace gpuctl::softgpu {

/// All sizes and addresses here are multiples of this, in bytes.
inline constexpr std::size_t kMemoryGranularity = 2 << 20;

class VirtualMemory;

/// The object that cuMemCreate makes. It exists until the last handle and the last mapping are gone.
class PhysicalMemory {
 public:
  PhysicalMemory(VirtualMemory& all, std::uint64_t offset, std::size_t bytes, const CUmemAllocationProp& properties)
      : all_(all), offset_(offset), bytes_(bytes), properties_(properties) {}
  ~PhysicalMemory();
  PhysicalMemory(const PhysicalMemory&) = delete;
  PhysicalMemory& operator=(const PhysicalMemory&) = delete;

  std::uint64_t offset() const { return offset_; }  ///< in the file
  std::size_t bytes() const { return bytes_; }
  const CUmemAllocationProp& properties() const { return properties_; }
  int device() const { return properties_.location.id; }

 private:
  VirtualMemory& all_;
  const std::uint64_t offset_;
  const std::size_t bytes_;
  const CUmemAllocationProp properties_;
};

/// The handles of physical memory; each counts how often it was given. Any thread.
class PhysicalHandles {
 public:
  CUmemGenericAllocationHandle add(const std::shared_ptr<PhysicalMemory>& physical);
  std::shared_ptr<PhysicalMemory> find(CUmemGenericAllocationHandle handle) const;
  bool release(CUmemGenericAllocationHandle handle);

 private:
  struct Counted {
    std::shared_ptr<PhysicalMemory> physical;
    std::size_t count = 0;
  };
  mutable std::mutex mutex_;
  std::unordered_map<CUmemGenericAllocationHandle, Counted> handles_;
};

/// Any thread. The functions with names of the API implement those API functions, without the handles.
class VirtualMemory {
 public:
  explicit VirtualMemory(Memory& memory) : memory_(memory) {}
  ~VirtualMemory();
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wish);
  CUresult free(CUdeviceptr address, std::size_t bytes);
  CUresult create(std::shared_ptr<PhysicalMemory>* result, std::size_t bytes, const CUmemAllocationProp& properties);
  CUresult map(CUdeviceptr address, std::size_t bytes, const std::shared_ptr<PhysicalMemory>& physical);
  CUresult unmap(CUdeviceptr address, std::size_t bytes);
  CUresult set_access(CUdeviceptr address, std::size_t bytes, int device, CUmemAccess_flags flags);
  CUresult get_access(CUdeviceptr address, int device, CUmemAccess_flags* flags) const;

  /// The memory that is mapped at that address, or nullptr.
  std::shared_ptr<PhysicalMemory> mapped_at(CUdeviceptr address) const;

 private:
  friend class PhysicalMemory;
  struct Mapping {
    std::size_t bytes = 0;
    std::shared_ptr<PhysicalMemory> physical;
  };
  using Mappings = std::map<CUdeviceptr, Mapping>;
  void give_back(const PhysicalMemory& physical);
  bool reserved(CUdeviceptr address, std::size_t bytes) const;
  bool whole_mappings(CUdeviceptr address, std::size_t bytes, Mappings::iterator* first, Mappings::iterator* last);

  Memory& memory_;
  mutable std::mutex mutex_;  ///< guards what follows; never held while a PhysicalMemory may be destroyed
  int file_ = -1;
  std::uint64_t file_bytes_ = 0;  ///< never shrinks: freed parts are holes, and 64 bits are enough
  std::map<CUdeviceptr, std::size_t> reservations_;
  Mappings mappings_;
};

}  // namespace gpuctl::softgpu
