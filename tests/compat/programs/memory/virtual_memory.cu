// compat: virtual memory management: a reserved range that grows by mapped pieces
// libs: cuda
#include <cuda.h>

#include "advance.h"

int main() {
  CHECK(cudaFree(nullptr));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t piece = 0;
  CHECK_ZERO(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const int pieces = 8, steps = work_steps(), rounds = scaled(40, 1);
  const int each = static_cast<int>(piece / sizeof(std::uint32_t));
  CUdeviceptr range = 0;
  CHECK_ZERO(cuMemAddressReserve(&range, piece * pieces, 0, 0, 0));
  auto* values = reinterpret_cast<std::uint32_t*>(range);
  CUmemGenericAllocationHandle handles[pieces];
  for (int i = 0; i < pieces; ++i) {
    CHECK_ZERO(cuMemCreate(&handles[i], piece, &properties, 0));
    CHECK_ZERO(cuMemMap(range + i * piece, piece, 0, handles[i], 0));
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_ZERO(cuMemSetAccess(range + i * piece, piece, &access, 1));
    CHECK(cudaMemset(values + static_cast<std::size_t>(each) * i, 0, piece));
    const int used = scaled(each, 256);
    for (int round = 0; round < rounds; ++round) {
      for (int k = 0; k <= i; ++k) launch_advance(values + static_cast<std::size_t>(each) * k, used, steps, round);
    }
    std::vector<std::uint32_t> last = on_host(values + static_cast<std::size_t>(each) * i, used);
    must_have_advanced("last piece", last.data(), used, steps, rounds);
    print_hash("last piece", last.data(), last.size() * sizeof(std::uint32_t));
    print_device_hash("first piece", values, used);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK_ZERO(cuMemUnmap(range, piece * pieces));
  for (CUmemGenericAllocationHandle handle : handles) CHECK_ZERO(cuMemRelease(handle));
  CHECK_ZERO(cuMemAddressFree(range, piece * pieces));
}
