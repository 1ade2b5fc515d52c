#include "kernels/particles/lava_md.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "kernels/problem/approximations.h"
#include "kernels/problem/native.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::lava_md {
namespace {

constexpr std::uint32_t kThreads = 128;

/// Particles of one box by coordinate, so that loops over them can be vectorized; or effects on them, w the potential.
struct Box {
  float x[kThreads], y[kThreads], z[kThreads], w[kThreads];
};

[[gnu::always_inline]] inline void add_effects_of(const Box& others, const Box& here, Box& effects,
                                                  std::uint32_t count) {
  for (std::uint32_t j = 0; j < count; ++j) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const float x = here.x[i] - others.x[j];
      const float y = here.y[i] - others.y[j];
      const float z = here.z[i] - others.z[j];
      const float square = multiply_add(x, x, multiply_add(y, y, z * z));
      const float potential = others.w[j] * approximate_exp(-0.5f * square);
      effects.x[i] = multiply_add(x, potential, effects.x[i]);
      effects.y[i] = multiply_add(y, potential, effects.y[i]);
      effects.z[i] = multiply_add(z, potential, effects.z[i]);
      effects.w[i] += potential;
    }
  }
}

BENCH_NATIVE void add_effects_native(const Box& others, const Box& here, Box& effects, std::uint32_t count) {
  add_effects_of(others, here, effects, count);
}

void add_effects(const Box& others, const Box& here, Box& effects, std::uint32_t count) {
  if (has_native()) return add_effects_native(others, here, effects, count);
  add_effects_of(others, here, effects, count);
}

/// For each box the boxes around it, itself among them: `starts` tells where in `around` those of a box begin.
void find_boxes_around(int side, Words& starts, Words& around) {
  starts = {0};
  for (int box = 0; box < side * side * side; ++box) {
    const int at_x = box % side;
    const int at_y = box / side % side;
    const int at_z = box / side / side;
    for (int z = std::max(at_z - 1, 0); z <= std::min(at_z + 1, side - 1); ++z) {
      for (int y = std::max(at_y - 1, 0); y <= std::min(at_y + 1, side - 1); ++y) {
        for (int x = std::max(at_x - 1, 0); x <= std::min(at_x + 1, side - 1); ++x) {
          around.push_back(static_cast<std::uint32_t>((z * side + y) * side + x));
        }
      }
    }
    starts.push_back(static_cast<std::uint32_t>(around.size()));
  }
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto [side, per_box, unused] = extent;
  const std::uint32_t boxes = side * side * side;
  Random random(seed);
  Words particles;
  for (std::uint32_t i = 0; i < boxes * per_box; ++i) {
    const std::uint32_t box = i / per_box;
    for (const std::uint32_t corner : {box % side, box / side % side, box / side / side}) {
      particles.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(corner) + random.uniform_float()));
    }
    particles.push_back(std::bit_cast<std::uint32_t>(2.0f * random.uniform_float() - 1.0f));
  }
  Words starts;
  Words around;
  find_boxes_around(static_cast<int>(side), starts, around);
  const std::size_t words = particles.size();
  return OneLaunch{
      .grid = {boxes},
      .block = {kThreads},
      .inputs = {std::move(particles), std::move(starts), std::move(around)},
      .output_words = words,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::input(2), Argument::output(),
                    Argument::number(per_box)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const std::uint32_t per_box = extent.y;
  const Words& starts = problem.inputs[1];
  const std::size_t boxes = starts.size() - 1;
  std::vector<Box> particles(boxes);
  for (std::size_t i = 0; i < boxes * per_box; ++i) {
    const auto coordinate = [&](std::size_t k) { return std::bit_cast<float>(problem.inputs[0][4 * i + k]); };
    Box& box = particles[i / per_box];
    box.x[i % per_box] = coordinate(0);
    box.y[i % per_box] = coordinate(1);
    box.z[i % per_box] = coordinate(2);
    box.w[i % per_box] = coordinate(3);
  }
  Words out;
  for (std::size_t box = 0; box < boxes; ++box) {
    Box effects = {};
    for (std::size_t k = starts[box]; k < starts[box + 1]; ++k) {
      add_effects(particles[problem.inputs[2][k]], particles[box], effects, per_box);
    }
    for (std::uint32_t i = 0; i < per_box; ++i) {
      for (const float value : {effects.x[i], effects.y[i], effects.z[i], effects.w[i]}) {
        out.push_back(std::bit_cast<std::uint32_t>(value));
      }
    }
  }
  return out;
}

}  // namespace gpuctl::bench::lava_md
