// Random kernels whose blocks wait for each other in ordinary launches, in many ways, and twins of theirs that read in
// the same ways and wait for nobody.
#pragma once

#include <cstdint>
#include <string>

namespace gpuctl::random_kernels {

/// A module with one kernel, kPollingName, with the parameters (address of `arrived`, address of kPollingWords words).
/// Each block adds 1 to `arrived` and waits until all blocks have; then its threads write to the words, which `arrived`
/// is in front of. A twin looks for the first word that is not 0 instead, among words of which the last is 1: each
/// round of its loop reads the next one. Blocks have 32 threads.
struct PollingKernel {
  std::string ptx;
  std::string how;  ///< for people: how it reads
};

inline constexpr char kPollingName[] = "poll";
inline constexpr std::uint32_t kPollingWords = 64;

PollingKernel make_polling(std::uint64_t seed, bool waits);

}  // namespace gpuctl::random_kernels
