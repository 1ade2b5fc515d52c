#include <cstring>
#include <vector>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

class MemoryApi : public ApiTest {};

TEST_F(MemoryApi, CopiesThereAndBack) {
  std::vector<unsigned> from(1000);
  for (unsigned i = 0; i < from.size(); ++i) from[i] = i * 3;
  std::vector<unsigned> to(from.size());
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  ASSERT_CU(cuMemAlloc(&a, 4000));
  ASSERT_CU(cuMemAlloc(&b, 4000));
  EXPECT_EQ(a % 256, 0U);
  EXPECT_CU(cuMemcpyHtoD(a, from.data(), 4000));
  EXPECT_CU(cuMemcpyDtoD(b, a, 4000));
  EXPECT_CU(cuMemcpyDtoH(to.data(), b, 4000));
  EXPECT_EQ(from, to);
  EXPECT_EQ(cuMemcpyHtoD(a, from.data(), 4001), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemcpyDtoH(to.data(), 4096, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(a));
  EXPECT_EQ(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemFree(b));
}

TEST_F(MemoryApi, KeepsCountAndRefusesTooMuch) {
  std::size_t before = 0;
  std::size_t total = 0;
  std::size_t after = 0;
  CUdeviceptr a = 0;
  EXPECT_CU(cuMemGetInfo(&before, &total));
  EXPECT_EQ(total, std::size_t{4} << 30);
  ASSERT_CU(cuMemAlloc(&a, 1 << 20));
  EXPECT_CU(cuMemGetInfo(&after, &total));
  EXPECT_EQ(before - after, 1U << 20);
  CUdeviceptr b = 0;
  EXPECT_EQ(cuMemAlloc(&b, total), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_CU(cuMemFree(a));
  ASSERT_CU(cuMemAlloc(&b, total));  // freed pieces are merged again
  EXPECT_CU(cuMemFree(b));
}

TEST_F(MemoryApi, TellsWhatAPointerIs) {
  CUdeviceptr a = 0;
  ASSERT_CU(cuMemAlloc(&a, 100));
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  EXPECT_CU(cuMemGetAddressRange(&base, &bytes, a + 60));
  EXPECT_EQ(base, a);
  EXPECT_EQ(bytes, 100U);
  unsigned type = 0;
  EXPECT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_DEVICE));
  CUcontext owner = nullptr;
  EXPECT_CU(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, a));
  EXPECT_EQ(owner, context_);
  int local = 0;
  EXPECT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(&local)),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MemoryApi, HostMemoryIsMapped) {
  unsigned* pinned = nullptr;
  ASSERT_CU(cuMemAllocHost(reinterpret_cast<void**>(&pinned), 64));
  CUdeviceptr device = 0;
  EXPECT_CU(cuMemHostGetDevicePointer(&device, pinned, 0));
  EXPECT_CU(cuMemsetD32(device, 0xabcd, 16));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(pinned[15], 0xabcdU);
  EXPECT_CU(cuMemFreeHost(pinned));

  alignas(4096) static unsigned page[1024];
  EXPECT_EQ(cuMemHostGetDevicePointer(&device, page, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemHostRegister(page, sizeof page, CU_MEMHOSTREGISTER_DEVICEMAP));
  EXPECT_EQ(cuMemHostRegister(page, sizeof page, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  EXPECT_CU(cuMemHostGetDevicePointer(&device, page, 0));
  EXPECT_CU(cuMemHostUnregister(page));
  EXPECT_EQ(cuMemHostUnregister(page), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_F(MemoryApi, AsynchronousCopyFromPageableMemoryTakesItsBytesAtOnce) {
  Word* flag = words(1);
  Word* target = words(1);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_CU(launch_wait(flag, 1, 32, stream));
  unsigned source = 5;
  EXPECT_CU(cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(target), &source, 4, stream));
  source = 6;
  EXPECT_EQ(*target, 0U);
  *flag = 1;
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(*target, 5U);
}

TEST_F(MemoryApi, CopiesWhateverTheAlignment) {
  constexpr unsigned kRoom = 64;
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemAlloc(&device, kRoom));
  alignas(8) unsigned char host[kRoom];
  for (unsigned i = 0; i < kRoom; ++i) host[i] = static_cast<unsigned char>(i + 1);
  for (unsigned to = 0; to < 8; ++to) {
    for (unsigned from = 0; from < 8; ++from) {
      for (unsigned bytes = 1; bytes < 32; ++bytes) {
        ASSERT_CU(cuMemsetD8(device, 0, kRoom));
        ASSERT_CU(cuMemcpyHtoD(device + to, host + from, bytes));
        unsigned char back[kRoom], expected[kRoom] = {};
        ASSERT_CU(cuMemcpyDtoH(back, device, kRoom));
        std::memcpy(expected + to, host + from, bytes);
        ASSERT_EQ(std::memcmp(back, expected, kRoom), 0) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
  EXPECT_CU(cuMemFree(device));
}

TEST_F(MemoryApi, CopiesWhatOverlaps) {
  CUdeviceptr device = 0;
  ASSERT_CU(cuMemAlloc(&device, 16));
  const char text[] = "0123456789abcde";
  ASSERT_CU(cuMemcpyHtoD(device, text, 16));
  EXPECT_CU(cuMemcpyDtoD(device + 4, device, 8));
  char back[16];
  ASSERT_CU(cuMemcpyDtoH(back, device, 16));
  EXPECT_STREQ(back, "012301234567cde");
  EXPECT_CU(cuMemFree(device));
}

TEST_F(MemoryApi, TwoDimensionalCopyAndSetKeepToTheirRows) {
  CUdeviceptr device = 0;
  std::size_t pitch = 0;
  ASSERT_CU(cuMemAllocPitch(&device, &pitch, 10, 4, 4));
  EXPECT_GE(pitch, 10U);
  EXPECT_CU(cuMemsetD8(device, 0, pitch * 4));
  EXPECT_CU(cuMemsetD2D8(device, pitch, 9, 10, 4));
  char host[4][12];
  std::memset(host, 1, sizeof host);
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = device;
  copy.srcPitch = pitch;
  copy.srcXInBytes = 4;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = host;
  copy.dstPitch = 12;
  copy.WidthInBytes = 8;
  copy.Height = 4;
  EXPECT_CU(cuMemcpy2D(&copy));
  for (const auto& row : host) {
    EXPECT_EQ(row[5], 9);
    EXPECT_EQ(row[6], 0);  // after the ten bytes that were set
    EXPECT_EQ(row[8], 1);  // not copied
  }
}

TEST_F(MemoryApi, StreamOrderedFreeComesAfterTheWork) {
  Word* flag = words(1);
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = 0;
  ASSERT_CU(cuMemAllocAsync(&a, 1000, stream));
  EXPECT_CU(launch_wait(flag, 1, 32, stream));
  EXPECT_CU(cuMemFreeAsync(a, stream));
  EXPECT_CU(cuMemGetAddressRange(nullptr, nullptr, a));
  *flag = 1;
  EXPECT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(cuMemGetAddressRange(nullptr, nullptr, a), CUDA_ERROR_NOT_FOUND);
}

TEST_F(MemoryApi, PoolsHaveMemoryOfTheirDevice) {
  CUmemoryPool pool = nullptr, its = nullptr, again = nullptr;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  ASSERT_CU(cuMemPoolCreate(&pool, &properties));
  ASSERT_CU(cuDeviceGetDefaultMemPool(&its, 0));
  ASSERT_CU(cuDeviceGetDefaultMemPool(&again, 0));
  EXPECT_EQ(its, again);
  EXPECT_NE(its, pool);
  CUdeviceptr memory = 0;
  int ordinal = -1;
  ASSERT_CU(cuMemAllocFromPoolAsync(&memory, 64, pool, nullptr));
  EXPECT_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory));
  EXPECT_EQ(ordinal, 0);
  EXPECT_CU(cuMemFreeAsync(memory, nullptr));
  EXPECT_EQ(cuMemPoolDestroy(its), CUDA_ERROR_INVALID_VALUE);
  EXPECT_CU(cuMemPoolDestroy(pool));
  EXPECT_EQ(cuMemAllocFromPoolAsync(&memory, 64, pool, nullptr), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace gpuctl::softgpu
