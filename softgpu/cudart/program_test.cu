// A program as nvcc builds it, without knowledge of the software GPU. Exits with the number of failed checks.
#include <cassert>
#include <cstdio>
#include <cstring>
#include <future>
#include <thread>
#include <vector>

namespace {

int failures = 0;

#define CHECK(condition)                                           \
  do {                                                             \
    if (!(condition)) {                                            \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
      ++failures;                                                  \
    }                                                              \
  } while (false)

__constant__ int factor;
__device__ int touched;
__managed__ int managed_total;

__global__ void scale(int* data, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  data[i] *= factor;
  atomicAdd(&touched, 1);
}

template <class T>
__global__ void sum_blocks(const T* data, int count, T* sums) {
  extern __shared__ unsigned char raw[];
  T* partial = reinterpret_cast<T*>(raw);
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < count ? data[i] : T(0);
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) partial[threadIdx.x] += partial[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = partial[0];
    atomicAdd(&managed_total, 1);
  }
}

void test_device() {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count == 1);
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0) == cudaSuccess);
  CHECK(prop.major == 9 && prop.multiProcessorCount > 0 && prop.maxThreadsPerMultiProcessor == 2048);
  CHECK(cudaSetDevice(1) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

void test_symbols() {
  constexpr int kCount = 1000;
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  int* data = nullptr;
  CHECK(cudaMalloc(&data, kCount * sizeof(int)) == cudaSuccess);
  CHECK(cudaMemcpy(data, host.data(), kCount * sizeof(int), cudaMemcpyHostToDevice) == cudaSuccess);
  const int three = 3;
  CHECK(cudaMemcpyToSymbol(factor, &three, sizeof three) == cudaSuccess);
  scale<<<8, 128>>>(data, kCount);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpy(host.data(), data, kCount * sizeof(int), cudaMemcpyDeviceToHost) == cudaSuccess);
  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += host[i] != 3 * i;
  CHECK(wrong == 0);
  int seen = 0;
  CHECK(cudaMemcpyFromSymbol(&seen, touched, sizeof seen) == cudaSuccess && seen == kCount);
  CHECK(cudaFree(data) == cudaSuccess);
}

void test_streams() {
  constexpr int kCount = 512;
  float* host = nullptr;
  float* data = nullptr;
  float* sums = nullptr;
  cudaStream_t stream;
  cudaEvent_t begin;
  cudaEvent_t end;
  CHECK(cudaMallocHost(&host, kCount * sizeof(float)) == cudaSuccess);
  CHECK(cudaMalloc(&data, kCount * sizeof(float)) == cudaSuccess);
  CHECK(cudaMallocManaged(&sums, 4 * sizeof(float)) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaEventCreate(&begin) == cudaSuccess && cudaEventCreate(&end) == cudaSuccess);
  for (int i = 0; i < kCount; ++i) host[i] = 1.0f;
  cudaStreamAttrValue attribute{};
  attribute.priority = -2;
  CHECK(cudaStreamSetAttribute(stream, cudaLaunchAttributePriority, &attribute) == cudaSuccess);
  attribute.priority = 0;
  CHECK(cudaStreamGetAttribute(stream, cudaLaunchAttributePriority, &attribute) == cudaSuccess &&
        attribute.priority == -2);
  CHECK(cudaStreamCopyAttributes(stream, stream) == cudaSuccess);
  CHECK(cudaEventRecord(begin, stream) == cudaSuccess);
  CHECK(cudaMemcpyAsync(data, host, kCount * sizeof(float), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  sum_blocks<<<4, 128, 128 * sizeof(float), stream>>>(data, kCount, sums);
  CHECK(cudaEventRecord(end, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  for (int i = 0; i < 4; ++i) CHECK(sums[i] == 128.0f);
  CHECK(managed_total == 4);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess && milliseconds >= 0);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaFreeHost(host) == cudaSuccess && cudaFree(data) == cudaSuccess && cudaFree(sums) == cudaSuccess);
}

void test_graphs() {
  constexpr int kCount = 300;
  int* host = nullptr;
  int* data = nullptr;
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  CHECK(cudaMallocHost(&host, kCount * sizeof(int)) == cudaSuccess);
  CHECK(cudaMalloc(&data, kCount * sizeof(int)) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  for (int i = 0; i < kCount; ++i) host[i] = i;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaMemcpyAsync(data, host, kCount * sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  scale<<<4, 128, 0, stream>>>(data, kCount);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMemcpyAsync(host, data, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess && host[2] == 2);
  for (int i = 0; i < 3; ++i) CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == 27 * i);  // the factor is 3
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);

  int count = kCount;
  void* arguments[] = {&data, &count};
  cudaKernelNodeParams kernel = {};
  kernel.func = reinterpret_cast<void*>(scale);
  kernel.gridDim = dim3(4);
  kernel.blockDim = dim3(128);
  kernel.kernelParams = arguments;
  cudaMemsetParams set = {};
  set.dst = data;
  set.value = 5;
  set.elementSize = 4;
  set.width = kCount;
  set.height = 1;
  cudaGraphNode_t nodes[3];
  CHECK(cudaGraphCreate(&graph, 0) == cudaSuccess);
  CHECK(cudaGraphAddMemsetNode(&nodes[0], graph, nullptr, 0, &set) == cudaSuccess);
  CHECK(cudaGraphAddKernelNode(&nodes[1], graph, &nodes[0], 1, &kernel) == cudaSuccess);
  CHECK(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, host, data, kCount * sizeof(int),
                                 cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  count = 100;
  CHECK(cudaGraphExecKernelNodeSetParams(exec, nodes[1], &kernel) == cudaSuccess);
  CHECK(cudaGraphLaunch(exec, stream) == cudaSuccess && cudaStreamSynchronize(stream) == cudaSuccess);
  for (int i = 0; i < kCount; ++i) CHECK(host[i] == (i < 100 ? 15 : 5));
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess && cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaFreeHost(host) == cudaSuccess && cudaFree(data) == cudaSuccess);
}

void test_launch_queries() {
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, scale, 256, 0) == cudaSuccess && blocks == 8);
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, scale) == cudaSuccess && attributes.maxThreadsPerBlock == 1024);
  CHECK(cudaFuncSetAttribute(sum_blocks<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 * 1024) ==
        cudaSuccess);
  scale<<<1, 2048>>>(nullptr, 0);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  cudaLaunchConfig_t config = {};
  config.gridDim = 1;
  config.blockDim = 32;
  CHECK(cudaLaunchKernelEx(&config, scale, static_cast<int*>(nullptr), 0) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  config.blockDim = 2048;
  CHECK(cudaLaunchKernelEx(&config, scale, static_cast<int*>(nullptr), 0) == cudaErrorInvalidConfiguration);
  int* data = nullptr;
  int count = 0;
  void* values[] = {&data, &count};
  CHECK(cudaLaunchCooperativeKernel(scale, dim3(1), dim3(2048), values) == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
}

__global__ void fail(int how) {
  if (how == 0) __trap();
  assert(how != 1);
}

__global__ void sum_grid(int* counts, int* result) {
  if (threadIdx.x == 0) atomicAdd(result, counts[blockIdx.x]);
}

/// A fault stays until the device is reset; then the same program goes on. `how` is the kernel's parameter.
void test_fault(int how, cudaError_t expected) {
  int* data = nullptr;
  CHECK(cudaMalloc(&data, 4) == cudaSuccess && cudaGetLastError() == cudaSuccess);
  fail<<<1, 1>>>(how);
  CHECK(cudaDeviceSynchronize() == expected);
  CHECK(cudaPeekAtLastError() == expected);
  CHECK(cudaGetLastError() == expected);
  CHECK(cudaGetLastError() == expected);
  CHECK(cudaFree(data) == expected && cudaMalloc(&data, 4) == expected);
  fail<<<1, 1>>>(7);
  CHECK(cudaGetLastError() == expected);
  std::thread([&] { CHECK(cudaDeviceSynchronize() == expected); }).join();
  CHECK(std::strcmp(cudaGetErrorName(expected), "unrecognized error code") != 0);

  std::promise<void> reset, used;
  std::thread other([&] {
    CHECK(cudaDeviceSynchronize() == expected);
    used.set_value();
    reset.get_future().wait();
    CHECK(cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
  });
  used.get_future().wait();
  CHECK(cudaDeviceReset() == cudaSuccess);
  reset.set_value();
  other.join();
  CHECK(cudaGetLastError() == cudaSuccess);
  fail<<<1, 1>>>(7);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

void test_cooperative() {
  int* data = nullptr;
  CHECK(cudaMallocManaged(&data, 5 * sizeof(int)) == cudaSuccess);
  for (int i = 0; i < 5; ++i) data[i] = i < 4 ? i : 0;
  int* result = data + 4;
  void* arguments[] = {&data, &result};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(sum_grid), 4, 32, arguments, 0, nullptr) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess && *result == 6);
  CHECK(cudaFree(data) == cudaSuccess);
}

void test_3d() {
  const cudaExtent extent = make_cudaExtent(20, 3, 2);
  cudaPitchedPtr box = {};
  CHECK(cudaMalloc3D(&box, extent) == cudaSuccess && box.pitch >= 20);
  CHECK(cudaMemset3D(box, 7, extent) == cudaSuccess);
  char host[2][3][20] = {};
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = box;
  copy.dstPtr = make_cudaPitchedPtr(host, 20, 20, 3);
  copy.extent = make_cudaExtent(10, 3, 2);
  copy.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaMemcpy3D(&copy) == cudaSuccess);
  CHECK(host[0][0][9] == 7 && host[0][0][10] == 0 && host[1][2][9] == 7 && host[1][2][10] == 0);
  CHECK(cudaFree(box.ptr) == cudaSuccess);
}

}  // namespace

int main() {
  test_device();
  if (failures != 0) return failures;
  test_symbols();
  test_streams();
  test_graphs();
  test_launch_queries();
  test_cooperative();
  test_3d();
  test_fault(0, cudaErrorLaunchFailure);
  test_fault(1, cudaErrorAssert);
  return failures;
}
