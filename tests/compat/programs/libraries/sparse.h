// A sparse matrix for the cuSPARSE programs: the five-point stencil on a square grid, in compressed rows.
#pragma once

#include <vector>

#include "check.h"

struct Stencil {
  int rows;
  std::vector<int> offsets, columns;
  std::vector<double> values;
};

inline Stencil stencil(int side) {
  Stencil made{side * side, {0}, {}, {}};
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const auto add = [&](int dx, int dy, double value) {
        if (x + dx < 0 || x + dx >= side || y + dy < 0 || y + dy >= side) return;
        made.columns.push_back((y + dy) * side + x + dx);
        made.values.push_back(value);
      };
      add(0, -1, -1);
      add(-1, 0, -1);
      add(0, 0, 4);
      add(1, 0, -1);
      add(0, 1, -1);
      made.offsets.push_back(static_cast<int>(made.columns.size()));
    }
  return made;
}

template <typename T>
T* on_device(const std::vector<T>& host) {
  T* device = nullptr;
  CHECK(cudaMalloc(&device, host.size() * sizeof(T)));
  CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}
