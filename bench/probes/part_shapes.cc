// Which SMs does a part of a GPU have, made in one way or another, and which clusters run there at a time?
//
//   g++ -O1 -std=c++20 part_shapes.cc ../../src/libgpuslice/base/pair_order.cc -o part_shapes -I../../src
//       -I/usr/local/cuda/include -lcuda
//   ./part_shapes SPEC...
//
// prints for each SPEC: the SMs (%smid; under MPS that counts the SMs that a client has, so it does not say which) and,
// for clusters of each size, whose blocks take a whole SM each, on how many SMs they are at a time. SPEC:
//   all             all that the process has
//   "pairs A B"     pairs from the A-th on, without the B-th; "groups A B": groups of eight
//   "ordered A B"   pairs in the order of groups (libgpuslice/base/pair_order.h)
//   "sixteens A B"  groups of sixteen, CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE
//   "one FLAGS MIN" the first group of cuDevSmResourceSplitByCount; "rest FLAGS MIN": what that leaves
// As a library (-shared -fPIC) it has green_stream(SPEC), a stream of such a part, for a program that measures in it.
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "check.h"
#include "libgpuslice/base/pair_order.h"
#include "part.h"

static const char* kText = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry where(.param .u64 out, .param .u64 ns) {
  .reg .b32 %r<3>; .reg .b64 %d<6>; .reg .pred %p;
  ld.param.u64 %d0, [out];
  ld.param.u64 %d4, [ns];
  mov.u32 %r0, %smid;
  mul.wide.u32 %d1, %r0, 8;
  add.u64 %d0, %d0, %d1;
  mov.u64 %d2, %globaltimer;
  atom.global.min.u64 %d5, [%d0], %d2;
again:
  mov.u64 %d3, %globaltimer;
  sub.u64 %d3, %d3, %d2;
  setp.lt.u64 %p, %d3, %d4;
  @%p bra again;
  ret;
}
)";

constexpr unsigned kSms = 256, kWholeSm = 200 * 1024;  // bytes of shared memory
constexpr unsigned kBlockNs = 5'000'000;
static CUfunction g_where;
static CUdeviceptr g_seen;
static CUdevResource g_all;

static Part make(const Groups& groups) {
  Part part;
  CHECK(make_part(groups, &part));
  return part;
}

static void say(const std::set<unsigned>& sms) {
  std::printf("%zu SMs:", sms.size());
  for (auto at = sms.begin(); at != sms.end();) {
    const unsigned first = *at;
    unsigned last = first;
    while (++at != sms.end() && *at == last + 1) last = *at;
    std::printf(last > first ? " %u-%u" : " %u", first, last);
  }
  std::printf("\n");
}

/// The SMs on which blocks began in the first half of the time that one takes.
static std::set<unsigned> seen_of(CUstream stream, unsigned blocks, unsigned cluster) {
  CHECK(cuMemsetD8(g_seen, 0xff, kSms * 8));
  CHECK(cuCtxSynchronize());
  std::size_t ns = kBlockNs;
  void* params[] = {&g_seen, &ns};
  if (launch_in_clusters(g_where, params, stream, blocks, cluster, kWholeSm) != CUDA_SUCCESS) return {};
  if (cuStreamSynchronize(stream) != CUDA_SUCCESS) return {};
  std::vector<unsigned long long> began(kSms);
  CHECK(cuMemcpyDtoH(began.data(), g_seen, kSms * 8));
  const unsigned long long first = *std::min_element(began.begin(), began.end());
  std::set<unsigned> found;
  for (unsigned sm = 0; sm < kSms; ++sm)
    if (began[sm] < first + kBlockNs / 2) found.insert(sm);
  return found;
}

static void begin() {
  CUdevice device;
  CUmodule module;
  CHECK(use_first_gpu());
  CHECK(cuCtxGetDevice(&device));
  CHECK(cuModuleLoadData(&module, kText));
  CHECK(cuModuleGetFunction(&g_where, module, "where"));
  CHECK(cuFuncSetAttribute(g_where, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kWholeSm));
  CHECK(cuFuncSetAttribute(g_where, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  CHECK(cuMemAlloc(&g_seen, kSms * 8));
  CHECK(cuDeviceGetDevResource(device, &g_all, CU_DEV_RESOURCE_TYPE_SM));
}

static Groups split(unsigned flags, unsigned least, unsigned most, CUdevResource* rest) {
  Groups groups(most);
  CUdevResource all = g_all;
  CHECK(cuDevSmResourceSplitByCount(groups.data(), &most, &all, rest, flags, least));
  groups.resize(most);
  return groups;
}

static Groups groups_of(const std::string& spec) {
  std::istringstream words(spec);
  std::string kind;
  unsigned a = 0, b = 0;
  words >> kind >> a >> b;
  if (kind == "all") return {g_all};
  CUdevResource rest{};
  if (kind == "one" || kind == "rest") {
    Groups one = split(a, b, 1, &rest);
    return kind == "one" ? one : Groups{rest};
  }
  const bool sixteens = kind == "sixteens", ordered = kind == "ordered";
  Groups groups = split(sixteens ? 2 : 0, sixteens ? 16 : 8, kSms, &rest);
  if (rest.sm.smCount > 0) groups.push_back(rest);
  if (ordered || kind == "pairs") {
    const Groups pairs = split(CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING, 2, kSms, &rest);
    groups = ordered ? gpuslice::in_order_of_groups(pairs, groups) : pairs;
  }
  if (b > groups.size()) std::printf("only %zu, ", groups.size());
  return b > groups.size() ? Groups{g_all} : Groups(groups.begin() + a, groups.begin() + b);
}

extern "C" CUstream green_stream(const char* spec) {
  begin();
  return make(groups_of(spec)).stream;
}

static void show(const std::string& spec) {
  const Groups groups = groups_of(spec);
  unsigned count = 0;
  for (const CUdevResource& group : groups) count += group.sm.smCount;
  const Part part = make(groups);
  std::printf("%s: %u, ", spec.c_str(), count);
  say(seen_of(part.stream, count, 1));
  std::printf("  clusters of");
  for (unsigned cluster = 2; cluster <= 16; cluster *= 2) {
    const auto sms = seen_of(part.stream, kSms, cluster);
    std::printf(" %u: %zu at once;", cluster, sms.size());
  }
  std::printf("\n");
}

int main(int count, char** arguments) {
  begin();
  for (int i = 1; i < count; ++i) show(arguments[i]);
}
