#include <vector>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kChunk = 2 << 20;

class VirtualMemoryApi : public ApiTest {
 protected:
  void SetUp() override {
    ApiTest::SetUp();
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
    access_.location = properties_.location;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }

  CUmemGenericAllocationHandle create(std::size_t bytes) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(cuMemCreate(&handle, bytes, &properties_, 0));
    return handle;
  }

  std::size_t free_bytes() {
    std::size_t free = 0, total = 0;
    EXPECT_CU(cuMemGetInfo(&free, &total));
    return free;
  }

  CUresult store(CUdeviceptr address, unsigned value) {
    void* params[] = {&address, &value};
    EXPECT_CU(cuLaunchKernel(function("store"), 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    return cuCtxSynchronize();
  }

  CUmemAllocationProp properties_{};
  CUmemAccessDesc access_{};
};

TEST_F(VirtualMemoryApi, AVectorGrowsWhereItIs) {
  std::size_t granularity = 0;
  EXPECT_CU(cuMemGetAllocationGranularity(&granularity, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_EQ(granularity, kChunk);
  const std::size_t before = free_bytes();
  CUdeviceptr base = 0;
  ASSERT_CU(cuMemAddressReserve(&base, 64 * kChunk, 0, 0, 0));
  EXPECT_EQ(base % kChunk, 0U);
  EXPECT_EQ(free_bytes(), before);  // addresses cost nothing
  for (std::size_t chunks = 1; chunks <= 4; ++chunks) {
    const CUdeviceptr end = base + (chunks - 1) * kChunk;
    const CUmemGenericAllocationHandle handle = create(kChunk);
    ASSERT_CU(cuMemMap(end, kChunk, 0, handle, 0));
    EXPECT_CU(cuMemRelease(handle));
    ASSERT_CU(cuMemSetAccess(end, kChunk, &access_, 1));
    EXPECT_CU(cuMemsetD32(end, static_cast<unsigned>(chunks), kChunk / 4));
  }
  EXPECT_EQ(free_bytes(), before - 4 * kChunk);

  constexpr unsigned kWords = 4 * kChunk / 4 - 1024;  // across all borders
  std::vector<unsigned> host(kWords);
  EXPECT_CU(cuMemcpyDtoH(host.data(), base, kWords * 4));
  for (unsigned i = 0; i < kWords; ++i) ASSERT_EQ(host[i], i / (kChunk / 4) + 1);
  // Runs a kernel whose warps access both sides of a border.
  const CUdeviceptr border = base + kChunk - 512 * 4;
  unsigned count = 1024;
  void* params[] = {const_cast<CUdeviceptr*>(&border), const_cast<CUdeviceptr*>(&border),
                    const_cast<CUdeviceptr*>(&border), &count};
  EXPECT_CU(cuLaunchKernel(function("add"), 4, 1, 1, 256, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_CU(cuMemcpyDtoH(host.data(), border, 4096));
  EXPECT_EQ(host[511], 2U);
  EXPECT_EQ(host[512], 4U);

  EXPECT_EQ(cuMemAddressFree(base, 64 * kChunk), CUDA_ERROR_INVALID_VALUE);  // something is mapped
  EXPECT_CU(cuMemUnmap(base, 4 * kChunk));
  EXPECT_EQ(free_bytes(), before);
  EXPECT_CU(cuMemAddressFree(base, 64 * kChunk));
}

TEST_F(VirtualMemoryApi, OneMemoryAtTwoAddresses) {
  CUdeviceptr base = 0;
  ASSERT_CU(cuMemAddressReserve(&base, 4 * kChunk, 4 * kChunk, 0, 0));
  EXPECT_EQ(base % (4 * kChunk), 0U);
  const CUmemGenericAllocationHandle handle = create(kChunk);
  EXPECT_CU(cuMemMap(base, kChunk, 0, handle, 0));
  EXPECT_CU(cuMemMap(base + 2 * kChunk, kChunk, 0, handle, 0));
  EXPECT_EQ(cuMemMap(base, kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);  // taken
  EXPECT_EQ(cuMemMap(base + 4 * kChunk, kChunk, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemSetAccess(base, kChunk, &access_, 1));
  EXPECT_CU(cuMemSetAccess(base + 2 * kChunk, kChunk, &access_, 1));
  EXPECT_CU(store(base + 40, 5));
  unsigned value = 0;
  EXPECT_CU(cuMemcpyDtoH(&value, base + 2 * kChunk + 40, 4));
  EXPECT_EQ(value, 5U);
  EXPECT_EQ(cuMemSetAccess(base, 2 * kChunk, &access_, 1), CUDA_ERROR_INVALID_VALUE);  // a gap
  EXPECT_EQ(cuMemUnmap(base, kChunk / 2), CUDA_ERROR_INVALID_VALUE);

  CUmemGenericAllocationHandle again = 0;
  EXPECT_CU(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base + 100)));
  EXPECT_EQ(again, handle);
  CUmemAllocationProp told{};
  EXPECT_CU(cuMemGetAllocationPropertiesFromHandle(&told, handle));
  EXPECT_EQ(told.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemRelease(again));
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemUnmap(base, kChunk));
  EXPECT_CU(cuMemcpyDtoH(&value, base + 2 * kChunk + 40, 4));  // the other mapping keeps it
  EXPECT_EQ(value, 5U);
  EXPECT_CU(cuMemUnmap(base + 2 * kChunk, kChunk));
  EXPECT_CU(cuMemAddressFree(base, 4 * kChunk));
}

TEST_F(VirtualMemoryApi, WithoutAccessItIsNobodys) {
  CUdeviceptr base = 0;
  ASSERT_CU(cuMemAddressReserve(&base, kChunk, 0, 0, 0));
  const CUmemGenericAllocationHandle handle = create(kChunk);
  ASSERT_CU(cuMemMap(base, kChunk, 0, handle, 0));
  unsigned value = 0;
  EXPECT_EQ(cuMemcpyDtoH(&value, base, 4), CUDA_ERROR_INVALID_VALUE);
  unsigned long long flags = 7;
  EXPECT_CU(cuMemGetAccess(&flags, &properties_.location, base));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  ASSERT_CU(cuMemSetAccess(base, kChunk, &access_, 1));
  EXPECT_CU(store(base, 1));
  EXPECT_CU(cuMemUnmap(base, kChunk));
  EXPECT_EQ(cuMemGetAccess(&flags, &properties_.location, base), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(store(base, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(VirtualMemoryApi, ThereIsNoMoreThanTheDeviceHas) {
  const std::size_t free = free_bytes() / kChunk * kChunk;
  const CUmemGenericAllocationHandle all = create(free);
  CUmemGenericAllocationHandle more = 0;
  EXPECT_EQ(cuMemCreate(&more, kChunk, &properties_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, kChunk), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemRelease(all));
  EXPECT_CU(cuMemAlloc(&memory, kChunk));
  EXPECT_EQ(cuMemCreate(&more, kChunk + 1, &properties_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressReserve(&memory, kChunk + 1, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace gpuctl::softgpu
