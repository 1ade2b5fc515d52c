#include "kernels/particles/myocyte.h"

#include <bit>
#include <cstring>

#include "kernels/particles/myocyte_model.h"
#include "kernels/problem/native.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::myocyte {
namespace {

constexpr std::uint32_t kThreads = 32;
constexpr std::size_t kCellWords = sizeof(MyocyteCell) / sizeof(std::uint32_t);

float milliseconds(const Extent& extent) {
  return static_cast<float>(extent.y) / 1000.0f;
}

BENCH_NATIVE unsigned simulate_native(const MyocyteCell& cell, float end, float* state) {
  return simulate_myocyte(cell, end, state);
}

unsigned simulate(const MyocyteCell& cell, float end, float* state) {
  return has_native() ? simulate_native(cell, end, state) : simulate_myocyte(cell, end, state);
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  Random random(seed);
  const auto between = [&](float low, float high) { return low + (high - low) * random.uniform_float(); };
  Words cells;
  for (std::uint32_t i = 0; i < extent.x; ++i) {
    const float sodium = between(3, 5);
    const float slow = between(0.07f, 0.11f);
    const float stimulus = between(20, 60);  // some cells fire early, some late
    const float voltage = between(-86, -83);
    for (const float value : {sodium, slow, stimulus, voltage}) cells.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {std::move(cells)},
      .output_words = std::size_t{extent.x} * (kMyocyteStates + 1),
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::real(milliseconds(extent)),
                    Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  Words out(problem.output_words);
  for (std::size_t i = 0; i < extent.x; ++i) {
    MyocyteCell cell;
    std::memcpy(&cell, &problem.inputs[0][i * kCellWords], sizeof cell);
    float state[kMyocyteStates];
    const unsigned steps = simulate(cell, milliseconds(extent), state);
    for (std::size_t k = 0; k < kMyocyteStates; ++k) {
      out[k * extent.x + i] = std::bit_cast<std::uint32_t>(state[k]);
    }
    out[kMyocyteStates * extent.x + i] = steps;
  }
  return out;
}

}  // namespace gpuctl::bench::myocyte
