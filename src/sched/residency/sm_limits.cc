#include "sched/residency/sm_limits.h"

#include <array>
#include <string>

namespace gpuctl::sched {

namespace {
constexpr std::uint32_t kWarpThreads = 32;
constexpr std::uint32_t kKiB = 1024;

struct Row {
  std::string_view capability;
  std::uint32_t threads, blocks;
  std::uint32_t shared;  // KiB
  std::uint32_t shared_unit, shared_reserved, barriers;
};

// Each SM of these has 65536 registers. The K40 (3.5) is SiM's GPU, the GTX 970 (5.2) SMGuard's.
constexpr std::array kRows{
    Row{"3.5", 2048, 16, 48, 256, 0, 0},       Row{"5.2", 2048, 32, 96, 256, 0, 0},
    Row{"6.1", 2048, 32, 96, 256, 0, 0},       Row{"7.0", 2048, 32, 96, 256, 0, 0},
    Row{"7.5", 1024, 16, 64, 256, 0, 0},       Row{"8.0", 2048, 32, 164, 128, 1024, 0},
    Row{"8.6", 1536, 16, 100, 128, 1024, 0},   Row{"8.9", 1536, 24, 100, 128, 1024, 0},
    Row{"9.0", 2048, 32, 228, 128, 1024, 64},  Row{"10.0", 2048, 32, 228, 128, 1024, 64},
    Row{"12.0", 1536, 24, 100, 128, 1024, 24},
};

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}
}  // namespace

std::optional<SmLimits> sm_limits(std::string_view compute_capability) {
  for (const Row& row : kRows)
    if (row.capability == compute_capability)
      return SmLimits{.warps = row.threads / kWarpThreads,
                      .blocks = row.blocks,
                      .registers = 65536,
                      .shared = row.shared * kKiB,
                      .shared_unit = row.shared_unit,
                      .shared_reserved = row.shared_reserved,
                      .barriers = row.barriers};
  return std::nullopt;
}

std::string_view known_compute_capabilities() {
  static const std::string names = [] {
    std::string all;
    for (const Row& row : kRows) all.append(all.empty() ? "" : ", ").append(row.capability);
    return all;
  }();
  return names;
}

SmUse& SmUse::operator+=(const SmUse& other) {
  warps += other.warps, blocks += other.blocks, registers += other.registers;
  shared += other.shared, barriers += other.barriers;
  return *this;
}

SmUse& SmUse::operator-=(const SmUse& other) {
  warps -= other.warps, blocks -= other.blocks, registers -= other.registers;
  shared -= other.shared, barriers -= other.barriers;
  return *this;
}

SmUse use_of(const SmLimits& sm, const BlockShape& block, std::uint32_t count) {
  const std::uint64_t warps = std::uint64_t{count} * ((block.threads + kWarpThreads - 1) / kWarpThreads);
  const std::uint64_t of_warp = round_up(std::uint64_t{block.registers} * kWarpThreads, sm.register_unit);
  return {.warps = warps,
          .blocks = count,
          .registers = (warps + kSmPartitions - 1) / kSmPartitions * of_warp,
          .shared = count * round_up(std::uint64_t{block.shared} + sm.shared_reserved, sm.shared_unit),
          .barriers = std::uint64_t{count} * block.barriers};
}

bool fits(const SmLimits& sm, const SmUse& use) {
  return use.warps <= sm.warps && use.blocks <= sm.blocks && use.registers <= sm.registers / kSmPartitions &&
         use.shared <= sm.shared && (sm.barriers == 0 || use.barriers <= sm.barriers);
}

std::uint32_t most_blocks(const SmLimits& sm, const BlockShape& block, const SmUse& others) {
  std::uint32_t count = 0;
  for (; count < sm.blocks; ++count) {
    SmUse together = use_of(sm, block, count + 1);
    if (!fits(sm, together += others)) break;
  }
  return count;
}

}  // namespace gpuctl::sched
