#include <dlfcn.h>

#include <cstring>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

struct Found {
  void* function = nullptr;
  CUresult result = CUDA_SUCCESS;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
};

Found ask(const char* name, int version = CUDA_VERSION, cuuint64_t flags = CU_GET_PROC_ADDRESS_DEFAULT) {
  Found found;
  found.result = cuGetProcAddress(name, &found.function, version, flags, &found.status);
  return found;
}

void* exported(const char* symbol) {
  return dlsym(RTLD_DEFAULT, symbol);
}

TEST(EntryPoints, GiveTheNewestVersionAskedFor) {
  EXPECT_EQ(ask("cuMemAlloc").function, exported("cuMemAlloc_v2"));
  EXPECT_EQ(ask("cuCtxCreate", 11030).function, exported("cuCtxCreate_v2"));
  EXPECT_EQ(ask("cuCtxCreate", 12000).function, exported("cuCtxCreate_v3"));
  EXPECT_EQ(ask("cuCtxCreate").function, exported("cuCtxCreate_v4"));
  EXPECT_EQ(ask("cuGetProcAddress", 11030).function, exported("cuGetProcAddress"));
  EXPECT_EQ(ask("cuGetProcAddress").function, exported("cuGetProcAddress_v2"));
  EXPECT_EQ(ask("cuEventElapsedTime", 12000).function, exported("cuEventElapsedTime"));
  EXPECT_EQ(ask("cuGraphInstantiate", 11000).function, exported("cuGraphInstantiate_v2"));
  EXPECT_EQ(ask("cuGraphInstantiate").function, exported("cuGraphInstantiateWithFlags"));
  EXPECT_EQ(ask("cuGraphAddKernelNode", 11000).function, exported("cuGraphAddKernelNode"));
  EXPECT_EQ(ask("cuGraphAddKernelNode").function, exported("cuGraphAddKernelNode_v2"));
  EXPECT_EQ(ask("cuStreamGetCaptureInfo", 12020).function, exported("cuStreamGetCaptureInfo_v2"));
  EXPECT_EQ(ask("cuStreamGetCaptureInfo").function, exported("cuStreamGetCaptureInfo_v3"));
  EXPECT_EQ(ask("cuMemAlloc_v2").function, exported("cuMemAlloc_v2"));
}

TEST(EntryPoints, PerThreadVariantsOnlyWhereAskedFor) {
  EXPECT_EQ(ask("cuLaunchKernel").function, exported("cuLaunchKernel"));
  EXPECT_EQ(ask("cuLaunchKernel", CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function,
            exported("cuLaunchKernel_ptsz"));
  EXPECT_EQ(ask("cuStreamSetAttribute").function, exported("cuStreamSetAttribute"));
  EXPECT_EQ(ask("cuStreamSetAttribute", CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function,
            exported("cuStreamSetAttribute_ptsz"));
  EXPECT_EQ(ask("cuGraphLaunch").function, exported("cuGraphLaunch"));
  EXPECT_EQ(ask("cuGraphLaunch", CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function,
            exported("cuGraphLaunch_ptsz"));
  EXPECT_EQ(ask("cuMemcpyHtoD", CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function,
            exported("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(ask("cuMemAlloc", CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM).function,
            exported("cuMemAlloc_v2"));
}

TEST(EntryPoints, SayWhyThereIsNone) {
  const Found unknown = ask("cuTexObjectCreate");
  EXPECT_EQ(unknown.result, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(unknown.status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(unknown.function, nullptr);
  EXPECT_EQ(ask("cuLibraryLoadData", 11000).status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST(EntryPoints, NothingWorksBeforeInit) {
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(cuInit(1), CUDA_ERROR_INVALID_VALUE);
  int version = 0;
  EXPECT_CU(cuDriverGetVersion(&version));
  EXPECT_EQ(version, 13000);
  const char* name = nullptr;
  EXPECT_CU(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
  EXPECT_STREQ(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(cuGetErrorName(static_cast<CUresult>(12345), &name), CUDA_ERROR_INVALID_VALUE);
}

class DeviceApi : public ApiTest {};

TEST_F(DeviceApi, DescribesItself) {
  char name[64];
  EXPECT_CU(cuDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(name, "gpuctl software GPU");
  int value = 0;
  EXPECT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  EXPECT_EQ(value, 4);
  EXPECT_CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
  EXPECT_EQ(value, 9);
  CUdevice device = 7;
  EXPECT_EQ(cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_CU(cuCtxGetDevice(&device));
  EXPECT_EQ(device, 0);
}

TEST_F(DeviceApi, ContextsStack) {
  CUcontext current = nullptr;
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  CUcontext primary = nullptr;
  ASSERT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  EXPECT_CU(cuCtxPushCurrent(primary));
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, primary);
  EXPECT_CU(cuCtxPopCurrent(&current));
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT_EQ(current, context_);
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  unsigned flags = 0;
  int active = 1;
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQ(active, 0);
  EXPECT_CU(cuCtxSetCurrent(nullptr));
  CUdeviceptr memory = 0;
  EXPECT_EQ(cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_CU(cuCtxSetCurrent(context_));
}

}  // namespace
}  // namespace gpuctl::softgpu
