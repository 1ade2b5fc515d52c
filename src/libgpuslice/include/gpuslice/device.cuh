// Kernels written preemptible by hand, for programs that ship them without PTX (libgpuslice rewrites kernels that come
// with PTX by itself).
//
//   __global__ void scale(gpuslice::launch_args args, float* data, float by) {
//     gpuslice::for_each_block_task(args, [&](dim3 block) {
//       data[block.x * blockDim.x + threadIdx.x] *= by;
//     });
//   }
//   ...
//   gpuslice::launch(scale, grid, threads, 0, stream, data, 2.0f);      // compile with gpuslice-nvcc, or link
//   -lgpuslice
//
// A block-task is what a thread block is to an ordinary kernel. `block` and gpuslice::grid(args) take the places of
// blockIdx and gridDim, which have another meaning here. If the program is in no slice, the stream is captured, or the
// kernel is very short, each thread block runs the one block-task of its own number. Otherwise fewer thread blocks run
// one block-task after another, and leave between two of them when the program must give up SMs.
//
// Rules for the body:
// - Block-tasks are independent. None may wait for another, and they run in any order.
// - All threads of the block call the body. A thread may return from it early, but then no other thread may reach a
//   barrier after that: a __syncthreads() in the body is a barrier of all threads, as in any function that a kernel
//   calls.
// - What the body leaves in shared memory or local variables means nothing to the next block-task.
//
// The body's writes are visible to whatever comes after the kernel in its stream, as always.
//
// Needs C++17 and compute capability 7.0. Takes 48 bytes of shared memory.
#pragma once

#include <cuda_runtime.h>

#include <gpuslice/gpuslice.h>
#include <gpuslice/detail/worker.cuh>
#include <tuple>
#include <utility>

namespace gpuslice {

/// First parameter of each kernel written this way. gpuslice_launch() fills it in. With launch_args{} the kernel is an
/// ordinary one: kernel<<<grid, threads>>>(gpuslice::launch_args{}, ...).
using launch_args = gpuctl::ptx::LaunchArgs;

/// The grid that was launched, in block-tasks.
__device__ inline dim3 grid(const launch_args& args) {
  return detail::is_plain(args) ? gridDim : dim3(args.grid_x, args.grid_y, args.grid_z);
}

/// Calls body(dim3 block) for one block-task after another, until none is left or this thread block must leave. All
/// threads call it, once, from the kernel itself. Code after it runs once per thread block, not once per block-task.
///
/// The barriers: after the first one, all threads read what the leader published. The leader publishes in two places
/// alternately, since slow threads may still read the other place. The second barrier keeps apart block-tasks that use
/// the same shared memory.
template <class Body>
__device__ __forceinline__ void for_each_block_task(const launch_args& args, Body&& body) {
  __shared__ detail::worker_state worker;
  const bool leads = (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
  const bool plain = detail::is_plain(args);
  bool at_once = false;
  unsigned turn = 0;
  if (leads && !plain) at_once = detail::enter(args, worker);
  while (true) {
    uint2 tasks = {0, 1};
    if (!plain) {
      if (leads) worker.published[turn] = detail::claim(args, worker, at_once);
      at_once = false;
      __syncthreads();
      tasks = worker.published[turn];
      turn ^= 1;
      if (tasks.x >= args.total) break;
    }
    while (tasks.x < tasks.y) {
      body(plain ? dim3(blockIdx) : detail::block_index(args, tasks.x));
      if (plain) return;
      if ((tasks.x += 1u << (args.order & 0xff)) < tasks.y) __syncthreads();
    }
  }
  if (leads) detail::leave(args, worker);
}

/// Launches a kernel written this way in the current context: gpuslice_launch() for programs that use the CUDA runtime.
/// Returns 0, a negative gpuslice_error, or a positive CUDA error. `arguments` are the kernel's arguments after
/// launch_args.
template <class... Parameters, class... Arguments>
int launch(void (*kernel)(launch_args, Parameters...), dim3 grid, dim3 threads, std::size_t shared_bytes,
           cudaStream_t stream, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "as many arguments as the kernel has behind launch_args");
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  if (stream == nullptr) stream = cudaStreamPerThread;
#endif
  cudaFunction_t function = nullptr;
  const cudaError_t found = cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel));
  if (found != cudaSuccess) return static_cast<int>(found);
  const gpuslice_launch_config config = {GPUSLICE_DEVICE_ABI,
                                         {grid.x, grid.y, grid.z},
                                         {threads.x, threads.y, threads.z},
                                         static_cast<uint32_t>(shared_bytes),
                                         stream};
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return std::apply(
      [&](auto&... value) {
        void* params[] = {static_cast<void*>(&value)..., nullptr};
        return gpuslice_launch(function, &config, params);
      },
      values);
}

}  // namespace gpuslice
