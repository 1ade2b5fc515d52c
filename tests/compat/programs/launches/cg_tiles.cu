// compat: tiled, labelled and binary partitions, coalesced groups, cg::reduce and scans
// soft: yes
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "mix.h"

namespace cg = cooperative_groups;

namespace {

constexpr int kResults = 8;

__global__ void groups(const unsigned* in, unsigned* out, int count) {
  const cg::thread_block block = cg::this_thread_block();
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  unsigned x = in[i];
  unsigned* of = out + static_cast<std::size_t>(i) * kResults;

  const auto quarter = cg::tiled_partition<8>(block);
  of[0] = cg::reduce(quarter, x, cg::plus<unsigned>());
  of[1] = cg::reduce(quarter, x, cg::greater<unsigned>()) ^ quarter.meta_group_rank();
  const auto warp = cg::tiled_partition<32>(block);
  of[2] = cg::inclusive_scan(warp, x) + warp.shfl_xor(x, 5);
  of[3] = cg::exclusive_scan(warp, x & 0xff);
  const auto labelled = cg::labeled_partition(warp, static_cast<int>(x % 3));
  of[4] = cg::reduce(labelled, x, cg::bit_xor<unsigned>()) + labelled.size();
  const auto parity = cg::binary_partition(warp, (x & 1) != 0);
  of[5] = cg::reduce(parity, x, cg::less<unsigned>()) + parity.thread_rank();
  of[6] = 0;
  warp.sync();
  if (x % 5 < 2) {
    const cg::coalesced_group active = cg::coalesced_threads();
    of[6] = active.size() * 100 + active.thread_rank() + active.shfl(x, 0);
  }
  warp.sync();
  of[7] = warp.match_any(x % 4) ^ warp.ballot(x & 2) ^ block.thread_rank();
}

}  // namespace

int main() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 18, launches = small ? 1 : 30;
  std::vector<unsigned> host(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = mix(static_cast<unsigned>(i), 3, 4);
  unsigned *in = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&in, host.size() * sizeof(unsigned)));
  CHECK(cudaMalloc(&out, host.size() * kResults * sizeof(unsigned)));
  CHECK(cudaMemcpy(in, host.data(), host.size() * sizeof(unsigned), cudaMemcpyHostToDevice));
  for (int i = 0; i < launches; ++i) groups<<<blocks_for(count), 256>>>(in, out, count);
  CHECK(cudaGetLastError());
  std::vector<unsigned> got(host.size() * kResults);
  CHECK(cudaMemcpy(got.data(), out, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    unsigned sum = 0, scan = 0, exclusive = 0, mixed = 0, alike = 0;
    for (std::size_t at = i / 8 * 8; at < i / 8 * 8 + 8; ++at) sum += host[at];
    for (std::size_t at = i / 32 * 32; at <= i; ++at) scan += host[at], exclusive += at < i ? host[at] & 0xff : 0;
    for (std::size_t at = i / 32 * 32; at < i / 32 * 32 + 32; ++at)
      if (host[at] % 3 == host[i] % 3) mixed ^= host[at], ++alike;
    const unsigned* of = got.data() + i * kResults;
    wrong += of[0] != sum || of[2] != scan + host[i ^ 5] || of[3] != exclusive || of[4] != mixed + alike;
  }
  std::printf("groups %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("groups", got.data(), got.size() * sizeof(unsigned));
  return 0;
}
