// Work for the programs of the compatibility suite: steps that depend on each other and are the same on host and
// device, so that a kernel lasts as long as its program wants and a thread block that runs twice is seen.
#pragma once

#include <cstring>
#include <vector>

#include "check.h"

/// `steps` values of a generator, each made of the last: no compiler makes fewer of them.
__host__ __device__ inline std::uint32_t mix(std::uint32_t value, int steps) {
  for (int i = 0; i < steps; ++i) value = (value ^ (value >> 15)) * 0x2c1b3c6du + 0x9e3779b9u;
  return value;
}

/// The first number on a GPU, the second on the software GPU, which interprets each instruction.
inline int scaled(int gpu, int software) {
  static const bool is_software = [] {
    cudaDeviceProp properties{};
    CHECK(cudaGetDeviceProperties(&properties, 0));
    return std::strstr(properties.name, "software") != nullptr;
  }();
  return is_software ? software : gpu;
}

/// With these a kernel that does `work_steps()` steps in each of `work_threads()` threads lasts about 0.1 ms, and
/// `work_rounds()` of them some tens of milliseconds.
inline int work_threads() {
  return scaled(1 << 19, 1 << 10);
}
inline int work_steps() {
  return scaled(1000, 4);
}
inline int work_rounds() {
  return scaled(200, 8);
}

/// Ends the program with status 1 if what was computed is not what the host expects.
template <class T>
void must_equal(const char* what, const T* got, const T* expected, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) == 0) continue;
    std::fprintf(stderr, "%s: element %zu of %zu is wrong\n", what, i, count);
    std::exit(1);
  }
}

/// The same for one condition.
inline void must(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::exit(1);
}

/// Device memory that holds `count` zeros, until the program ends.
template <class T>
T* zeros(std::size_t count) {
  T* memory = nullptr;
  CHECK(cudaMalloc(&memory, count * sizeof(T)));
  CHECK(cudaMemset(memory, 0, count * sizeof(T)));
  return memory;
}

/// Device memory that holds a copy of `values`, until the program ends.
template <class T>
T* on_device(const std::vector<T>& values) {
  T* memory = nullptr;
  CHECK(cudaMalloc(&memory, values.size() * sizeof(T)));
  CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

/// What device memory holds, after all work of the device.
template <class T>
std::vector<T> on_host(const T* memory, std::size_t count) {
  CHECK(cudaDeviceSynchronize());
  std::vector<T> values(count);
  CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

/// One line: a name, and the hash of what device memory holds.
template <class T>
void print_device_hash(const char* name, const T* memory, std::size_t count) {
  const std::vector<T> values = on_host(memory, count);
  print_hash(name, values.data(), count * sizeof(T));
}
