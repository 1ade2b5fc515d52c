#include "softgpu/graph/memory.h"

#include "softgpu/contexts/context.h"
#include "softgpu/device/device.h"
#include "softgpu/memory/device_memory.h"

namespace gpuctl::softgpu {

GraphMemory::GraphMemory(Memory& memory, std::uint64_t address, std::size_t bytes)
    : memory_(memory), address_(address), bytes_(bytes) {
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
  auto memory = std::make_shared<GraphMemory>(memory_, address, bytes);
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
  if (live) {
    live_.insert(memory);
  } else {
    live_.erase(memory);
  }
}

}  // namespace gpuctl::softgpu
