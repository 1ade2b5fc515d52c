// cuMemcpy*, cuMemset*.
//
// An asynchronous copy from pageable memory takes the source's bytes before it returns and one to pageable memory
// returns when it is done, as with the real driver; only page-locked memory is used later.
#include <cuda.h>

#include <cstring>
#include <vector>

#include "softgpu/driver.h"

using namespace gpuctl::softgpu;

namespace {

std::uint64_t address_of(const void* pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}
void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

/// What the copy functions say about an end of a copy.
enum class End { kDevice, kHost, kEither };

/// False if that end cannot be what the function says it is.
bool valid_end(Driver& driver, End end, std::uint64_t address, std::size_t bytes) {
  if (address == 0) return false;
  if (end == End::kDevice) return driver.memory.covers(address, bytes);
  // Ordinary memory of the program is not known here, but nothing may run over the end of what is.
  return !driver.memory.lookup(address) || driver.memory.covers(address, bytes);
}

CUresult copy(CUstream handle, std::uint64_t to, End to_end, std::uint64_t from, End from_end, std::size_t bytes,
              bool wait) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (bytes == 0) return CUDA_SUCCESS;
    if (!valid_end(driver, to_end, to, bytes) || !valid_end(driver, from_end, from, bytes)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    std::shared_ptr<std::vector<std::byte>> staged;
    if (!wait && !driver.memory.lookup(from)) {
      const auto* source = static_cast<const std::byte*>(pointer_to(from));
      staged = std::make_shared<std::vector<std::byte>>(source, source + bytes);
    }
    Context* context = stream->context();
    auto operation = [&driver, context, staged, to, from, bytes] {
      if (context->stopped().load()) return;
      std::memmove(pointer_to(to), staged != nullptr ? staged->data() : pointer_to(from), bytes);
      driver.doorbell.ring();
    };
    const bool must_wait = wait || !driver.memory.lookup(to);
    return must_wait ? submit_and_wait(stream, operation) : submit(stream, operation);
  });
}

/// One end of a CUDA_MEMCPY2D: address of the first byte and distance of rows. False for arrays.
bool end_of_2d(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, std::size_t x, std::size_t y,
               std::size_t pitch, std::uint64_t* start) {
  if (array != nullptr && type == CU_MEMORYTYPE_ARRAY) return false;
  const std::uint64_t base = type == CU_MEMORYTYPE_HOST ? address_of(host) : device;
  *start = base + y * pitch + x;
  return type != CU_MEMORYTYPE_ARRAY && base != 0;
}

CUresult copy_2d(CUstream handle, const CUDA_MEMCPY2D* copy, bool wait) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY || copy->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    const std::size_t width = copy->WidthInBytes;
    const std::size_t height = copy->Height;
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    const std::size_t from_pitch = copy->srcPitch != 0 ? copy->srcPitch : width;
    const std::size_t to_pitch = copy->dstPitch != 0 ? copy->dstPitch : width;
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    if (from_pitch < width || to_pitch < width ||
        !end_of_2d(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray, copy->srcXInBytes, copy->srcY,
                   from_pitch, &from) ||
        !end_of_2d(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray, copy->dstXInBytes, copy->dstY,
                   to_pitch, &to)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto end = [](CUmemorytype type) { return type == CU_MEMORYTYPE_DEVICE ? End::kDevice : End::kEither; };
    if (!valid_end(driver, end(copy->srcMemoryType), from, from_pitch * (height - 1) + width) ||
        !valid_end(driver, end(copy->dstMemoryType), to, to_pitch * (height - 1) + width)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    Context* context = stream->context();
    auto operation = [&driver, context, from, to, from_pitch, to_pitch, width, height] {
      if (context->stopped().load()) return;
      for (std::size_t row = 0; row < height; ++row) {
        std::memmove(pointer_to(to + row * to_pitch), pointer_to(from + row * from_pitch), width);
      }
      driver.doorbell.ring();
    };
    const bool must_wait = wait || !driver.memory.lookup(to) || !driver.memory.lookup(from);
    return must_wait ? submit_and_wait(stream, operation) : submit(stream, operation);
  });
}

/// `width` elements in each of `height` rows, `pitch` bytes apart.
template <class T>
CUresult set(CUstream handle, CUdeviceptr to, std::size_t pitch, T value, std::size_t width, std::size_t height) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (width == 0 || height == 0) return CUDA_SUCCESS;
    if (to % sizeof(T) != 0 || width > (std::size_t{1} << 46) / sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (pitch < width * sizeof(T) || pitch % sizeof(T) != 0)) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_end(driver, End::kDevice, to, pitch * (height - 1) + width * sizeof(T))) return CUDA_ERROR_INVALID_VALUE;
    Context* context = stream->context();
    return submit(stream, [&driver, context, to, pitch, value, width, height] {
      if (context->stopped().load()) return;
      for (std::size_t row = 0; row < height; ++row) {
        T* first = static_cast<T*>(pointer_to(to + row * pitch));
        std::fill(first, first + width, value);
      }
      driver.doorbell.ring();
    });
  });
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, to, End::kEither, from, End::kEither, bytes, true);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, to, End::kEither, from, End::kEither, bytes, false);
}

CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(nullptr, to, End::kDevice, address_of(from), End::kHost, bytes, true);
}

CUresult CUDAAPI cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, address_of(to), End::kHost, from, End::kDevice, bytes, true);
}

CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(nullptr, to, End::kDevice, from, End::kDevice, bytes, true);
}

CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return copy(stream, to, End::kDevice, address_of(from), End::kHost, bytes, false);
}

CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, address_of(to), End::kHost, from, End::kDevice, bytes, false);
}

CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(stream, to, End::kDevice, from, End::kDevice, bytes, false);
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

CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return set(stream, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return set(stream, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return set(stream, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  return set(stream, to, pitch, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
                                    CUstream stream) {
  return set(stream, to, pitch, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height,
                                    CUstream stream) {
  return set(stream, to, pitch, value, width, height);
}

CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return set(nullptr, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return set(nullptr, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return set(nullptr, to, 0, value, count, 1);
}

CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height) {
  return set(nullptr, to, pitch, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height) {
  return set(nullptr, to, pitch, value, width, height);
}

CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height) {
  return set(nullptr, to, pitch, value, width, height);
}

}  // extern "C"
