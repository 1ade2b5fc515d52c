#include "kernels/grids/cfd.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kernels/grids/cfd_flow.h"
#include "kernels/problem/words.h"

namespace gpuctl::bench::cfd {
namespace {

/// Total of each of the five words over all cells.
std::array<double, kFlowWords> totals(const std::vector<float>& flows) {
  std::array<double, kFlowWords> sums = {};
  const std::size_t cells = flows.size() / kFlowWords;
  for (std::size_t i = 0; i < flows.size(); ++i) sums[i / cells] += flows[i];
  return sums;
}

// What one cell loses through a face its neighbour gains.
TEST(Cfd, WhatPassesInnerFacesIsKept) {
  constexpr Extent kCells{900};
  const Problem problem = generate(kCells, 3);
  const auto* neighbors = reinterpret_cast<const int*>(problem.inputs[0].data());
  const std::vector<float> normals = as_floats(problem.inputs[1]);
  const std::vector<float> flows = as_floats(problem.inputs[2]);
  double gained = 0;
  double through = 0;
  double moved = 0;
  for (unsigned cell = 0; cell < kCells.x; ++cell) {
    const Flow here = load_flow(flows.data(), kCells.x, cell);
    gained += gain_of(neighbors, normals.data(), flows.data(), kCells.x, cell).density;
    for (unsigned face = 0; face < kFaces; ++face) {
      if (neighbors[face * kCells.x + cell] != kFar) continue;
      const float* at = &normals[3 * face * kCells.x + cell];
      Flow gain = {};
      pass_face(gain, here, far_flow(), {at[0], at[kCells.x], at[2 * kCells.x]});
      through += gain.density;
    }
    moved += std::abs(here.density);
  }
  EXPECT_NEAR(gained, through, 1e-5 * moved);
  EXPECT_GT(std::abs(through), 1e-2);
}

TEST(Cfd, AStepLeavesTheFlowNearAndInsideItsBounds) {
  constexpr Extent kCells{900};
  const Problem problem = generate(kCells, 3);
  const std::vector<float> before = as_floats(problem.inputs[2]);
  const std::vector<float> after = as_floats(reference(kCells, problem));
  EXPECT_NE(before, after);
  const auto was = totals(before);
  const auto is = totals(after);
  EXPECT_NEAR(is[0], was[0], 0.05 * was[0]);
  EXPECT_NEAR(is[4], was[4], 0.05 * was[4]);
  for (unsigned cell = 0; cell < kCells.x; ++cell) {
    const Flow flow = load_flow(after.data(), kCells.x, cell);
    ASSERT_GT(flow.density, 0.5f);
    ASSERT_GT(pressure_of(flow), 0.1f);
  }
}

// Undisturbed flow on both sides of a closed cell: nothing is gained.
TEST(Cfd, UndisturbedFlowStays) {
  Flow gain = {};
  const Flow far = far_flow();
  for (const Normal& normal : {Normal{0.3f, 0.1f, 0.2f}, {-0.3f, -0.1f, -0.2f}, {0.1f, 0.5f, 0}, {-0.1f, -0.5f, 0}}) {
    pass_face(gain, far, far, normal);
  }
  for (const float word : {gain.density, gain.x, gain.y, gain.z, gain.energy}) EXPECT_NEAR(word, 0, 1e-6);
}

}  // namespace
}  // namespace gpuctl::bench::cfd
