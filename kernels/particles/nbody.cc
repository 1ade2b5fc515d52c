#include "kernels/particles/nbody.h"

#include "kernels/particles/nbody_force.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::nbody {
namespace {

constexpr std::uint32_t kThreads = 128;
constexpr std::size_t kWordsPerBody = 8;
constexpr std::size_t kLanes = 16;  // bodies whose pulls are summed side by side

/// The pulls on kLanes bodies at `places` (first all x, then y, then z) by all bodies, in their order.
[[gnu::always_inline]] inline void sum_pulls(const float* places, const std::vector<float>& bodies, float* pulls) {
  float x[kLanes] = {};
  float y[kLanes] = {};
  float z[kLanes] = {};
  for (std::size_t other = 0; other < bodies.size(); other += kWordsPerBody) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      Vector pull = {x[i], y[i], z[i]};
      add_pull(pull, bodies[other] - places[i], bodies[other + 1] - places[kLanes + i],
               bodies[other + 2] - places[2 * kLanes + i], bodies[other + 3]);
      x[i] = pull.x;
      y[i] = pull.y;
      z[i] = pull.z;
    }
  }
  for (std::size_t i = 0; i < kLanes; ++i) {
    pulls[i] = x[i];
    pulls[kLanes + i] = y[i];
    pulls[2 * kLanes + i] = z[i];
  }
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma"), gnu::optimize("O3")]] void sum_pulls_native(const float* places,
                                                                       const std::vector<float>& bodies, float* pulls) {
  sum_pulls(places, bodies, pulls);
}
bool has_native() {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
}
#else
void sum_pulls_native(const float* places, const std::vector<float>& bodies, float* pulls) {
  sum_pulls(places, bodies, pulls);
}
bool has_native() {
  return false;
}
#endif

void sum_pulls_portable(const float* places, const std::vector<float>& bodies, float* pulls) {
  sum_pulls(places, bodies, pulls);
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  Random random(seed);
  Words words;
  for (std::uint32_t body = 0; body < extent.x; ++body) {
    for (std::size_t i = 0; i < kWordsPerBody; ++i) {
      const float value = i == 7 ? 0.0f : i == 3 ? random.uniform_float() : random.uniform_float() - 0.5f;
      words.push_back(std::bit_cast<std::uint32_t>(value));
    }
  }
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {std::move(words)},
      .output_words = extent.x * kWordsPerBody,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const std::vector<float> bodies = as_floats(problem.inputs[0]);
  std::vector<float> out = bodies;
  const auto sum = has_native() ? sum_pulls_native : sum_pulls_portable;
  for (std::size_t first = 0; first < extent.x; first += kLanes) {
    float places[3 * kLanes] = {};
    float pulls[3 * kLanes];
    const std::size_t count = std::min<std::size_t>(kLanes, extent.x - first);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        places[axis * kLanes + i] = bodies[(first + i) * kWordsPerBody + axis];
      }
    }
    sum(places, bodies, pulls);
    for (std::size_t i = 0; i < count; ++i) {
      float* body = &out[(first + i) * kWordsPerBody];
      for (std::size_t axis = 0; axis < 3; ++axis) {
        body[4 + axis] = multiply_add(pulls[axis * kLanes + i], kTimeStep, body[4 + axis]);
        body[axis] = multiply_add(body[4 + axis], kTimeStep, body[axis]);
      }
    }
  }
  return as_words(out);
}

}  // namespace gpuctl::bench::nbody
