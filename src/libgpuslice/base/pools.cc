#include "libgpuslice/base/pools.h"

#include <new>

namespace gpuslice {

Pools& Pools::get() {
  static auto* pools = new Pools;
  return *pools;
}

void Pools::add(CUmemoryPool pool, const CUmemLocation& location) {
  std::lock_guard lock(mutex_);
  devices_[pool] = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : kOnNoDevice;
}

void Pools::remove(CUmemoryPool pool) {
  std::lock_guard lock(mutex_);
  devices_.erase(pool);
}

std::optional<CUdevice> Pools::device_of(CUmemoryPool pool) const {
  std::lock_guard lock(mutex_);
  const auto known = devices_.find(pool);
  return known == devices_.end() ? std::nullopt : std::optional(known->second);
}

void Pools::forget_after_fork() {
  new (this) Pools;
}

}  // namespace gpuslice
