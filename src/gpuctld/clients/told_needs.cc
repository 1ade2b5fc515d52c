#include "gpuctld/clients/told_needs.h"

#include <algorithm>

#include "ipc/stub_map.h"

namespace gpuctl::daemon {

namespace {

constexpr int kReads = 3;
constexpr std::uint32_t kMostBlockThreads = 1024, kMostRegisters = 255, kMostBlockShared = 1u << 20;

}  // namespace

bool ToldNeeds::read(const ipc::Needs& shared, const sched::SmLimits& sm) {
  std::array<sched::BlockShape, ipc::kMostNeeds> blocks{};
  for (int i = 0; i < kReads; ++i) {
    const std::uint32_t version = ipc::load(shared.version), count = ipc::load(shared.count);
    if (count > ipc::kMostNeeds) break;
    bool right = true;
    for (std::uint32_t k = 0; k < count; ++k) {
      const ipc::WorkerNeeds& kind = shared.kinds[k];
      blocks[k] = {.threads = std::clamp<std::uint32_t>(ipc::load(kind.threads), 1, kMostBlockThreads),
                   .registers = std::clamp<std::uint32_t>(ipc::load(kind.registers), 1, kMostRegisters),
                   .shared = std::min(ipc::load(kind.shared), kMostBlockShared)};
      right &= sched::most_blocks(sm, blocks[k]) == ipc::load(kind.per_sm);
    }
    if (version % 2 != 0 || ipc::load(shared.version) != version) continue;
    if (!right) break;
    if (count == count_ && std::equal(blocks.begin(), blocks.begin() + count, blocks_.begin())) return false;
    blocks_ = blocks;
    count_ = count;
    return true;
  }
  return forget();
}

bool ToldNeeds::forget() {
  const bool known = count_ != 0;
  count_ = 0;
  return known;
}

}  // namespace gpuctl::daemon
