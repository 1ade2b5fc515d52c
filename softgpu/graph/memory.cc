#include "softgpu/graph/memory.h"

#include <algorithm>

#include "softgpu/contexts/context.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/device_memory.h"

namespace gpuctl::softgpu {

GraphMemory::GraphMemory(Memory& memory, std::uint64_t address, std::size_t bytes, int device)
    : memory_(memory), address_(address), bytes_(bytes), device_(device) {
  if (const auto found = memory_.lookup(address)) id_ = found->id;
}

GraphMemory::~GraphMemory() {
  // Its context may be gone, and the address may belong to another allocation.
  const auto found = memory_.lookup(address_);
  if (found && found->id == id_) memory_.release(address_, MemoryKind::kDevice, MemoryKind::kDevice);
}

std::shared_ptr<GraphMemory> GraphMemories::allocate(Context& context, std::size_t bytes) {
  const std::uint64_t address = memory_.allocate(bytes, MemoryKind::kDevice, 0, &context, context.device().ordinal);
  if (address == 0) return nullptr;
  auto memory = std::make_shared<GraphMemory>(memory_, address, bytes, context.device().ordinal);
  const std::lock_guard lock(mutex_);
  std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
  known_[address] = memory;
  return memory;
}

std::shared_ptr<GraphMemory> GraphMemories::find(std::uint64_t address) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(address);
  return found == known_.end() ? nullptr : found->second.lock();
}

bool GraphMemories::live(const GraphMemory& memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& one : live_) {
    if (one.get() == &memory) return true;
  }
  return false;
}

void GraphMemories::set_live(const std::shared_ptr<GraphMemory>& memory, bool live) {
  const std::lock_guard lock(mutex_);
  Amounts& amounts = amounts_[memory->device()];
  if (live ? !live_.insert(memory).second : live_.erase(memory) == 0) return;
  amounts.used += live ? memory->bytes() : -memory->bytes();
  amounts.most_used = std::max(amounts.most_used, amounts.used);
  amounts.reserved = std::max(amounts.reserved, amounts.used);
  amounts.most_reserved = std::max(amounts.most_reserved, amounts.reserved);
}

GraphMemories::Amounts GraphMemories::amounts(int device) const {
  const std::lock_guard lock(mutex_);
  const auto found = amounts_.find(device);
  return found == amounts_.end() ? Amounts{} : found->second;
}

void GraphMemories::trim(int device) {
  const std::lock_guard lock(mutex_);
  amounts_[device].reserved = amounts_[device].used;
}

void GraphMemories::reset_most(int device, bool used) {
  const std::lock_guard lock(mutex_);
  Amounts& amounts = amounts_[device];
  if (used)
    amounts.most_used = amounts.used;
  else
    amounts.most_reserved = amounts.reserved;
}

}  // namespace gpuctl::softgpu
