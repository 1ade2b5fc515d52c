// cuMemAlloc*, cuMemHost*, cuPointer*: allocates, frees and queries memory.
//
// As in the real driver, cuMemFree and cuMemFreeHost first wait for all work of the context (cuMemFree also of the
// context that has allocated the memory). So a program, or a library below it, that cannot bear this wait is found out
// here.
#include <cuda.h>

#include <cstring>

#include "softgpu/device/printed.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

CUresult allocate(Driver& driver, Context& context, CUdeviceptr* result, std::size_t bytes, MemoryKind kind) {
  if (result == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
  const std::uint64_t address = driver.memory.allocate(bytes, kind, 0, &context, context.device().ordinal);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *result = address;
  return CUDA_SUCCESS;
}

/// The context that has allocated the memory at the address.
std::shared_ptr<Context> owner_of(Driver& driver, CUdeviceptr address) {
  const std::optional<Allocation> found = driver.memory.lookup(address);
  return found ? driver.contexts.find(static_cast<CUcontext>(const_cast<void*>(found->owner))) : nullptr;
}

/// Frees memory that a launch of a graph has allocated; the next launch may allocate it again. It cannot be freed
/// before the first launch.
CUresult free_graph_memory(Driver& driver, const std::shared_ptr<GraphMemory>& memory) {
  if (!driver.graph_memories.live(*memory)) return CUDA_ERROR_INVALID_VALUE;
  driver.graph_memories.set_live(memory, false);
  return CUDA_SUCCESS;
}

bool on_device(MemoryKind kind) {
  return is_device_only(kind) || kind == MemoryKind::kManaged;
}

template <class T>
void answer(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
}

CUresult pointer_attribute(Driver& driver, void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const std::optional<Allocation> found = driver.memory.lookup(pointer);
  if (!found) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      answer(data, found->owner);
      break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      answer(data, on_device(found->kind) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      answer(data, pointer);
      break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (is_device_only(found->kind)) return CUDA_ERROR_INVALID_VALUE;
      answer(data, pointer);
      break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      answer(data, found->id);
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      answer(data, static_cast<int>(found->kind == MemoryKind::kManaged));
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      answer(data, found->device);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      answer(data, found->address);
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      answer(data, found->bytes);
      break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      answer(data, 1);
      break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      answer(data, 0);
      break;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

std::size_t attribute_bytes(CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return sizeof(int);
    default:
      return sizeof(std::uint64_t);
  }
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  return with_context([&](Driver& driver, Context& context) {
    if (free != nullptr) *free = driver.memory.free_bytes(context.device().ordinal);
    if (total != nullptr) *total = driver.memory.limit(context.device().ordinal);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* result, size_t bytes) {
  return with_context(
      [&](Driver& driver, Context& context) { return allocate(driver, context, result, bytes, MemoryKind::kDevice); });
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* result, size_t* pitch, size_t width, size_t height,
                                    unsigned int element_bytes) {
  return with_context([&](Driver& driver, Context& context) {
    if (pitch == nullptr || width == 0 || height == 0 || width > (std::size_t{1} << 31))
      return CUDA_ERROR_INVALID_VALUE;
    if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t row = (width + kPitchAlign - 1) / kPitchAlign * kPitchAlign;
    if (height > (std::size_t{1} << 46) / row) return CUDA_ERROR_OUT_OF_MEMORY;
    const CUresult allocated = allocate(driver, context, result, row * height, MemoryKind::kDevice);
    if (allocated == CUDA_SUCCESS) *pitch = row;
    return allocated;
  });
}

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* result, size_t bytes, unsigned int flags) {
  return with_context([&](Driver& driver, Context& context) {
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
    return allocate(driver, context, result, bytes, MemoryKind::kManaged);
  });
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  const WritesWhatWasPrinted writes;
  return with_context([&](Driver& driver, Context& context) {
    if (address == 0) return CUDA_SUCCESS;
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    context.synchronize();
    if (const std::shared_ptr<Context> owner = owner_of(driver, address); owner != nullptr && owner.get() != &context)
      owner->synchronize();
    if (context.error() != CUDA_SUCCESS) return context.error();
    if (const auto of_graph = driver.graph_memories.find(address)) return free_graph_memory(driver, of_graph);
    const bool freed = driver.memory.release(address, MemoryKind::kDevice, MemoryKind::kManaged);
    return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* result, size_t bytes, CUstream handle) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (result == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    bool capturing = false;
    const CUresult refused = driver.captures.check_work(*stream, &capturing);
    if (refused != CUDA_SUCCESS) return refused;
    if (!capturing) {
      Context* context = stream->context();
      *result = driver.memory.allocate(bytes, MemoryKind::kDevice, 0, context, context->device().ordinal);
      return *result != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    const std::shared_ptr<GraphMemory> memory = driver.graph_memories.allocate(*stream->context(), bytes);
    if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *result = memory->address();
    return driver.captures.add(*stream, AllocWork{memory});
  });
}

CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return with_stream(handle, [&](Driver& driver, const std::shared_ptr<Stream>& stream) {
    if (address == 0) return CUDA_SUCCESS;
    const std::optional<Allocation> found = driver.memory.lookup(address);
    if (!found || found->address != address || found->kind != MemoryKind::kDevice) return CUDA_ERROR_INVALID_VALUE;
    bool capturing = false;
    const CUresult refused = driver.captures.check_work(*stream, &capturing);
    if (refused != CUDA_SUCCESS) return refused;
    const std::shared_ptr<GraphMemory> of_graph = driver.graph_memories.find(address);
    if (capturing && of_graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (capturing) return driver.captures.add(*stream, FreeWork{of_graph});
    if (of_graph != nullptr) return free_graph_memory(driver, of_graph);
    return submit(stream, [&driver, address, context = stream->context()] {
      if (!context->stopped().load()) driver.memory.release(address, MemoryKind::kDevice, MemoryKind::kDevice);
    });
  });
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return with_context([&](Driver& driver, Context&) {
    const std::optional<Allocation> found = driver.memory.lookup(address);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = found->address;
    if (bytes != nullptr) *bytes = found->bytes;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostAlloc(void** result, size_t bytes, unsigned int flags) {
  return with_context([&](Driver& driver, Context& context) {
    if (result == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    const std::uint64_t address =
        driver.memory.allocate(bytes, MemoryKind::kHost, flags, &context, context.device().ordinal);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *result = reinterpret_cast<void*>(address);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemAllocHost_v2(void** result, size_t bytes) {
  return cuMemHostAlloc(result, bytes, 0);
}

CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return with_context([&](Driver& driver, Context& context) {
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    context.synchronize();
    if (context.error() != CUDA_SUCCESS) return context.error();
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const bool freed = driver.memory.release(address, MemoryKind::kHost, MemoryKind::kHost);
    return freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned int flags) {
  return with_context([&](Driver& driver, Context& context) {
    if (pointer == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    Allocation registered;
    registered.address = reinterpret_cast<std::uint64_t>(pointer);
    registered.bytes = bytes;
    registered.kind = MemoryKind::kRegistered;
    registered.flags = flags;
    registered.owner = &context;
    registered.device = context.device().ordinal;
    return driver.memory.add(registered) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  });
}

CUresult CUDAAPI cuMemHostUnregister(void* pointer) {
  return with_context([&](Driver& driver, Context& context) {
    if (const CUresult unsafe = driver.captures.check_unsafe(); unsafe != CUDA_SUCCESS) return unsafe;
    context.synchronize();
    if (context.error() != CUDA_SUCCESS) return context.error();
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    const bool found = driver.memory.release(address, MemoryKind::kRegistered, MemoryKind::kRegistered);
    return found ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  });
}

CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr* result, void* pointer, unsigned int flags) {
  return with_context([&](Driver& driver, Context&) {
    const auto address = reinterpret_cast<std::uint64_t>(pointer);
    if (result == nullptr || flags != 0 || !driver.memory.lookup(address)) return CUDA_ERROR_INVALID_VALUE;
    *result = address;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuMemHostGetFlags(unsigned int* flags, void* pointer) {
  return with_context([&](Driver& driver, Context&) {
    const std::optional<Allocation> found = driver.memory.lookup(reinterpret_cast<std::uint64_t>(pointer));
    if (flags == nullptr || !found || found->kind != MemoryKind::kHost) return CUDA_ERROR_INVALID_VALUE;
    *flags = found->flags | CU_MEMHOSTALLOC_DEVICEMAP;
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  return with_context([&](Driver& driver, Context&) {
    if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return pointer_attribute(driver, data, attribute, pointer);
  });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned int count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr pointer) {
  return with_context([&](Driver& driver, Context&) {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; ++i) {
      if (data[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      // For memory that the driver does not know, the query succeeds with a zero value.
      if (pointer_attribute(driver, data[i], attributes[i], pointer) != CUDA_SUCCESS) {
        std::memset(data[i], 0, attribute_bytes(attributes[i]));
        if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) answer(data[i], -2);
      }
    }
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
