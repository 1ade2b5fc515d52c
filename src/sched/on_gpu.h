// Settings of slices on one GPU, where the amounts are not the same number on each. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sched/slices.h"

namespace gpuctl::sched {

/// What amounts are parts of, and what tells a GPU from others.
struct GpuSize {
  std::int64_t index = 0;
  std::string uuid;
  CapSM sms{};
  std::uint64_t memory = 0;  ///< bytes
};

/// The greater limit; "none" is the greatest.
std::optional<std::uint64_t> greater_limit(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b);

/// Whether the slice is not the same on every GPU: an amount, a quota, or whether its programs see it.
bool differs_by_gpu(const Slice& slice);
bool differ_by_gpu(const Slices& slices);

/// Whether an amount of the slice that has to fit names the GPU: of SMs, or of memory that is kept.
bool names_gpu(const Slice& slice, const GpuSize& gpu, AmountOf of);

/// The slice with the amounts, the quota and the burst that it has on the GPU: each is one, or lifted. Of a part that
/// is not 0 there is one SM at least, else what is not a whole number is rounded down. On a GPU that its programs do
/// not see it has no reserve, and no memory is kept for it.
Slice on_gpu(const Slice& slice, const GpuSize& gpu);

/// The same with the most that it has of each amount on any of the GPUs.
Slice most_on_any(const Slice& slice, std::span<const GpuSize> gpus);

/// Whether programs that start in the slice see the GPU, by its setting `devices` and those of slices above it.
bool sees(const Slices& slices, std::string_view path, const GpuSize& gpu);

/// Whether that setting names any GPU, of the slice or of one above it.
bool names_devices(const Slices& slices, std::string_view path);

/// What on_gpu() says, of all. What is below a slice that does not see the GPU does not either.
Slices on_gpu(const Slices& slices, const GpuSize& gpu);

}  // namespace gpuctl::sched
