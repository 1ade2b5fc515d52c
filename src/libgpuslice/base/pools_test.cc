#include "libgpuslice/base/pools.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

TEST(Pools, AreWhereTheyWereMade) {
  Pools pools;
  const auto pool = reinterpret_cast<CUmemoryPool>(8), other = reinterpret_cast<CUmemoryPool>(16);
  EXPECT_EQ(pools.device_of(pool), std::nullopt);
  pools.add(pool, {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1});
  pools.add(other, {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 1});
  EXPECT_EQ(pools.device_of(pool), 1);
  EXPECT_EQ(pools.device_of(other), Pools::kOnNoDevice);
  pools.remove(pool);
  EXPECT_EQ(pools.device_of(pool), std::nullopt);
}

}  // namespace
}  // namespace gpuslice
