#include "sched/on_gpu.h"

#include <algorithm>

namespace gpuctl::sched {

namespace {

constexpr std::uint64_t kWhole = 100;

/// `whole * part / kWhole` of any `whole`.
std::uint64_t part_of(std::uint64_t whole, std::int64_t part) {
  const auto per_cent = static_cast<std::uint64_t>(part);
  return whole / kWhole * per_cent + whole % kWhole * per_cent / kWhole;
}

CapSM sms_on(CapSM every, const PerGpu& per_gpu, const GpuSize& gpu) {
  const PerGpu::Amount* const amount = per_gpu.find(gpu.index, gpu.uuid);
  if (amount == nullptr) return every;
  if (amount->lifted) return kUnlimitedCapSM;
  if (!amount->per_cent) return CapSM{static_cast<std::uint32_t>(amount->number)};
  const auto sms = static_cast<std::uint32_t>(part_of(gpu.sms.count, amount->number));
  return CapSM{amount->number > 0 ? std::max(sms, 1u) : sms};
}

std::optional<std::uint64_t> bytes_on(std::optional<std::uint64_t> every, const PerGpu& per_gpu, const GpuSize& gpu) {
  const PerGpu::Amount* const amount = per_gpu.find(gpu.index, gpu.uuid);
  if (amount == nullptr) return every;
  if (amount->lifted) return std::nullopt;
  return amount->per_cent ? part_of(gpu.memory, amount->number) : static_cast<std::uint64_t>(amount->number);
}

bool names(const PerGpu& per_gpu, const GpuSize& gpu) {
  return std::ranges::any_of(per_gpu.list(), [&](const PerGpu::One& one) { return one.names(gpu.index, gpu.uuid); });
}

}  // namespace

bool differs_by_gpu(const Slice& slice) {
  return !slice.reserve_per_gpu.empty() || !slice.max_per_gpu.empty() || !slice.memory_max_per_gpu.empty() ||
         !slice.memory_high_per_gpu.empty() || !slice.memory_min_per_gpu.empty() || !slice.devices.empty() ||
         !gpus_of_quota(slice.quota).empty() || !gpus_of_quota(slice.burst).empty();
}

bool differ_by_gpu(const Slices& slices) {
  return std::ranges::any_of(slices, [](const auto& entry) { return differs_by_gpu(entry.second); });
}

bool names_gpu(const Slice& slice, const GpuSize& gpu, AmountOf of) {
  if (of == AmountOf::bytes) return names(slice.memory_min_per_gpu, gpu);
  return names(slice.reserve_per_gpu, gpu) || names(slice.max_per_gpu, gpu);
}

Slice on_gpu(const Slice& slice, const GpuSize& gpu) {
  Slice on = slice;
  on.reserve = sms_on(slice.reserve, slice.reserve_per_gpu, gpu);
  on.max = sms_on(slice.max, slice.max_per_gpu, gpu);
  on.memory_min = bytes_on(slice.memory_min, slice.memory_min_per_gpu, gpu).value_or(0);
  on.memory_max = bytes_on(slice.memory_max, slice.memory_max_per_gpu, gpu);
  on.memory_high = bytes_on(slice.memory_high, slice.memory_high_per_gpu, gpu);
  on.reserve_per_gpu = on.max_per_gpu = on.memory_max_per_gpu = on.memory_high_per_gpu = on.memory_min_per_gpu = {};
  on.quota = quota_on(slice.quota, gpu.index, gpu.uuid);
  on.burst = quota_on(slice.burst, gpu.index, gpu.uuid);
  on.seen = slice.devices.empty() || std::ranges::any_of(slice.devices, [&](const std::string& name) {
              return gpuctl::names_gpu(name, gpu.index, gpu.uuid);
            });
  on.devices = {};
  if (!on.seen) on.reserve = CapSM{}, on.memory_min = 0;
  return on;
}

bool sees(const Slices& slices, std::string_view path, const GpuSize& gpu) {
  for (;; path = parent_path(path)) {
    const auto slice = slices.find(path);
    if (slice != slices.end() && !on_gpu(slice->second, gpu).seen) return false;
    if (path == "/") return true;
  }
}

bool names_devices(const Slices& slices, std::string_view path) {
  bool any = false;
  for_each_up(path, [&](std::string_view above) {
    const auto slice = slices.find(above);
    any = any || (slice != slices.end() && !slice->second.devices.empty());
  });
  return any;
}

std::optional<std::uint64_t> greater_limit(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
}

Slice most_on_any(const Slice& slice, std::span<const GpuSize> gpus) {
  if (!differs_by_gpu(slice) || gpus.empty()) return slice;
  Slice most = on_gpu(slice, gpus.front());
  for (const GpuSize& gpu : gpus.subspan(1)) {
    const Slice there = on_gpu(slice, gpu);
    most.reserve = std::max(most.reserve, there.reserve);
    most.max = std::max(most.max, there.max);
    most.memory_min = std::max(most.memory_min, there.memory_min);
    most.memory_max = greater_limit(most.memory_max, there.memory_max);
    most.memory_high = greater_limit(most.memory_high, there.memory_high);
  }
  return most;
}

Slices on_gpu(const Slices& slices, const GpuSize& gpu) {
  Slices on;
  for (const auto& [path, slice] : slices) {  // parents first
    Slice& own = on.emplace_hint(on.end(), path, on_gpu(slice, gpu))->second;
    if (path == "/" || on.find(parent_path(path))->second.seen) continue;
    own.seen = false;
    own.reserve = CapSM{};
    own.memory_min = 0;
  }
  return on;
}

}  // namespace gpuctl::sched
