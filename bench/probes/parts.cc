// What parts (green contexts) does the driver make of a GPU, and how long does making one take? Prints
// - for each way to divide the SMs: the groups, the SMs of each, what is left over, and which clusters run in a part of
//   all groups but one;
// - how long it takes to make a part and a stream of it, several times: with nothing in this process on the GPU, and
//   while a kernel of this process spins for SPIN_MS. Started beside another client of MPS that keeps the GPU busy, it
//   says whether other clients are waited for.
//
//   g++ -O1 -std=c++17 parts.cc -o parts -I/usr/local/cuda/include -lcuda
//   ./parts [SPIN_MS]
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "check.h"
#include "part.h"

static const char* kText = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 ns) {
  .reg .pred %p; .reg .b64 %d<4>;
  ld.param.u64 %d0, [ns];
  mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer;
  sub.u64 %d3, %d2, %d1;
  setp.lt.u64 %p, %d3, %d0;
  @%p bra again;
  ret;
}
)";

static CUfunction g_spin;

static CUresult launch(CUstream stream, unsigned blocks, unsigned cluster, unsigned long long ns) {
  void* params[] = {&ns};
  return launch_in_clusters(g_spin, params, stream, blocks, cluster);
}

/// The groups of at least `least` SMs. The rest is the last one.
static Groups divide(unsigned flags, unsigned least, bool say) {
  CUdevResource all{}, rest{};
  CUdevice device;
  CHECK(cuCtxGetDevice(&device));
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  unsigned count = 256;
  Groups groups(count);
  const CUresult result = cuDevSmResourceSplitByCount(groups.data(), &count, &all, &rest, flags, least);
  groups.resize(result == CUDA_SUCCESS ? count : 0);
  if (say) std::printf("flags %u, at least %u: ", flags, least);
  if (groups.empty()) {
    if (say) std::printf("refused, %d\n", result);
    return groups;
  }
  if (say) std::printf("%u groups of %u SMs, %u left over;", count, groups[0].sm.smCount, rest.sm.smCount);
  if (rest.sm.smCount > 0) groups.push_back(rest);
  return groups;
}

static void clusters_in(const Groups& groups) {
  Part part;
  const CUresult made = make_part(Groups(groups.begin(), groups.end() - 1), &part);
  if (made != CUDA_SUCCESS) std::printf(" no part of all but one: %d", made);
  for (unsigned cluster = 1; made == CUDA_SUCCESS && cluster <= 8; cluster *= 2) {
    CUresult result = launch(part.stream, 8, cluster, 1000);
    if (result == CUDA_SUCCESS) result = cuStreamSynchronize(part.stream);
    std::printf(" clusters of %u: %s", cluster, result == CUDA_SUCCESS ? "run;" : "refused;");
  }
  destroy(part);
}

static void time_making(const Groups& groups, const char* when, unsigned long long spin_ns) {
  std::vector<double> took;
  for (unsigned n = 0; n < 6; ++n) {
    if (spin_ns > 0) CHECK(launch(nullptr, 1, 1, spin_ns));
    const Groups some(groups.begin(), groups.begin() + 1 + n % static_cast<unsigned>(groups.size()));
    const auto begin = std::chrono::steady_clock::now();
    Part part;
    CHECK(make_part(some, &part));
    took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    CHECK(cuCtxSynchronize());
    destroy(part);
  }
  std::sort(took.begin(), took.end());
  std::printf("making a part %s: %.2f ms (%.2f to %.2f)\n", when, took[took.size() / 2], took.front(), took.back());
}

int main(int argc, char** argv) {
  const unsigned long long spin_ms = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 50;
  CUmodule module;
  CHECK(use_first_gpu());
  CHECK(cuModuleLoadData(&module, kText));
  CHECK(cuModuleGetFunction(&g_spin, module, "spin"));
  for (unsigned flags = 0; flags < 4; ++flags) {
    for (const unsigned least : {2u, 8u}) {
      const Groups groups = divide(flags, least, true);
      if (groups.size() > 1) clusters_in(groups);
      if (!groups.empty()) std::printf("\n");
    }
  }
  const Groups groups = divide(0, 8, false);
  time_making(groups, "with nothing of this process on the GPU", 0);
  time_making(groups, "while a kernel of this process spins", spin_ms * 1'000'000);
}
