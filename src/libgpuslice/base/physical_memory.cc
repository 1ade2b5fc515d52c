#include "libgpuslice/base/physical_memory.h"

#include <new>
#include <utility>

namespace gpuslice {

PhysicalMemory& PhysicalMemory::get() {
  static auto* memory = new PhysicalMemory;
  return *memory;
}

void PhysicalMemory::made(CUmemGenericAllocationHandle handle, const Made& memory) {
  std::lock_guard lock(mutex_);
  handles_[handle] = std::make_shared<Memory>(Memory{memory, 1});
}

void PhysicalMemory::retained(CUmemGenericAllocationHandle handle, CUdeviceptr address) {
  std::lock_guard lock(mutex_);
  auto next = mappings_.upper_bound(address);
  if (next == mappings_.begin()) return;
  const auto& [begin, mapping] = *--next;
  if (address - begin >= mapping.size) return;
  handles_[handle] = mapping.memory;
  ++mapping.memory->handles;
}

void PhysicalMemory::mapped(CUdeviceptr address, std::size_t size, CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(mutex_);
  const auto known = handles_.find(handle);
  if (known != handles_.end()) mappings_[address] = {size, known->second};
}

PhysicalMemory::Leaving PhysicalMemory::release(CUmemGenericAllocationHandle handle) {
  std::lock_guard lock(mutex_);
  Leaving leaving;
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return leaving;
  leaving.handle_ = handle;
  leaving.memory_ = known->second;
  if (--known->second->handles == 0) handles_.erase(known);
  return leaving;
}

PhysicalMemory::Leaving PhysicalMemory::unmap(CUdeviceptr address, std::size_t size) {
  std::lock_guard lock(mutex_);
  Leaving leaving;
  for (auto at = mappings_.lower_bound(address); at != mappings_.end() && at->first - address < size;)
    leaving.mappings_.insert(mappings_.extract(at++));
  return leaving;
}

/// The memory is freed if only `leaving` still refers to it.
bool PhysicalMemory::frees(const Leaving& leaving) {
  std::lock_guard lock(mutex_);
  if (leaving.memory_ && leaving.memory_.use_count() == 1) return true;
  for (const auto& [address, mapping] : leaving.mappings_) {
    long here = 0;
    for (const auto& [other, same] : leaving.mappings_) here += same.memory == mapping.memory;
    if (mapping.memory.use_count() == here) return true;
  }
  return false;
}

PhysicalMemory::Freed PhysicalMemory::ended(Leaving&& leaving) {
  std::lock_guard lock(mutex_);
  Freed freed;
  const auto drop = [&freed](std::shared_ptr<Memory>& memory) {
    if (memory && memory.use_count() == 1) freed.push_back(memory->made);
    memory.reset();
  };
  drop(leaving.memory_);
  for (auto& [address, mapping] : leaving.mappings_) drop(mapping.memory);
  return freed;
}

void PhysicalMemory::put_back(Leaving&& leaving) {
  std::lock_guard lock(mutex_);
  if (leaving.memory_) {
    ++leaving.memory_->handles;
    handles_[leaving.handle_] = std::move(leaving.memory_);
  }
  mappings_.merge(leaving.mappings_);
}

void PhysicalMemory::forget_after_fork() {
  new (this) PhysicalMemory;
}

}  // namespace gpuslice
