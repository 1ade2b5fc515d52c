// Random modules: PTX whose results are determined by the seed alone, whatever the order and the place its blocks run
// in.
//
// What makes that so, by construction: a thread writes cells of global memory that are its own; other global memory it
// only reads, or changes by atomics that commute and whose results nobody uses; shared memory is written and read in
// turns with a barrier in between, each cell by one thread; barriers stand where all threads of the block come that
// have not returned; loops have few rounds. A thread reads its cells before it writes them, so a block that runs twice,
// or not at all, leaves other memory than one that runs once.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuctl::random_kernels {

/// Words of global memory. Every entry's first parameters are their addresses: cells, sums, input.
inline constexpr std::uint32_t kCellsPerThread = 4;
inline constexpr std::uint32_t kSumsWords = 96;
inline constexpr std::uint32_t kInputWords = 1024;  // read only
/// A variable of the module that all its kernels add to.
inline constexpr char kTallyName[] = "tally";
inline constexpr std::uint32_t kTallyWords = 16;

/// A parameter behind those.
struct Argument {
  std::uint32_t bytes;  ///< 1, 2, 4 or 8; its alignment too
  std::uint64_t value;
};

struct KernelShape {
  std::string name;
  std::array<std::uint32_t, 3> grid;
  std::array<std::uint32_t, 3> block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Argument> arguments;

  std::uint32_t blocks() const { return grid[0] * grid[1] * grid[2]; }
  std::uint32_t threads_per_block() const { return block[0] * block[1] * block[2]; }
  std::uint32_t threads() const { return blocks() * threads_per_block(); }
};

struct RandomModule {
  std::string ptx;
  std::vector<KernelShape> kernels;  ///< one to three
};

/// Where functions without barriers may be called: a compiler may get calls wrong that not all threads make
/// (docs/testing.md).
enum class Calls {
  kAnywhere,
  kTogether,  ///< only where all threads of the block come that have not returned
};

RandomModule generate(std::uint64_t seed, Calls calls = Calls::kAnywhere);

}  // namespace gpuctl::random_kernels
