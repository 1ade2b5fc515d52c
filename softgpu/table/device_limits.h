// The properties that the software GPU reports: one device of compute capability 9.0 with H200-like limits per SM.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuctl::softgpu {

inline constexpr int kDriverVersion = 13000;  ///< the result of cuDriverGetVersion
inline constexpr int kComputeMajor = 9;
inline constexpr int kComputeMinor = 0;
inline constexpr char kDeviceName[] = "gpuctl software GPU";

inline constexpr std::uint32_t kWarpThreads = 32;
inline constexpr std::uint32_t kSmThreads = 2048;
inline constexpr std::uint32_t kSmBlocks = 32;
inline constexpr std::uint32_t kSmShared = 228 * 1024;  ///< bytes, shared by the blocks of one SM
/// Bytes of shared memory that each resident block occupies besides its own, as on the hardware: 227 KiB are left for
/// one block.
inline constexpr std::uint32_t kBlockReservedShared = 1024;
inline constexpr std::uint32_t kBlockSharedOptin = 227 * 1024;  ///< static + dynamic, after the opt-in attribute is set
inline constexpr std::uint32_t kBlockSharedDefault = 48 * 1024;  ///< static + dynamic, without it
inline constexpr std::uint32_t kSharedGranule = 128;             ///< bytes, unit of allocation
inline constexpr std::uint32_t kBlockThreads = 1024;
inline constexpr std::uint32_t kSmRegisters = 65536;
inline constexpr std::uint32_t kConstBytes = 64 * 1024;
inline constexpr std::uint32_t kMaxParamBytes = 32764;  ///< of one kernel, since CUDA 12.1

/// Stream priorities as CUDA numbers them: lower numbers are more urgent.
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;

inline constexpr std::size_t kPitchAlign = 512;  ///< bytes, rows of cuMemAllocPitch
inline constexpr std::size_t kAllocAlign = 512;  ///< bytes, start of every device allocation

constexpr std::uint32_t round_up(std::uint32_t value, std::uint32_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Threads a block occupies on its SM: whole warps.
constexpr std::uint32_t occupied_threads(std::uint32_t threads) {
  return round_up(threads, kWarpThreads);
}

/// Shared memory a block with that many bytes of its own (static + dynamic) occupies on its SM.
constexpr std::uint32_t occupied_shared(std::uint32_t bytes) {
  return round_up(bytes, kSharedGranule) + kBlockReservedShared;
}

}  // namespace gpuctl::softgpu
