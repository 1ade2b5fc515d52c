#include "softgpu/memory/virtual_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 46;

bool whole_granules(std::uint64_t value) {
  return value % kMemoryGranularity == 0;
}

void* pointer_to(CUdeviceptr address) {
  return reinterpret_cast<void*>(address);
}

}  // namespace

PhysicalMemory::~PhysicalMemory() {
  all_.give_back(*this);
}

CUmemGenericAllocationHandle PhysicalHandles::add(const std::shared_ptr<PhysicalMemory>& physical) {
  const auto handle = reinterpret_cast<CUmemGenericAllocationHandle>(physical.get());
  const std::lock_guard lock(mutex_);
  Counted& counted = handles_[handle];
  counted.physical = physical;
  ++counted.count;
  return handle;
}

std::shared_ptr<PhysicalMemory> PhysicalHandles::find(CUmemGenericAllocationHandle handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  return found == handles_.end() ? nullptr : found->second.physical;
}

bool PhysicalHandles::release(CUmemGenericAllocationHandle handle) {
  std::shared_ptr<PhysicalMemory> gone;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  const auto found = handles_.find(handle);
  if (found == handles_.end()) return false;
  if (--found->second.count == 0) {
    gone = std::move(found->second.physical);
    handles_.erase(found);
  }
  return true;
}

VirtualMemory::~VirtualMemory() {
  for (const auto& [address, bytes] : reservations_) munmap(pointer_to(address), bytes);
  mappings_.clear();
  if (file_ >= 0) close(file_);
}

CUresult VirtualMemory::reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr wish) {
  if (bytes == 0 || bytes > kMostBytes || !whole_granules(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0 || alignment > kMostBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t unit = std::max(alignment, kMemoryGranularity);
  const auto inaccessible = [](CUdeviceptr at, std::size_t size, int flags) {
    return mmap(pointer_to(at), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  };
  CUdeviceptr start = 0;
  if (wish != 0 && wish % unit == 0 && inaccessible(wish, bytes, MAP_FIXED_NOREPLACE) == pointer_to(wish)) {
    start = wish;
  } else {
    void* room = inaccessible(0, bytes + unit, 0);
    if (room == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    const auto first = reinterpret_cast<CUdeviceptr>(room);
    start = (first + unit - 1) / unit * unit;
    if (start != first) munmap(room, start - first);
    munmap(pointer_to(start + bytes), first + unit - start);
  }
  const std::lock_guard lock(mutex_);
  reservations_[start] = bytes;
  *address = start;
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::free(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  const auto inside = mappings_.lower_bound(address);
  if (inside != mappings_.end() && inside->first < address + bytes) return CUDA_ERROR_INVALID_VALUE;
  reservations_.erase(found);
  munmap(pointer_to(address), bytes);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::create(std::shared_ptr<PhysicalMemory>* result, std::size_t bytes,
                               const CUmemAllocationProp& properties) {
  if (bytes == 0 || bytes > kMostBytes || !whole_granules(bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!memory_.take(bytes, properties.location.id)) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::lock_guard lock(mutex_);
  if (file_ < 0) file_ = memfd_create("softgpu", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(file_bytes_ + bytes)) != 0) {
    memory_.give(bytes, properties.location.id);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *result = std::make_shared<PhysicalMemory>(*this, std::exchange(file_bytes_, file_bytes_ + bytes), bytes, properties);
  return CUDA_SUCCESS;
}

void VirtualMemory::give_back(const PhysicalMemory& physical) {
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(physical.offset()),
            static_cast<off_t>(physical.bytes()));
  memory_.give(physical.bytes(), physical.device());
}

/// The caller holds the mutex.
bool VirtualMemory::reserved(CUdeviceptr address, std::size_t bytes) const {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return false;
  const auto& [start, size] = *std::prev(after);
  return address - start < size && bytes <= size - (address - start);
}

CUresult VirtualMemory::map(CUdeviceptr address, std::size_t bytes, const std::shared_ptr<PhysicalMemory>& physical) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes > physical->bytes() || !whole_granules(address | bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!reserved(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Allocation mapping;
  mapping.address = address;
  mapping.bytes = bytes;
  mapping.kind = MemoryKind::kMapped;
  mapping.device = physical->device();
  if (!memory_.add(mapping)) return CUDA_ERROR_INVALID_VALUE;  // something is mapped there
  if (mmap(pointer_to(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
           static_cast<off_t>(physical->offset())) == MAP_FAILED) {
    memory_.release(address, MemoryKind::kMapped, MemoryKind::kMapped);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  mappings_[address] = {bytes, physical};
  return CUDA_SUCCESS;
}

/// Whether the range consists of whole mappings without gaps, and which ones.
bool VirtualMemory::whole_mappings(CUdeviceptr address, std::size_t bytes, Mappings::iterator* first,
                                   Mappings::iterator* last) {
  *first = mappings_.find(address);
  *last = *first;
  CUdeviceptr end = address;
  while (*last != mappings_.end() && (*last)->first == end && end < address + bytes) {
    end += (*last)->second.bytes;
    ++*last;
  }
  return bytes != 0 && end == address + bytes;
}

CUresult VirtualMemory::unmap(CUdeviceptr address, std::size_t bytes) {
  std::vector<std::shared_ptr<PhysicalMemory>> gone;  // destroyed after the mutex is released
  const std::lock_guard lock(mutex_);
  Mappings::iterator first, last;
  if (!whole_mappings(address, bytes, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  for (auto mapping = first; mapping != last; ++mapping) {
    memory_.release(mapping->first, MemoryKind::kMapped, MemoryKind::kMapped);
    gone.push_back(mapping->second.physical);
  }
  mappings_.erase(first, last);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::set_access(CUdeviceptr address, std::size_t bytes, int device, CUmemAccess_flags flags) {
  const std::lock_guard lock(mutex_);
  Mappings::iterator first, last;
  if (!whole_mappings(address, bytes, &first, &last)) return CUDA_ERROR_INVALID_VALUE;
  for (auto mapping = first; mapping != last; ++mapping) memory_.set_access(mapping->first, device, flags);
  return CUDA_SUCCESS;
}

CUresult VirtualMemory::get_access(CUdeviceptr address, int device, CUmemAccess_flags* flags) const {
  const std::optional<Allocation> found = memory_.lookup(address);
  if (!found || found->kind != MemoryKind::kMapped) return CUDA_ERROR_INVALID_VALUE;
  *flags = static_cast<CUmemAccess_flags>(access_of(found->flags, device));
  return CUDA_SUCCESS;
}

std::shared_ptr<PhysicalMemory> VirtualMemory::mapped_at(CUdeviceptr address) const {
  const std::lock_guard lock(mutex_);
  const auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return nullptr;
  const auto& [start, mapping] = *std::prev(after);
  return address - start < mapping.bytes ? mapping.physical : nullptr;
}

}  // namespace gpuctl::softgpu
