// Which SMs (%smid) do the parts of a GPU have, and can a part be made of groups of eight and of pairs? Prints
// - for the division in groups of eight and for that in pairs: the SMs of each group, in the driver's order;
// - whether one part can be made of twelve groups of eight and a pair of the thirteenth (98 SMs), which clusters run in
//   it, and its SMs. A group is divided in pairs by way of a part of its own, as the driver asks for;
// - the same for the pairs of a group alone, beside other pairs of the same group.
//
//   g++ -O1 -std=c++17 part_sms.cc -o part_sms -I/usr/local/cuda/include -lcuda
//   ./part_sms
#include <cuda.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "check.h"
#include "part.h"

static const char* kText = R"(
.version 7.8
.target sm_90
.address_size 64
.visible .entry where(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %d<4>; .reg .pred %p;
  ld.param.u64 %d0, [out];
  mov.u32 %r0, %smid;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d0, %d0, %d1;
  mov.u32 %r1, 1;
  st.global.u32 [%d0], %r1;
  mov.u64 %d2, %globaltimer;
again:
  mov.u64 %d3, %globaltimer;
  sub.u64 %d3, %d3, %d2;
  setp.lt.u64 %p, %d3, 50000;
  @%p bra again;
  ret;
}
)";

constexpr unsigned kSms = 256;

static CUfunction g_where;
static CUdeviceptr g_seen;

/// The SMs on which blocks were seen, as ranges.
static std::string sms_of(const Part& part, unsigned cluster = 1) {
  CHECK(cuMemsetD8(g_seen, 0, kSms * 4));
  CHECK(cuCtxSynchronize());
  void* params[] = {&g_seen};
  const CUresult result = launch_in_clusters(g_where, params, part.stream, 2 * kSms, cluster);
  if (result != CUDA_SUCCESS) return "refused";
  if (cuStreamSynchronize(part.stream) != CUDA_SUCCESS) return "failed";
  std::vector<unsigned> seen(kSms);
  CHECK(cuMemcpyDtoH(seen.data(), g_seen, kSms * 4));
  std::string text;
  unsigned count = 0;
  for (unsigned sm = 0; sm < kSms; ++sm) {
    if (!seen[sm]) continue;
    const unsigned first = sm;
    while (sm + 1 < kSms && seen[sm + 1]) ++sm;
    count += sm - first + 1;
    text += " " + std::to_string(first) + (sm > first ? "-" + std::to_string(sm) : "");
  }
  return std::to_string(count) + " SMs:" + text;
}

static Groups split(CUdevResource from, unsigned flags, unsigned least) {
  CUdevResource rest{};
  unsigned count = kSms;
  Groups groups(count);
  if (cuDevSmResourceSplitByCount(groups.data(), &count, &from, &rest, flags, least) != CUDA_SUCCESS) count = 0;
  groups.resize(count);
  if (count > 0 && rest.sm.smCount > 0) groups.push_back(rest);
  return groups;
}

static void say_each(const Groups& groups, const char* what) {
  std::printf("%s: %zu groups\n", what, groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Part part;
    const CUresult result = make_part({groups[i]}, &part);
    std::printf("  %zu, of %u: %s\n", i, groups[i].sm.smCount,
                result == CUDA_SUCCESS ? sms_of(part).c_str() : ("refused, " + std::to_string(result)).c_str());
    destroy(part);
  }
}

static void say_mixed(const Groups& groups, const char* what) {
  Part part;
  const CUresult result = make_part(groups, &part);
  std::printf("%s: ", what);
  if (result != CUDA_SUCCESS) {
    std::printf("refused, %d\n", result);
  } else {
    std::printf("%s\n", sms_of(part).c_str());
    for (unsigned cluster = 2; cluster <= 8; cluster *= 2)
      std::printf("  clusters of %u: %s\n", cluster, sms_of(part, cluster).c_str());
  }
  destroy(part);
}

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  CUdevice device;
  CUmodule module;
  CHECK(use_first_gpu());
  CHECK(cuCtxGetDevice(&device));
  CHECK(cuModuleLoadData(&module, kText));
  CHECK(cuModuleGetFunction(&g_where, module, "where"));
  CHECK(cuMemAlloc(&g_seen, kSms * 4));
  CUdevResource all{};
  CHECK(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM));
  const Groups eights = split(all, 0, 8), pairs = split(all, 1, 2);
  say_each(eights, "groups of eight");
  say_each(pairs, "pairs");
  const std::size_t most = std::min<std::size_t>(12, eights.size() - 1);
  Part whole;
  CHECK(make_part({eights[most]}, &whole));
  CUdevResource its{};
  CHECK(cuGreenCtxGetDevResource(whole.context, &its, CU_DEV_RESOURCE_TYPE_SM));
  const Groups of_group = split(its, 1, 2);
  std::printf("a group of eight has %zu pairs\n", of_group.size());
  if (!of_group.empty()) {
    say_mixed({of_group[0]}, "a pair of a group");
    if (of_group.size() > 2) say_mixed({of_group[0], of_group[2]}, "two pairs of a group");
    Groups mixed(eights.begin(), eights.begin() + static_cast<long>(most));
    mixed.push_back(of_group[0]);
    say_mixed(mixed, "groups of eight and a pair of the next one");
  }
  destroy(whole);
}
