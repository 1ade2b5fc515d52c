#include "kernels/particles/md.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/particles/md_potential.h"
#include "kernels/problem/random.h"

namespace gpuctl::bench::md {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr float kJitter = 0.3f;      ///< how far an atom may be from its place in the lattice, along each axis
constexpr float kListSquare = 6.8f;  ///< lists reach further than the cutoff, so that they stay good for a while
constexpr int kReach = 3;            ///< lattice places that may be within the lists' radius, along each axis

struct Atom {
  float x, y, z, w;
};

std::uint32_t lattice_side(std::uint32_t atoms) {
  std::uint32_t side = 1;
  while (std::uint64_t{side} * side * side < atoms) ++side;
  return side;
}

/// A cubic lattice of unit spacing, each atom a little beside its place.
std::vector<Atom> place_atoms(std::uint32_t atoms, std::uint64_t seed) {
  Random random(seed);
  const auto jitter = [&] { return (2.0f * random.uniform_float() - 1.0f) * kJitter; };
  const std::uint32_t side = lattice_side(atoms);
  std::vector<Atom> placed(atoms);
  for (std::uint32_t i = 0; i < atoms; ++i) {
    placed[i].x = static_cast<float>(i % side) + jitter();
    placed[i].y = static_cast<float>(i / side % side) + jitter();
    placed[i].z = static_cast<float>(i / side / side) + jitter();
    placed[i].w = 0.0f;
  }
  return placed;
}

bool near(const Atom& a, const Atom& b) {
  const float x = a.x - b.x;
  const float y = a.y - b.y;
  const float z = a.z - b.z;
  return x * x + y * y + z * z < kListSquare;
}

/// The atoms near each atom.
std::vector<std::vector<std::uint32_t>> find_neighbors(const std::vector<Atom>& atoms) {
  const auto count = static_cast<std::uint32_t>(atoms.size());
  const auto side = static_cast<int>(lattice_side(count));
  std::vector<std::vector<std::uint32_t>> neighbors(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const int at_x = static_cast<int>(i) % side;
    const int at_y = static_cast<int>(i) / side % side;
    const int at_z = static_cast<int>(i) / side / side;
    for (int z = std::max(at_z - kReach, 0); z <= std::min(at_z + kReach, side - 1); ++z) {
      for (int y = std::max(at_y - kReach, 0); y <= std::min(at_y + kReach, side - 1); ++y) {
        for (int x = std::max(at_x - kReach, 0); x <= std::min(at_x + kReach, side - 1); ++x) {
          const auto other = static_cast<std::uint32_t>((z * side + y) * side + x);
          if (other < count && other != i && near(atoms[i], atoms[other])) neighbors[i].push_back(other);
        }
      }
    }
  }
  return neighbors;
}

}  // namespace

Problem generate(const Extent& extent, std::uint64_t seed) {
  const std::vector<Atom> atoms = place_atoms(extent.x, seed);
  const std::vector<std::vector<std::uint32_t>> neighbors = find_neighbors(atoms);
  Words positions(atoms.size() * 4);
  std::memcpy(positions.data(), atoms.data(), atoms.size() * sizeof(Atom));
  Words counts;
  for (const auto& of_atom : neighbors) counts.push_back(static_cast<std::uint32_t>(of_atom.size()));
  Words list(std::size_t{*std::ranges::max_element(counts)} * atoms.size(), 0);
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    for (std::size_t k = 0; k < counts[i]; ++k) list[k * atoms.size() + i] = neighbors[i][k];
  }
  return OneLaunch{
      .grid = {divide_up(extent.x, kThreads)},
      .block = {kThreads},
      .inputs = {std::move(positions), std::move(counts), std::move(list)},
      .output_words = std::size_t{extent.x} * 4,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::input(1), Argument::input(2), Argument::output(),
                    Argument::number(extent.x)},
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  std::vector<Atom> atoms(extent.x);
  std::memcpy(atoms.data(), problem.inputs[0].data(), atoms.size() * sizeof(Atom));
  std::vector<Atom> forces(extent.x, Atom{});
  for (std::size_t i = 0; i < atoms.size(); ++i) {
    Atom& force = forces[i];
    for (std::size_t k = 0; k < problem.inputs[1][i]; ++k) {
      const Atom& other = atoms[problem.inputs[2][k * atoms.size() + i]];
      const std::array<float, 3> d = {atoms[i].x - other.x, atoms[i].y - other.y, atoms[i].z - other.z};
      const float square = std::fma(d[0], d[0], std::fma(d[1], d[1], d[2] * d[2]));
      if (square >= kMdCutoffSquare) continue;
      const float inverse = 1.0f / square;
      const float sixth = inverse * inverse * inverse;
      const float strength = inverse * sixth * (kMdRepulsion * sixth - kMdAttraction);
      force.x = std::fma(d[0], strength, force.x);
      force.y = std::fma(d[1], strength, force.y);
      force.z = std::fma(d[2], strength, force.z);
      force.w += 1.0f;
    }
  }
  Words out(forces.size() * 4);
  std::memcpy(out.data(), forces.data(), forces.size() * sizeof(Atom));
  return out;
}

}  // namespace gpuctl::bench::md
