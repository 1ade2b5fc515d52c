#include "kernels/searches/bfs.h"

#include <algorithm>

#include "kernels/problem/random.h"

namespace gpuctl::bench::bfs {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kSource = 0;
constexpr std::uint32_t kUnreached = ~0u;
constexpr std::uint32_t kMeanEdges = 8;   // of a usual vertex
constexpr std::uint32_t kHubEvery = 500;  // vertices with many more
constexpr std::uint32_t kHubEdges = 150;

Words levels_of(const Words& first_edge, const Words& edges) {
  Words levels(first_edge.size() - 1, kUnreached);
  Words now = {kSource};
  levels[kSource] = 0;
  for (std::uint32_t level = 1; !now.empty(); ++level) {
    Words next;
    for (const std::uint32_t vertex : now) {
      for (std::uint32_t edge = first_edge[vertex]; edge < first_edge[vertex + 1]; ++edge) {
        std::uint32_t& found = levels[edges[edge]];
        if (found != kUnreached) continue;
        found = level;
        next.push_back(edges[edge]);
      }
    }
    now.swap(next);
  }
  return levels;
}

}  // namespace

// A program would look after each level whether there is another; here the number of levels is known beforehand.
Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::uint32_t vertices = extent.x;
  Random random(seed);
  Words first_edge = {0};
  Words edges;
  for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
    const std::uint64_t most = vertex % kHubEvery == 0 ? kHubEdges : 2 * kMeanEdges - 1;
    const std::uint64_t count = 1 + random.bits() % most;
    for (std::uint64_t i = 0; i < count; ++i) edges.push_back(static_cast<std::uint32_t>(random.bits() % vertices));
    first_edge.push_back(static_cast<std::uint32_t>(edges.size()));
  }
  std::uint32_t depth = 0;
  for (const std::uint32_t level : levels_of(first_edge, edges)) {
    if (level != kUnreached) depth = std::max(depth, level);
  }

  const Dim3 grid = {divide_up(vertices, kThreads)};
  const Argument levels = Argument::output();
  const Argument count = Argument::number(vertices);
  Problem problem{
      .inputs = {std::move(first_edge), std::move(edges)}, .output_words = vertices, .poison = kPoison, .scratch = {}};
  problem.steps.push_back({"bfsStart", grid, {kThreads}, {levels, count, Argument::number(kSource)}});
  for (std::uint32_t level = 0; level <= depth; ++level) {
    problem.steps.push_back({"bfsLevel",
                             grid,
                             {kThreads},
                             {Argument::input(0), Argument::input(1), levels, count, Argument::number(level)}});
  }
  return problem;
}

Words reference(const Extent&, const Problem& problem) {
  return levels_of(problem.inputs[0], problem.inputs[1]);
}

}  // namespace gpuctl::bench::bfs
