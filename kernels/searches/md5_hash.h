// The kernel md5Hash: its inputs, and what it must compute. The kernel itself: md5_hash.cu.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/problem/problem.h"

namespace gpuctl::bench::md5_hash {

/// The MD5 digest of the key of that number, as four little-endian words.
std::array<std::uint32_t, 4> md5_of_key(std::uint32_t number);

/// extent.x: keys. One of them, which the seed decides, is the one to be found.
Problem generate(const Extent& extent, std::uint64_t seed);

/// The output that the kernel must leave, computed on the CPU.
Words reference(const Extent& extent, const Problem& problem);

}  // namespace gpuctl::bench::md5_hash
