// What one SM has room for, and what the blocks of a kernel take of it (SiM sections 2.2 and 3.1, Table 2). Workers of
// several kernels can be on one SM together as long as warps, blocks, registers, shared memory and barriers suffice for
// all of them.
//
// The units in which the hardware gives these out are NVIDIA's (CUDA Programming Guide, "Compute Capabilities", and the
// toolkit's occupancy calculation). Registers are given out warp by warp, in each of the SM's partitions by itself. The
// warps of a kernel are spread evenly over the partitions, so what counts is the partition that has most of them. With
// one kernel this is what NVIDIA's occupancy calculation says. With several it can be one warp of each too careful.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuctl::sched {

/// The partitions of an SM, among which its registers and warps are divided, in all of these GPUs.
inline constexpr std::uint32_t kSmPartitions = 4;

/// One SM.
struct SmLimits {
  std::uint32_t warps = 0;
  std::uint32_t blocks = 0;
  std::uint32_t registers = 0;        ///< of 32 bits
  std::uint32_t register_unit = 256;  ///< registers of a warp are a multiple of it
  std::uint32_t shared = 0;           ///< bytes of shared memory, of all blocks together
  std::uint32_t shared_unit = 0;      ///< bytes; shared memory of a block is a multiple of it
  std::uint32_t shared_reserved = 0;  ///< bytes that each block takes besides its own
  std::uint32_t barriers = 0;         ///< of all blocks together; 0: blocks run out first
};

/// For "9.0" and the like. Nothing for a compute capability that is not in the table.
std::optional<SmLimits> sm_limits(std::string_view compute_capability);

/// "3.5, 5.2, ...", for error messages and help.
std::string_view known_compute_capabilities();

/// What a kernel's launch needs for each block. `threads` is at least 1.
struct BlockShape {
  std::uint32_t threads = 1;
  std::uint32_t registers = 0;  ///< of a thread
  std::uint32_t shared = 0;     ///< bytes of shared memory, static and dynamic
  std::uint32_t barriers = 1;
  bool operator==(const BlockShape&) const = default;
};

/// A part of an SM. Sums over kernels.
struct SmUse {
  std::uint64_t warps = 0;
  std::uint64_t blocks = 0;
  std::uint64_t registers = 0;  ///< of the partition that has most of each kernel's warps
  std::uint64_t shared = 0;     ///< bytes
  std::uint64_t barriers = 0;

  SmUse& operator+=(const SmUse& other);
  /// `other` is a part of this.
  SmUse& operator-=(const SmUse& other);
  bool operator==(const SmUse&) const = default;
};

/// What `count` blocks of one launch take of an SM.
SmUse use_of(const SmLimits& sm, const BlockShape& block, std::uint32_t count);

/// Whether an SM has room for that.
bool fits(const SmLimits& sm, const SmUse& use);

/// How many blocks of that launch an SM holds beside `others`; 0 if not even one, or if the others do not fit.
std::uint32_t most_blocks(const SmLimits& sm, const BlockShape& block, const SmUse& others = {});

}  // namespace gpuctl::sched
