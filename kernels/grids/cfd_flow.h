// The flow of an ideal gas: its state in a cell, and what passes a face between two cells, for both sides. The
// numerical flux is Rusanov's: the mean of both sides' fluxes, less the difference of the states times the fastest
// wave's speed.
#pragma once

#include "kernels/problem/rounded.h"

namespace gpuctl::bench {

constexpr int kFlowWords = 5;
constexpr int kFaces = 4;  // of a cell
constexpr int kWall = -1;  // in place of a neighbour
constexpr int kFar = -2;

/// Density, momentum and energy, each per volume.
struct Flow {
  float density;
  float x;
  float y;
  float z;
  float energy;
};

/// A face's direction, as long as the face is large.
struct Normal {
  float x;
  float y;
  float z;
};

/// Undisturbed flow, at some distance.
BENCH_BOTH Flow far_flow() {
  return {1.4f, 1.2f, 0.1f, 0.0f, 3.1f};
}

BENCH_BOTH float pressure_of(const Flow& flow) {
  const float square = multiply_add(flow.x, flow.x, multiply_add(flow.y, flow.y, multiply(flow.z, flow.z)));
  return multiply(0.4f, subtract(flow.energy, multiply(0.5f, divide(square, flow.density))));
}

BENCH_BOTH float speed_of_sound(const Flow& flow, float pressure) {
  return square_root(divide(multiply(1.4f, pressure), flow.density));
}

BENCH_BOTH float speed_of(const Flow& flow) {
  const float square = multiply_add(flow.x, flow.x, multiply_add(flow.y, flow.y, multiply(flow.z, flow.z)));
  return divide(square_root(square), flow.density);
}

/// How far in time a cell of a size may go: waves cross less than half of it.
BENCH_BOTH float step_factor(const Flow& flow, float size) {
  const float fastest = add(speed_of(flow), speed_of_sound(flow, pressure_of(flow)));
  return divide(0.5f, multiply(square_root(size), fastest));
}

/// One side's flux through a face, and the speed of its fastest wave times the face's size.
struct SideFlux {
  Flow flux;
  float fastest;
};

BENCH_BOTH SideFlux side_flux(const Flow& flow, const Normal& normal, float face) {
  const float pressure = pressure_of(flow);
  const float momentum = multiply_add(flow.x, normal.x, multiply_add(flow.y, normal.y, multiply(flow.z, normal.z)));
  const float through = divide(momentum, flow.density);
  const float speed = through < 0 ? -through : through;
  return {{momentum, multiply_add(flow.x, through, multiply(pressure, normal.x)),
           multiply_add(flow.y, through, multiply(pressure, normal.y)),
           multiply_add(flow.z, through, multiply(pressure, normal.z)), multiply(add(flow.energy, pressure), through)},
          multiply_add(speed_of_sound(flow, pressure), face, speed)};
}

/// What a cell gains in one of its words: less half of (left + right - fastest * (there - here)).
BENCH_BOTH float gained(float gain, float left, float right, float fastest, float here, float there) {
  const float twice = multiply_add(-fastest, subtract(there, here), add(left, right));
  return multiply_add(-0.5f, twice, gain);
}

/// Adds to `gain` what a cell gains through a face; `there` is the flow on the other side.
BENCH_BOTH void pass_face(Flow& gain, const Flow& here, const Flow& there, const Normal& normal) {
  const float face =
      square_root(multiply_add(normal.x, normal.x, multiply_add(normal.y, normal.y, multiply(normal.z, normal.z))));
  const SideFlux left = side_flux(here, normal, face);
  const SideFlux right = side_flux(there, normal, face);
  const float fastest = left.fastest < right.fastest ? right.fastest : left.fastest;
  gain.density = gained(gain.density, left.flux.density, right.flux.density, fastest, here.density, there.density);
  gain.x = gained(gain.x, left.flux.x, right.flux.x, fastest, here.x, there.x);
  gain.y = gained(gain.y, left.flux.y, right.flux.y, fastest, here.y, there.y);
  gain.z = gained(gain.z, left.flux.z, right.flux.z, fastest, here.z, there.z);
  gain.energy = gained(gain.energy, left.flux.energy, right.flux.energy, fastest, here.energy, there.energy);
}

/// The same for a wall: it only pushes back.
BENCH_BOTH void push_wall(Flow& gain, const Flow& here, const Normal& normal) {
  const float pressure = pressure_of(here);
  gain.x = multiply_add(-pressure, normal.x, gain.x);
  gain.y = multiply_add(-pressure, normal.y, gain.y);
  gain.z = multiply_add(-pressure, normal.z, gain.z);
}

/// Arrays of cells hold the first word of all cells, then the second of all, and so on.
BENCH_BOTH Flow load_flow(const float* flows, unsigned cells, unsigned cell) {
  return {flows[cell], flows[cells + cell], flows[2 * cells + cell], flows[3 * cells + cell], flows[4 * cells + cell]};
}

BENCH_BOTH void store_flow(float* flows, unsigned cells, unsigned cell, const Flow& flow) {
  flows[cell] = flow.density;
  flows[cells + cell] = flow.x;
  flows[2 * cells + cell] = flow.y;
  flows[3 * cells + cell] = flow.z;
  flows[4 * cells + cell] = flow.energy;
}

/// What a cell gains through all its faces.
BENCH_BOTH Flow gain_of(const int* neighbors, const float* normals, const float* flows, unsigned cells, unsigned cell) {
  const Flow here = load_flow(flows, cells, cell);
  Flow gain = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  for (unsigned face = 0; face < kFaces; ++face) {
    const int neighbor = neighbors[face * cells + cell];
    const float* at = normals + 3 * face * cells + cell;
    const Normal normal = {at[0], at[cells], at[2 * cells]};
    if (neighbor == kWall) {
      push_wall(gain, here, normal);
    } else if (neighbor == kFar) {
      pass_face(gain, here, far_flow(), normal);
    } else {
      pass_face(gain, here, load_flow(flows, cells, static_cast<unsigned>(neighbor)), normal);
    }
  }
  return gain;
}

/// The flow after a part of a time step.
BENCH_BOTH Flow advanced(const Flow& before, const Flow& gain, float factor) {
  return {multiply_add(factor, gain.density, before.density), multiply_add(factor, gain.x, before.x),
          multiply_add(factor, gain.y, before.y), multiply_add(factor, gain.z, before.z),
          multiply_add(factor, gain.energy, before.energy)};
}

}  // namespace gpuctl::bench
