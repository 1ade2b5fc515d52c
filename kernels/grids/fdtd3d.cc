#include "kernels/grids/fdtd3d.h"

#include "kernels/grids/fdtd3d_weights.h"
#include "kernels/problem/fused.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::fdtd3d {
namespace {

constexpr std::uint32_t kWide = 32;
constexpr std::uint32_t kHigh = 16;
constexpr std::size_t kRadius = 4;
constexpr int kTimeSteps = 2;

/// A volume with a border of zeros.
class Padded {
 public:
  explicit Padded(const Extent& extent)
      : wide_(extent.x + 2 * kRadius),
        plane_(wide_ * (extent.y + 2 * kRadius)),
        cells_(plane_ * (extent.z + 2 * kRadius)) {}
  float* row(std::size_t y, std::size_t z) { return &cells_[(z + kRadius) * plane_ + (y + kRadius) * wide_ + kRadius]; }
  std::size_t wide() const { return wide_; }
  std::size_t plane() const { return plane_; }

 private:
  std::size_t wide_;
  std::size_t plane_;
  std::vector<float> cells_;
};

}  // namespace

// The first time step writes the scratch buffer, the second the output.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [wide, high, deep] = extent;
  const std::size_t cells = std::size_t{wide} * high * deep;
  const Dim3 grid = {divide_up(wide, kWide), divide_up(high, kHigh)};
  const Dim3 block = {kWide, kHigh};
  const auto arguments = [&](Argument from, Argument to) -> std::vector<Argument> {
    return {from, to, Argument::number(wide), Argument::number(high), Argument::number(deep)};
  };
  return {.inputs = {random_floats(cells, seed)},
          .output_words = cells,
          .poison = kPoison,
          .scratch = {{cells}},
          .steps = {{{}, grid, block, arguments(Argument::input(0), Argument::scratch(0))},
                    {{}, grid, block, arguments(Argument::scratch(0), Argument::output())}}};
}

Words reference(const Extent& extent, const Problem& problem) {
  const auto [wide, high, deep] = extent;
  std::vector<float> cells = as_floats(problem.inputs[0]);
  Padded volume(extent);
  std::vector<float> around(wide);  // sums of six cells at one distance
  for (int step = 0; step < kTimeSteps; ++step) {
    for (std::size_t i = 0; i < std::size_t{high} * deep; ++i) {
      std::memcpy(volume.row(i % high, i / high), &cells[i * wide], wide * sizeof(float));
    }
    for (std::size_t i = 0; i < std::size_t{high} * deep; ++i) {
      const float* row = volume.row(i % high, i / high);
      float* out = &cells[i * wide];
      for (std::size_t x = 0; x < wide; ++x) out[x] = kFdtdWeights[0] * row[x];
      for (std::size_t r = 1; r <= kRadius; ++r) {
        const float* before = row - r * volume.plane();
        const float* behind = row + r * volume.plane();
        const float* above = row - r * volume.wide();
        const float* below = row + r * volume.wide();
        for (std::size_t x = 0; x < wide; ++x) {
          around[x] = (before[x] + behind[x]) + (*(row + x - r) + row[x + r]) + (above[x] + below[x]);
        }
        add_scaled(out, kFdtdWeights[r], around.data(), wide);
      }
    }
  }
  return as_words(cells);
}

}  // namespace gpuctl::bench::fdtd3d
