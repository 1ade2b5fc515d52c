#include "gpuctld/clients/told_needs.h"

#include <algorithm>

#include "ipc/stub_map.h"

namespace gpuctl::daemon {

namespace {

constexpr std::uint32_t kMostBlockThreads = 1024, kMostRegisters = 255, kMostBlockShared = 1u << 20;

}  // namespace

bool ToldNeeds::read(const ipc::Needs& shared, const sched::SmLimits& sm) {
  std::array<sched::BlockShape, ipc::kMostNeeds> blocks{};
  std::uint32_t count = 0;
  bool right = true;
  const bool whole = ipc::read_versioned(shared, [&] {
    count = ipc::load(shared.count);
    right = count <= ipc::kMostNeeds;
    for (std::uint32_t k = 0; right && k < count; ++k) {
      const ipc::WorkerNeeds& kind = shared.kinds[k];
      blocks[k] = {.threads = std::clamp<std::uint32_t>(ipc::load(kind.threads), 1, kMostBlockThreads),
                   .registers = std::clamp<std::uint32_t>(ipc::load(kind.registers), 1, kMostRegisters),
                   .shared = std::min(ipc::load(kind.shared), kMostBlockShared)};
      right = sched::most_blocks(sm, blocks[k]) == ipc::load(kind.per_sm);
    }
  });
  if (!whole || !right) return forget();
  if (count == count_ && std::equal(blocks.begin(), blocks.begin() + count, blocks_.begin())) return false;
  blocks_ = blocks;
  count_ = count;
  return true;
}

bool ToldNeeds::forget() {
  const bool known = count_ != 0;
  count_ = 0;
  return known;
}

}  // namespace gpuctl::daemon
