// cuMemcpy*, cuMemset*.
//
// As with the real driver, an asynchronous copy from pageable memory reads the source before it returns, and one to
// pageable memory returns when it is done. Only page-locked memory is used later. No call waits for a copy from device
// memory to device memory, or for a memset, not even a call without a stream.
#include <cuda.h>

#include <optional>
#include <vector>

#include "softgpu/device/printed.h"
#include "softgpu/driver/driver.h"
#include "softgpu/memory_api/copy.h"

using namespace gpuctl::softgpu;

namespace {

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

bool is_on_device(const Driver& driver, std::uint64_t address) {
  const std::optional<Allocation> found = driver.memory.lookup(address);
  return found && is_device_only(found->kind);
}

}  // namespace

CUresult gpuctl::softgpu::submit_copy(CUstream handle, const CUDA_MEMCPY3D& what, bool wait, const char* call) {
  std::optional<WritesWhatWasPrinted> writes;
  if (wait) writes.emplace();
  return with_stream(
      handle,
      [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
        bool capturing = false;
        const CUresult refused = driver.captures.check_work(*stream, &capturing);
        if (refused != CUDA_SUCCESS) return refused;
        if (wait) {
          const CUresult unsafe = driver.captures.check_unsafe();
          if (unsafe != CUDA_SUCCESS) return unsafe;
        }
        if (what.WidthInBytes == 0 || what.Height == 0 || what.Depth == 0) return CUDA_SUCCESS;
        if (const CUresult checked = check_copy(driver, what); checked != CUDA_SUCCESS) return checked;
        CopyWork work{what, nullptr};
        if (capturing) return driver.captures.add(*stream, std::move(work));
        const bool from_program = !driver.memory.lookup(copy_source(what));
        const bool flat = what.Height == 1 && what.Depth == 1;
        if (!wait && flat && from_program) {
          const auto* source = reinterpret_cast<const std::byte*>(copy_source(what));
          const auto bytes = std::make_shared<std::vector<std::byte>>(source, source + what.WidthInBytes);
          work.what = flat_copy(what.dstMemoryType, copy_target(what), CU_MEMORYTYPE_HOST, address_of(bytes->data()),
                                what.WidthInBytes);
          work.staged = bytes;
        }
        const bool waits =
            wait && !(is_on_device(driver, copy_source(what)) && is_on_device(driver, copy_target(what)));
        const bool must_wait = waits || !driver.memory.lookup(copy_target(what)) || (from_program && !flat);
        if (!must_wait) return perform(driver, stream, std::move(work));
        Context* context = stream->context();
        return submit_and_wait(stream, [&driver, context, work = Work(std::move(work))] {
          run_work(driver, *context, work, kLeastPriority, false);
        });
      },
      call);
}

namespace {

/// Copies consecutive bytes.
CUresult copy(CUstream handle, std::uint64_t to, CUmemorytype to_type, std::uint64_t from, CUmemorytype from_type,
              std::size_t bytes, bool wait, const char* call = __builtin_FUNCTION()) {
  return submit_copy(handle, flat_copy(to_type, to, from_type, from, bytes), wait, call);
}

CUresult copy_2d(CUstream handle, const CUDA_MEMCPY2D* copy_of, bool wait, const char* call = __builtin_FUNCTION()) {
  if (copy_of == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D what{};
  what.srcXInBytes = copy_of->srcXInBytes;
  what.srcY = copy_of->srcY;
  what.srcMemoryType = copy_of->srcMemoryType;
  what.srcHost = copy_of->srcHost;
  what.srcDevice = copy_of->srcDevice;
  what.srcPitch = copy_of->srcPitch;
  what.dstXInBytes = copy_of->dstXInBytes;
  what.dstY = copy_of->dstY;
  what.dstMemoryType = copy_of->dstMemoryType;
  what.dstHost = copy_of->dstHost;
  what.dstDevice = copy_of->dstDevice;
  what.dstPitch = copy_of->dstPitch;
  what.WidthInBytes = copy_of->WidthInBytes;
  what.Height = copy_of->Height;
  what.Depth = 1;
  return submit_copy(handle, what, wait, call);
}

CUresult copy_3d(CUstream handle, const CUDA_MEMCPY3D* what, bool wait, const char* call = __builtin_FUNCTION()) {
  return what == nullptr ? CUDA_ERROR_INVALID_VALUE : submit_copy(handle, *what, wait, call);
}

/// Sets `width` elements of `unit` bytes in each of `height` rows, `pitch` bytes apart.
CUresult set(CUstream handle, CUdeviceptr to, std::size_t pitch, unsigned unit, unsigned value, std::size_t width,
             std::size_t height, const char* call = __builtin_FUNCTION()) {
  return with_stream(
      handle,
      [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
        const CUDA_MEMSET_NODE_PARAMS what{to, pitch, value, unit, width, height};
        const CUresult checked = check_set(driver, what);
        return checked == CUDA_SUCCESS ? perform(driver, stream, SetWork{what}) : checked;
      },
      call);
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, to, CU_MEMORYTYPE_UNIFIED, from, CU_MEMORYTYPE_UNIFIED, bytes, true);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, to, CU_MEMORYTYPE_UNIFIED, from, CU_MEMORYTYPE_UNIFIED, bytes, false);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(nullptr, to, CU_MEMORYTYPE_DEVICE, address_of(from), CU_MEMORYTYPE_HOST, bytes, true);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, address_of(to), CU_MEMORYTYPE_HOST, from, CU_MEMORYTYPE_DEVICE, bytes, true);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, to, CU_MEMORYTYPE_DEVICE, from, CU_MEMORYTYPE_DEVICE, bytes, true);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(stream, to, CU_MEMORYTYPE_DEVICE, address_of(from), CU_MEMORYTYPE_HOST, bytes, false);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, address_of(to), CU_MEMORYTYPE_HOST, from, CU_MEMORYTYPE_DEVICE, bytes, false);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, to, CU_MEMORYTYPE_DEVICE, from, CU_MEMORYTYPE_DEVICE, bytes, false);
}

CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D* parameters) {
  return copy_2d(nullptr, parameters, true);
}

CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* parameters) {
  return copy_2d(nullptr, parameters, true);
}

CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* parameters, CUstream stream) {
  return copy_2d(stream, parameters, false);
}

CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D* parameters) {
  return copy_3d(nullptr, parameters, true);
}

CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* parameters, CUstream stream) {
  return copy_3d(stream, parameters, false);
}

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set(stream, to, 0, 1, value, count, 1);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return set(stream, to, 0, 2, value, count, 1);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return set(stream, to, 0, 4, value, count, 1);
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  return set(stream, to, pitch, 1, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                    CUstream stream) {
  return set(stream, to, pitch, 2, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
  return set(stream, to, pitch, 4, value, width, height);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return set(nullptr, to, 0, 1, value, count, 1);
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return set(nullptr, to, 0, 2, value, count, 1);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return set(nullptr, to, 0, 4, value, count, 1);
}

CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return set(nullptr, to, pitch, 1, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return set(nullptr, to, pitch, 2, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  return set(nullptr, to, pitch, 4, value, width, height);
}

}  // extern "C"
