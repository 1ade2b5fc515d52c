#include "kernels/run/work.h"

#include <bit>
#include <cstring>
#include <vector>

#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::work {
namespace {
constexpr std::uint32_t kThreads = 256;
constexpr std::size_t kTable = 4096;
constexpr float kScale = 0.998f;
constexpr std::size_t kStride = 32;  ///< table words between two iterations of a thread
}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  return OneLaunch{
      .grid = {extent.x},
      .block = {kThreads},
      .inputs = {random_floats(kTable, seed)},
      .output_words = extent.x,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.y)},
      .once = true,
  };
}

// Threads whose indices are equal modulo the table's size compute the same value, so 4096 threads stand for all.
Words reference(const Extent& extent, const Problem& problem) {
  std::vector<float> table(2 * kTable);  // twice in a row: reading from any start needs no wrap
  std::memcpy(table.data(), problem.inputs[0].data(), kTable * sizeof(float));
  std::memcpy(&table[kTable], problem.inputs[0].data(), kTable * sizeof(float));
  std::vector<float> x(table.begin(), table.begin() + kTable);
  for (std::size_t k = 0; k < extent.y; ++k) scale_and_add(x.data(), kScale, &table[k * kStride % kTable], kTable);

  Words out(problem.output_words, problem.poison);
  for (std::size_t i = 0; i < out.size() * kThreads; ++i) {
    out[i / kThreads] += std::bit_cast<std::uint32_t>(x[i % kTable]) ^ static_cast<std::uint32_t>(i);
  }
  return out;
}

}  // namespace gpuctl::bench::work
