#include "kernels/grids/cfd.h"

#include <cmath>

#include "kernels/grids/cfd_flow.h"
#include "kernels/problem/random.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::cfd {
namespace {

constexpr std::uint32_t kThreads = 192;
constexpr float kParts[] = {1.0f / 3, 1.0f / 2, 1.0f};  // of the time step, one a stage

/// Cells in rows, each beside the one before, the one after, and those a row before and after.
struct Mesh {
  Words neighbors;
  Words normals;
};

Mesh make_mesh(std::uint32_t cells, Random& random) {
  const auto row = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(cells))));
  const std::int64_t distances[kFaces] = {1, -1, row, -row};
  constexpr Normal kDirections[] = {{0.30f, 0.05f, 0.02f}, {-0.04f, 0.28f, 0.06f}};
  Mesh mesh{Words(std::size_t{kFaces} * cells), Words(std::size_t{3} * kFaces * cells)};
  const auto set_normal = [&](std::size_t face, std::size_t cell, const Normal& normal, float scale) {
    const float words[] = {normal.x * scale, normal.y * scale, normal.z * scale};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      mesh.normals[(3 * face + axis) * cells + cell] = std::bit_cast<std::uint32_t>(words[axis]);
    }
  };
  for (std::uint32_t cell = 0; cell < cells; ++cell) {
    for (std::size_t face = 0; face < kFaces; ++face) {
      const std::int64_t neighbor = cell + distances[face];
      const bool inside = neighbor >= 0 && neighbor < cells;
      const std::int64_t beside = inside ? neighbor : distances[face] < 0 ? kWall : kFar;
      mesh.neighbors[face * cells + cell] = static_cast<std::uint32_t>(beside);
      if (inside && distances[face] < 0) continue;  // the neighbour's face, the other way round: set below
      const float scale = 0.95f + 0.1f * random.uniform_float();
      set_normal(face, cell, kDirections[face / 2], distances[face] < 0 ? -scale : scale);
      if (inside) set_normal(face + 1, static_cast<std::size_t>(neighbor), kDirections[face / 2], -scale);
    }
  }
  return mesh;
}

/// Flow that differs from the undisturbed by up to a tenth.
Words disturbed_flows(std::uint32_t cells, Random& random) {
  const Flow far = far_flow();
  const float words[] = {far.density, far.x, far.y, far.z, far.energy};
  Words flows;
  for (const float word : words) {
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      flows.push_back(std::bit_cast<std::uint32_t>(word + 0.1f * (random.uniform_float() - 0.5f)));
    }
  }
  return flows;
}

}  // namespace

// Scratch buffers: step factors, gains, the flow after the first two stages.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::uint32_t cells = extent.x;
  Random random(seed);
  Mesh mesh = make_mesh(cells, random);
  Words flows = disturbed_flows(cells, random);
  Words sizes(cells);
  for (std::uint32_t& size : sizes) size = std::bit_cast<std::uint32_t>(0.9f + 0.2f * random.uniform_float());

  const std::size_t words = std::size_t{kFlowWords} * cells;
  const Dim3 grid = {divide_up(cells, kThreads)};
  const Dim3 block = {kThreads};
  const Argument count = Argument::number(cells);
  const Argument first = Argument::input(2);
  const Argument factors = Argument::scratch(0);
  const Argument gains = Argument::scratch(1);
  Problem problem{
      .inputs = {std::move(mesh.neighbors), std::move(mesh.normals), std::move(flows), std::move(sizes)},
      .output_words = words,
      .poison = kPoison,
      .scratch = {{cells}, {words}, {words}},
  };
  problem.steps.push_back({"cfdStepFactor", grid, block, {first, Argument::input(3), factors, count}});
  Argument from = first;
  for (std::size_t stage = 0; stage < 3; ++stage) {
    const Argument to = stage == 2 ? Argument::output() : Argument::scratch(2);
    problem.steps.push_back({"cfdFlux", grid, block, {Argument::input(0), Argument::input(1), from, gains, count}});
    problem.steps.push_back(
        {"cfdAdvance", grid, block, {first, gains, factors, to, count, Argument::real(kParts[stage])}});
    from = to;
  }
  return problem;
}

Words reference(const Extent& extent, const Problem& problem) {
  const std::uint32_t cells = extent.x;
  const auto* neighbors = reinterpret_cast<const int*>(problem.inputs[0].data());
  const std::vector<float> normals = as_floats(problem.inputs[1]);
  const std::vector<float> before = as_floats(problem.inputs[2]);
  const std::vector<float> sizes = as_floats(problem.inputs[3]);
  std::vector<float> from = before;
  std::vector<float> to(before.size());
  for (const float part : kParts) {
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      const Flow flow = load_flow(before.data(), cells, cell);
      const Flow gain = gain_of(neighbors, normals.data(), from.data(), cells, cell);
      store_flow(to.data(), cells, cell, advanced(flow, gain, step_factor(flow, sizes[cell]) * part));
    }
    from.swap(to);
  }
  return as_words(from);
}

}  // namespace gpuctl::bench::cfd
