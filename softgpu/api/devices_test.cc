// Several devices in one process, through the driver API.
#include <chrono>
#include <cstring>
#include <thread>

#include "softgpu/api/fixture.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kMib = 1 << 20;

/// Three devices of 4, 2 and 3 SMs. The program sees the last two, in reverse order.
class DevicesApi : public testing::Test {
 protected:
  static constexpr int kCount = 2;

  void SetUp() override {
    use_private_table("4,2,3");
    setenv("SOFTGPU_DEVICES", "3", 1);
    setenv("SOFTGPU_MEMORY_MIB", "64,32,16", 1);
    setenv("CUDA_VISIBLE_DEVICES", "2,GPU-67707563-746c-2d73-6f66-746770752d31", 1);
    ASSERT_CU(cuInit(0));
    for (int i = 0; i < kCount; ++i) ASSERT_CU(cuDevicePrimaryCtxRetain(&context_[i], i));
    ASSERT_CU(cuCtxSetCurrent(context_[0]));
  }

  void TearDown() override {
    for (int i = 0; i < kCount; ++i) EXPECT_CU(cuDevicePrimaryCtxReset(i));
    for (int i = 0; i < kCount; ++i) EXPECT_CU(cuDevicePrimaryCtxRelease(i));
  }

  /// Makes its context current.
  CUfunction load(int device, const char* name) {
    EXPECT_CU(cuCtxSetCurrent(context_[device]));
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, kTestPtx));
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }

  CUdeviceptr allocate(int device, std::size_t bytes) {
    EXPECT_CU(cuCtxSetCurrent(context_[device]));
    CUdeviceptr address = 0;
    EXPECT_CU(cuMemAlloc(&address, bytes));
    EXPECT_CU(cuMemsetD8(address, 0, bytes));
    EXPECT_CU(cuCtxSynchronize());
    return address;
  }

  static unsigned word_at(CUdeviceptr address) {
    unsigned value = 0;
    EXPECT_CU(cuMemcpyDtoH(&value, address, sizeof value));
    return value;
  }

  static CUresult store(CUfunction function, CUdeviceptr address, unsigned value, CUstream stream = nullptr) {
    void* params[] = {&address, &value};
    return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr);
  }

  CUcontext context_[kCount] = {};
};

TEST_F(DevicesApi, EachIsItself) {
  int count = 0;
  ASSERT_CU(cuDeviceGetCount(&count));
  ASSERT_EQ(count, kCount);
  const char* bus_ids[] = {"0000:02:00.0", "0000:01:00.0"};
  const int sms[] = {3, 2};
  const std::size_t mib[] = {16, 32};
  for (int i = 0; i < kCount; ++i) {
    CUdevice device = -1;
    EXPECT_CU(cuDeviceGet(&device, i));
    EXPECT_EQ(device, i);
    CUuuid uuid;
    EXPECT_CU(cuDeviceGetUuid(&uuid, i));
    EXPECT_EQ(std::memcmp(uuid.bytes, i == 0 ? "gpuctl-softgpu-2" : "gpuctl-softgpu-1", 16), 0);
    char bus_id[16];
    EXPECT_CU(cuDeviceGetPCIBusId(bus_id, sizeof bus_id, i));
    EXPECT_STREQ(bus_id, bus_ids[i]);
    EXPECT_CU(cuDeviceGetByPCIBusId(&device, bus_id));
    EXPECT_EQ(device, i);
    EXPECT_CU(cuDeviceGetByPCIBusId(&device, bus_id + 5));
    EXPECT_EQ(device, i);
    int value = 0;
    EXPECT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, i));
    EXPECT_EQ(value, sms[i]);
    std::size_t bytes = 0;
    EXPECT_CU(cuDeviceTotalMem(&bytes, i));
    EXPECT_EQ(bytes, mib[i] * kMib);
  }
  CUdevice device = -1;
  EXPECT_EQ(cuDeviceGet(&device, kCount), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDeviceGetByPCIBusId(&device, "0000:00:00.0"), CUDA_ERROR_INVALID_DEVICE);  // the program does not see it
}

TEST_F(DevicesApi, ContextsAndStreamsKnowTheirs) {
  for (int i = 0; i < kCount; ++i) {
    ASSERT_CU(cuCtxSetCurrent(context_[i]));
    CUdevice device = -1;
    EXPECT_CU(cuCtxGetDevice(&device));
    EXPECT_EQ(device, i);
    CUstream stream = nullptr;
    ASSERT_CU(cuStreamCreate(&stream, 0));
    ASSERT_CU(cuCtxSetCurrent(context_[1 - i]));
    device = -1;
    EXPECT_CU(cuStreamGetDevice(stream, &device));
    EXPECT_EQ(device, i);
    EXPECT_CU(cuStreamDestroy(stream));
  }
  EXPECT_NE(context_[0], context_[1]);
}

TEST_F(DevicesApi, MemoryIsOfOneDevice) {
  allocate(0, 8 * kMib);
  const CUdeviceptr there = allocate(1, 20 * kMib);
  const std::size_t free_mib[] = {8, 12};
  for (int i = 0; i < kCount; ++i) {
    ASSERT_CU(cuCtxSetCurrent(context_[i]));
    std::size_t free = 0, total = 0;
    EXPECT_CU(cuMemGetInfo(&free, &total));
    EXPECT_EQ(free, free_mib[i] * kMib);
  }
  CUdeviceptr address = 0;
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  EXPECT_EQ(cuMemAlloc(&address, 9 * kMib), CUDA_ERROR_OUT_OF_MEMORY);
  int ordinal = -1;
  EXPECT_CU(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
  EXPECT_EQ(ordinal, 1);
  EXPECT_CU(cuMemFree(there));  // the other device's context is current
}

TEST_F(DevicesApi, KernelsRunAtTheSameTimeEachOnItsOwn) {
  Word* flag = nullptr;
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  ASSERT_CU(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_PORTABLE));
  *flag = 0;
  // More blocks than the first device has room for.
  void* params[] = {&flag};
  ASSERT_CU(cuLaunchKernel(load(0, "wait_for"), 1000, 1, 1, 1024, 1, 1, 0, nullptr, params, nullptr));
  const CUdeviceptr word = allocate(1, 4);
  ASSERT_CU(store(load(1, "store"), word, 7));
  ASSERT_CU(cuCtxSynchronize());  // does not wait for the first device
  EXPECT_EQ(word_at(word), 7U);
  const auto tables = [](const char* number) {
    auto reader = TableReader::open(std::getenv("SOFTGPU_TABLE") + std::string(number));
    return reader.has_error() ? std::size_t{99} : (*reader)->snapshot().kernels.size();
  };
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (tables("-2") == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(tables("-2"), 1U);
  EXPECT_EQ(tables("-1"), 0U);
  *flag = 1;
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  EXPECT_CU(cuCtxSynchronize());
}

TEST_F(DevicesApi, AStreamWaitsForAnEventOfAnotherDevice) {
  Word* flag = nullptr;
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  ASSERT_CU(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_PORTABLE));
  *flag = 0;
  const CUdeviceptr word = allocate(1, 4);
  const CUfunction wait_for = load(0, "wait_for");
  CUevent event = nullptr;
  CUstream first = nullptr, second = nullptr;
  ASSERT_CU(cuEventCreate(&event, 0));
  ASSERT_CU(cuStreamCreate(&first, 0));
  void* params[] = {&flag};
  ASSERT_CU(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, first, params, nullptr));
  ASSERT_CU(cuEventRecord(event, first));
  const CUfunction function = load(1, "store");
  ASSERT_CU(cuStreamCreate(&second, 0));
  EXPECT_EQ(cuEventRecord(event, second), CUDA_ERROR_INVALID_HANDLE);  // of the other device
  ASSERT_CU(cuStreamWaitEvent(second, event, 0));
  ASSERT_CU(store(function, word, 7, second));
  EXPECT_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
  *flag = 1;
  ASSERT_CU(cuStreamSynchronize(second));
  EXPECT_CU(cuEventQuery(event));
  EXPECT_EQ(word_at(word), 7U);
}

TEST_F(DevicesApi, AKernelOfALibraryRunsWhereItsStreamIsWithVariablesOfItsOwn) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  ASSERT_CU(cuLibraryLoadData(&library, kTestPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  ASSERT_CU(cuLibraryGetKernel(&kernel, library, "count"));
  CUdeviceptr address[kCount] = {};
  CUfunction function[kCount] = {};
  for (int i = 0; i < kCount; ++i) {
    ASSERT_CU(cuCtxSetCurrent(context_[i]));
    ASSERT_CU(cuLibraryGetGlobal(&address[i], nullptr, library, "counter"));
    ASSERT_CU(cuKernelGetFunction(&function[i], kernel));
    for (int launch = 0; launch <= i; ++launch)
      ASSERT_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    ASSERT_CU(cuCtxSynchronize());
  }
  EXPECT_NE(address[0], address[1]);
  EXPECT_EQ(word_at(address[0]), 8U);
  EXPECT_EQ(word_at(address[1]), 9U);
  // The function of one device cannot be launched on the other.
  EXPECT_EQ(cuLaunchKernel(function[0], 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_CU(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10, kernel, 1));
  int bytes = 0;
  EXPECT_CU(cuKernelGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel, 0));
  EXPECT_EQ(bytes, 48 << 10);
  EXPECT_CU(cuLibraryUnload(library));
}

TEST_F(DevicesApi, AFaultOfOneLeavesTheOther) {
  ASSERT_CU(store(load(0, "store"), 8, 1));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  const CUdeviceptr word = allocate(1, 4);
  ASSERT_CU(store(load(1, "store"), word, 7));
  EXPECT_EQ(word_at(word), 7U);
}

TEST_F(DevicesApi, KernelsReachAPeersMemoryWhereThatIsEnabled) {
  int can = -1;
  EXPECT_CU(cuDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_CU(cuDeviceCanAccessPeer(&can, 1, 1));
  EXPECT_EQ(can, 0);
  EXPECT_CU(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
  EXPECT_EQ(can, 1);
  EXPECT_EQ(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 0), CUDA_ERROR_INVALID_DEVICE);

  const CUdeviceptr word = allocate(1, 4);
  const CUfunction function = load(0, "store");
  EXPECT_EQ(cuCtxDisablePeerAccess(context_[1]), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[0], 0), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 1), CUDA_ERROR_INVALID_VALUE);
  ASSERT_CU(cuCtxEnablePeerAccess(context_[1], 0));
  EXPECT_EQ(cuCtxEnablePeerAccess(context_[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  ASSERT_CU(store(function, word, 7));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(word_at(word), 7U);
  ASSERT_CU(cuCtxDisablePeerAccess(context_[1]));
  ASSERT_CU(store(function, word, 8));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_CU(cuCtxSetCurrent(context_[1]));
  EXPECT_EQ(word_at(word), 7U);
}

TEST_F(DevicesApi, CopiesBetweenDevices) {
  const CUdeviceptr from = allocate(0, 4), to = allocate(1, 4);
  ASSERT_CU(cuMemsetD32(from, 5, 1));  // in the second device's context: every device knows the memory
  ASSERT_CU(cuCtxSynchronize());
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ASSERT_CU(cuMemcpyPeerAsync(to, context_[1], from, context_[0], 4, stream));
  ASSERT_CU(cuStreamSynchronize(stream));
  EXPECT_EQ(word_at(to), 5U);
  EXPECT_EQ(cuMemcpyPeer(to, nullptr, from, context_[0], 4), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(cuMemcpyPeer(1, context_[1], from, context_[0], 4), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DevicesApi, APeerCopyIsInOrderWithBothDevices) {
  Word* flag = nullptr;
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  ASSERT_CU(cuMemHostAlloc(reinterpret_cast<void**>(&flag), sizeof *flag, CU_MEMHOSTALLOC_PORTABLE));
  *flag = 0;
  const CUdeviceptr from = allocate(0, 4), to = allocate(1, 4);
  const CUfunction elsewhere = load(1, "store");
  const CUfunction wait_for = load(0, "wait_for"), first = load(0, "store");
  CUstream stream = nullptr;
  ASSERT_CU(cuStreamCreate(&stream, 0));
  void* params[] = {&flag};
  ASSERT_CU(cuLaunchKernel(wait_for, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
  ASSERT_CU(store(first, from, 5, stream));
  ASSERT_CU(cuCtxSetCurrent(context_[1]));
  ASSERT_CU(cuMemcpyPeer(to, context_[1], from, context_[0], 4));
  ASSERT_CU(cuCtxSetCurrent(context_[0]));
  ASSERT_CU(store(first, from, 6, stream));  // not before the copy
  EXPECT_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
  *flag = 1;
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(word_at(from), 6U);
  ASSERT_CU(cuCtxSetCurrent(context_[1]));
  EXPECT_EQ(word_at(to), 5U);
  ASSERT_CU(store(elsewhere, to, 9));
  EXPECT_EQ(word_at(to), 9U);
}

TEST_F(DevicesApi, MappedMemoryIsOpenToTheDevicesThatWereNamed) {
  constexpr std::size_t kChunk = 2 * kMib;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {1}};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  ASSERT_CU(cuMemCreate(&handle, kChunk, &properties, 0));
  ASSERT_CU(cuCtxSetCurrent(context_[1]));
  std::size_t free = 0, total = 0;
  EXPECT_CU(cuMemGetInfo(&free, &total));
  EXPECT_EQ(free, 30 * kMib);
  ASSERT_CU(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
  ASSERT_CU(cuMemMap(address, kChunk, 0, handle, 0));
  CUmemAccessDesc access[2] = {};
  for (int i = 0; i < kCount; ++i) {
    access[i].location = {CU_MEM_LOCATION_TYPE_DEVICE, {i}};
    access[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  ASSERT_CU(cuMemSetAccess(address, kChunk, access, 2));
  const CUfunction function = load(0, "store");
  ASSERT_CU(store(function, address, 7));
  ASSERT_CU(cuCtxSynchronize());
  EXPECT_EQ(word_at(address), 7U);
  access[0].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  ASSERT_CU(cuMemSetAccess(address, kChunk, access, 1));
  unsigned long long flags = 9;
  EXPECT_CU(cuMemGetAccess(&flags, &access[0].location, address));
  EXPECT_EQ(flags, 0U);
  EXPECT_CU(cuMemGetAccess(&flags, &access[1].location, address));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  ASSERT_CU(store(function, address, 8));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_CU(cuCtxSetCurrent(context_[1]));
  EXPECT_CU(cuMemUnmap(address, kChunk));
  EXPECT_CU(cuMemRelease(handle));
  EXPECT_CU(cuMemAddressFree(address, kChunk));
}

}  // namespace
}  // namespace gpuctl::softgpu
