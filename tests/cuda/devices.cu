// A program that uses all the devices that it sees. Each line of the input is a command; each is answered with one
// line.
//
//   ask              of each device: its bus id, the number of SMs by properties, by attribute and by the grid that the
//                    occupancy calculator proposes, and the memory in all and free; devices are separated by ";"
//   hold D BYTES     allocates on device D: "ok" or "refused"
//   free D           frees what was allocated last there
//   work ROUNDS B I  ROUNDS times a kernel of B blocks of I iterations on each device, all devices at once, with the
//   results
//                    compared: "DEVICE:RIGHT ..."
//   begin D B I      the same on device D alone, again and again, until
//   end D            "RIGHT of ROUNDS"
//   where D          a kernel that has no other form: on how many SMs of device D its blocks were
//   pass             a number goes round all the devices, kernels and peer copies by turns: "ok" or "wrong"
#include <atomic>
#include <bit>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "program.h"

__global__ void work(unsigned* out, unsigned iterations, unsigned seed) {
  unsigned value = seed + blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned i = 0; i < iterations; ++i) value = value * 1664525u + 1013904223u;
  out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__device__ unsigned step;

__global__ void add_step(unsigned* value) {
  *value += step;
}

/// It asks for its grid's number, which only its original form can answer.
__global__ void where_am_i(unsigned* seen) {
  if (threadIdx.x != 0) return;
  unsigned long long grid = 0;
  unsigned sm = 0;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  __nanosleep(1'000'000);
  atomicOr(seen, grid == ~0ull ? 0u : 1u << sm);
}

namespace {

constexpr unsigned kThreads = 64;

/// What it holds of a device.
std::map<int, std::vector<void*>> held;

void use(int device) {
  CUDA_CHECK(cudaSetDevice(device));
}

int count() {
  int devices = 0;
  CUDA_CHECK(cudaGetDeviceCount(&devices));
  return devices;
}

void ask() {
  for (int device = 0; device < count(); ++device) {
    cudaDeviceProp properties{};
    char bus_id[32] = {};
    int attribute = 0, grid = 0, block = 0, per_sm = 0;
    std::size_t free = 0, total = 0;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    CUDA_CHECK(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, device));
    CUDA_CHECK(cudaDeviceGetAttribute(&attribute, cudaDevAttrMultiProcessorCount, device));
    use(device);
    CUDA_CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, work, 0, 0));
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, work, block, 0));
    CUDA_CHECK(cudaMemGetInfo(&free, &total));
    std::printf("bus=%s properties=%d attribute=%d grid=%d memory=%zu total=%zu free=%zu;", bus_id,
                properties.multiProcessorCount, attribute, grid / per_sm, properties.totalGlobalMem, total, free);
  }
  std::printf("\n");
}

/// True if the results of all blocks are right.
bool round(unsigned blocks, unsigned iterations, unsigned seed, cudaStream_t stream, unsigned* out) {
  std::vector<unsigned> found(blocks * kThreads);
  CUDA_CHECK(cudaMemsetAsync(out, 0, found.size() * sizeof(unsigned), stream));
  work<<<blocks, kThreads, 0, stream>>>(out, iterations, seed);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpyAsync(found.data(), out, found.size() * sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < found.size(); ++i) {
    unsigned value = seed + i;
    for (unsigned k = 0; k < iterations; ++k) value = value * 1664525u + 1013904223u;
    if (found[i] != value) return false;
  }
  return true;
}

/// Rounds on one device in a thread of their own, until the number is reached or somebody says so.
class Worker {
 public:
  Worker(int device, int rounds, unsigned blocks, unsigned iterations)
      : thread_([=, this] { run(device, rounds, blocks, iterations); }) {}

  void stop() { stopped_ = true; }
  void join() { thread_.join(); }
  int right() const { return right_; }
  int rounds() const { return rounds_; }

 private:
  void run(int device, int rounds, unsigned blocks, unsigned iterations) {
    use(device);
    cudaStream_t stream = nullptr;
    unsigned* out = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&out, blocks * kThreads * sizeof(unsigned)));
    for (; !stopped_ && rounds_ != rounds; ++rounds_)
      right_ += round(blocks, iterations, static_cast<unsigned>(1000 * device + rounds_), stream, out);
    CUDA_CHECK(cudaFree(out));
    CUDA_CHECK(cudaStreamDestroy(stream));
  }

  std::atomic<bool> stopped_{false};
  int rounds_ = 0, right_ = 0;
  std::thread thread_;
};

void work_on_all(int rounds, unsigned blocks, unsigned iterations) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (int device = 0; device < count(); ++device)
    workers.push_back(std::make_unique<Worker>(device, rounds, blocks, iterations));
  for (const auto& worker : workers) worker->join();
  for (std::size_t device = 0; device < workers.size(); ++device)
    std::printf("%zu:%d ", device, workers[device]->right());
  std::printf("\n");
}

void where(int device) {
  use(device);
  unsigned *seen = nullptr, mask = 0;
  CUDA_CHECK(cudaMalloc(&seen, sizeof mask));
  CUDA_CHECK(cudaMemset(seen, 0, sizeof mask));
  where_am_i<<<64, 1024>>>(seen);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaMemcpy(&mask, seen, sizeof mask, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(seen));
  std::printf("%d\n", std::popcount(mask));
}

void pass() {
  const int devices = count();
  std::vector<unsigned*> value(static_cast<std::size_t>(devices));
  unsigned expected = 7, found = 0;
  for (int device = 0; device < devices; ++device) {
    const unsigned own_step = 10u + static_cast<unsigned>(device);
    use(device);
    CUDA_CHECK(cudaMalloc(&value[device], sizeof(unsigned)));
    CUDA_CHECK(cudaMemcpyToSymbol(step, &own_step, sizeof own_step));
  }
  use(0);
  CUDA_CHECK(cudaMemcpy(value[0], &expected, sizeof expected, cudaMemcpyHostToDevice));
  for (int turn = 0; turn < 3 * devices; ++turn) {
    const int here = turn % devices, next = (turn + 1) % devices;
    use(here);
    add_step<<<1, 1>>>(value[here]);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaMemcpyPeer(value[next], next, value[here], here, sizeof(unsigned)));
    expected += 10u + static_cast<unsigned>(here);
  }
  use(0);
  CUDA_CHECK(cudaMemcpy(&found, value[0], sizeof found, cudaMemcpyDeviceToHost));
  for (unsigned* one : value) CUDA_CHECK(cudaFree(one));
  std::printf("%s\n", found == expected ? "ok" : "wrong");
}

}  // namespace

int main() {
  std::map<int, std::unique_ptr<Worker>> workers;
  for (std::string command; std::cin >> command;) {
    int device = 0, rounds = 0;
    unsigned blocks = 0, iterations = 0;
    std::size_t bytes = 0;
    if (command == "ask") ask();
    if (command == "pass") pass();
    if (command == "where" && std::cin >> device) where(device);
    if (command == "work" && std::cin >> rounds >> blocks >> iterations) work_on_all(rounds, blocks, iterations);
    if (command == "begin" && std::cin >> device >> blocks >> iterations) {
      workers[device] = std::make_unique<Worker>(device, -1, blocks, iterations);
      std::printf("ok\n");
    }
    if (command == "end" && std::cin >> device) {
      workers[device]->stop();
      workers[device]->join();
      std::printf("%d of %d\n", workers[device]->right(), workers[device]->rounds());
    }
    if (command == "hold" && std::cin >> device >> bytes) {
      use(device);
      void* memory = nullptr;
      const bool got = cudaMalloc(&memory, bytes) == cudaSuccess;
      if (got) held[device].push_back(memory);
      std::printf("%s\n", got ? "ok" : "refused");
    }
    if (command == "free" && std::cin >> device) {
      CUDA_CHECK(cudaFree(held[device].back()));
      held[device].pop_back();
      std::printf("ok\n");
    }
    std::fflush(stdout);
  }
  return 0;
}
