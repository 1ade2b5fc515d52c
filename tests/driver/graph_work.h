// What graph_storm.cc launches and captures: memory, kernels on it, and the same on the CPU.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "driver.h"
#include "graph_kernels.h"

inline constexpr unsigned kThreads = 128;
inline constexpr unsigned kBlocks = 250;
inline constexpr unsigned kIterations = 12;

inline CUfunction step_kernel, combine_kernel, waiting_kernel;
inline CUdeviceptr flag;  // is 1

using Words = std::vector<unsigned>;

/// Done when it returns, whatever other threads capture meanwhile.
inline void set(CUdeviceptr device, unsigned value, unsigned words) {
  DRIVER_CHECK(cuMemsetD32Async(device, value, words, CU_STREAM_PER_THREAD));
  DRIVER_CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

/// Memory of the GPU and a page-locked copy of it, of as many words as threads.
struct Buffer {
  explicit Buffer(unsigned blocks = kBlocks) : words(blocks * kThreads) {
    DRIVER_CHECK(cuMemAlloc(&device, words * sizeof(unsigned)));
    void* memory = nullptr;
    DRIVER_CHECK(cuMemAllocHost(&memory, words * sizeof(unsigned)));
    host = static_cast<unsigned*>(memory);
    set(device, 0, words);
  }
  void fill(unsigned value) {
    for (unsigned i = 0; i < words; ++i) host[i] = value + i;
  }
  bool holds(const Words& expected) const { return std::equal(expected.begin(), expected.end(), host); }

  unsigned words;
  CUdeviceptr device = 0;
  unsigned* host = nullptr;
};

inline void upload(Buffer& buffer, CUstream stream) {
  DRIVER_CHECK(cuMemcpyHtoDAsync(buffer.device, buffer.host, buffer.words * sizeof(unsigned), stream));
}
inline void download(Buffer& buffer, CUstream stream) {
  DRIVER_CHECK(cuMemcpyDtoHAsync(buffer.host, buffer.device, buffer.words * sizeof(unsigned), stream));
}
inline void step(Buffer& buffer, unsigned add, CUstream stream, unsigned iterations = kIterations) {
  void* parameters[] = {&buffer.device, &add, &iterations};
  DRIVER_CHECK(
      cuLaunchKernel(step_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
inline void wait_and_step(Buffer& buffer, unsigned add, CUstream stream) {
  unsigned iterations = kIterations;
  void* parameters[] = {&buffer.device, &add, &iterations, &flag};
  DRIVER_CHECK(
      cuLaunchKernel(waiting_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
inline void combine(Buffer& buffer, Buffer& other, CUstream stream) {
  void* parameters[] = {&buffer.device, &other.device};
  DRIVER_CHECK(
      cuLaunchKernel(combine_kernel, buffer.words / kThreads, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr));
}
inline void step(Words& words, unsigned add) {
  for (unsigned& word : words) word = scrambled(word + add, kIterations);
}
inline Words counted_from(unsigned value) {
  Words words(kBlocks * kThreads);
  for (unsigned i = 0; i < words.size(); ++i) words[i] = value + i;
  return words;
}

inline CUgraph capture(CUstream stream, const std::function<void()>& work) {
  CUgraph graph = nullptr;
  DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  work();
  DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
  return graph;
}
/// The graph is destroyed at once: a program need not keep it.
inline CUgraphExec instantiate_and_destroy(CUgraph graph) {
  CUgraphExec executable = nullptr;
  DRIVER_CHECK(cuGraphInstantiate(&executable, graph, 0));
  DRIVER_CHECK(cuGraphDestroy(graph));
  return executable;
}
inline void update_and_destroy(CUgraphExec executable, CUgraph graph) {
  CUgraphExecUpdateResultInfo info{};
  DRIVER_CHECK(cuGraphExecUpdate(executable, graph, &info));
  DRIVER_CHECK(cuGraphDestroy(graph));
}
