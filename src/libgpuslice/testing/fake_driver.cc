#include "libgpuslice/testing/fake_driver.h"

#include <vector>

#include "libgpuslice/driver/driver.h"
#include "libgpuslice/driver/stage.h"

namespace gpuslice {

namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

/// Kept to the end: no caller gives it back.
void* allocate(std::size_t bytes) {
  static std::vector<std::unique_ptr<Line[]>> all;
  all.push_back(std::make_unique<Line[]>(bytes / sizeof(Line) + 1));
  return all.back().get();
}

CUresult allocate_host(void** out, std::size_t bytes, unsigned) {
  *out = allocate(bytes);
  return CUDA_SUCCESS;
}

CUresult allocate_device(CUdeviceptr* out, std::size_t bytes) {
  *out = reinterpret_cast<CUdeviceptr>(allocate(bytes));
  return CUDA_SUCCESS;
}

CUresult address_of(CUdeviceptr* out, void* host, unsigned) {
  *out = reinterpret_cast<CUdeviceptr>(host);
  return CUDA_SUCCESS;
}

CUresult make_stream(CUstream* out, unsigned) {
  *out = nullptr;
  return CUDA_SUCCESS;
}

CUresult copy(CUdeviceptr, const void*, std::size_t, CUstream) {
  return CUDA_SUCCESS;
}

CUresult succeed(CUstream) {
  return CUDA_SUCCESS;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuMemHostAlloc = allocate_host;
    fake.cuMemAlloc_v2 = allocate_device;
    fake.cuMemHostGetDevicePointer_v2 = address_of;
    fake.cuStreamCreate = make_stream;
    fake.cuStreamSynchronize = succeed;
    fake.cuStreamDestroy_v2 = succeed;
    fake.cuMemcpyHtoDAsync_v2 = copy;
    return fake;
  }();
  return table;
}

Stage::Stage(const char* what) : what_(what) {}
Stage::~Stage() = default;

}  // namespace gpuslice
