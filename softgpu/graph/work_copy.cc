// Copies and memsets: checks and running them.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "softgpu/contexts/machine.h"
#include "softgpu/graph/work.h"

namespace gpuctl::softgpu {
namespace {

void* pointer_to(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}

/// One end of a copy: its first byte, and the distance in bytes of rows and of slices.
struct End {
  std::uint64_t start = 0;
  std::size_t row = 0;
  std::size_t slice = 0;
};

End source_end(const CUDA_MEMCPY3D& copy) {
  const std::size_t row = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  const std::size_t slice = row * (copy.srcHeight != 0 ? copy.srcHeight : copy.Height);
  const std::uint64_t base =
      copy.srcMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.srcHost) : copy.srcDevice;
  return {base + copy.srcZ * slice + copy.srcY * row + copy.srcXInBytes, row, slice};
}

End target_end(const CUDA_MEMCPY3D& copy) {
  const std::size_t row = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  const std::size_t slice = row * (copy.dstHeight != 0 ? copy.dstHeight : copy.Height);
  const std::uint64_t base =
      copy.dstMemoryType == CU_MEMORYTYPE_HOST ? reinterpret_cast<std::uint64_t>(copy.dstHost) : copy.dstDevice;
  return {base + copy.dstZ * slice + copy.dstY * row + copy.dstXInBytes, row, slice};
}

/// False if that end cannot be of the kind that the copy says.
bool valid_end(Machine& machine, CUmemorytype type, const End& end, const CUDA_MEMCPY3D& copy) {
  if (end.start == 0 || end.row < copy.WidthInBytes || (copy.Depth > 1 && end.slice < end.row * copy.Height)) {
    return false;
  }
  const std::size_t bytes = end.slice * (copy.Depth - 1) + end.row * (copy.Height - 1) + copy.WidthInBytes;
  if (type == CU_MEMORYTYPE_DEVICE) return machine.memory.covers(end.start, bytes);
  // Ordinary memory of the program is not registered here, but a copy must not go beyond the end of registered memory.
  return !machine.memory.lookup(end.start) || machine.memory.covers(end.start, bytes);
}

template <class T>
void fill(const CUDA_MEMSET_NODE_PARAMS& set) {
  for (std::size_t row = 0; row < set.height; ++row) {
    T* first = static_cast<T*>(pointer_to(set.dst + row * set.pitch));
    std::fill(first, first + set.width, static_cast<T>(set.value));
  }
}

/// Copies whole words of memory in which both ends are aligned alike.
template <class T>
void copy_words(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  auto* target = static_cast<T*>(pointer_to(to));
  auto* source = static_cast<const T*>(pointer_to(from));
  for (std::size_t i = 0; i < bytes / sizeof(T); ++i) {
    __atomic_store_n(target + i, __atomic_load_n(source + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  }
}

/// Copies as a GPU does: a word that a kernel changes at the same time is copied with its old or its new value, never
/// half changed.
void copy_bytes(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  if (to < from + bytes && from < to + bytes) {
    std::memmove(pointer_to(to), pointer_to(from), bytes);
    return;
  }
  const std::uint64_t apart = to ^ from;
  const std::size_t word = apart % 8 == 0 ? 8 : apart % 4 == 0 ? 4 : 1;
  const std::size_t before = std::min(bytes, static_cast<std::size_t>(-to % word));
  const std::size_t whole = (bytes - before) / word * word;
  copy_words<std::uint8_t>(to, from, before);
  if (word == 8) copy_words<std::uint64_t>(to + before, from + before, whole);
  if (word == 4) copy_words<std::uint32_t>(to + before, from + before, whole);
  if (word == 1) copy_words<std::uint8_t>(to + before, from + before, whole);
  copy_words<std::uint8_t>(to + before + whole, from + before + whole, bytes - before - whole);
}

}  // namespace

CUDA_MEMCPY3D flat_copy(CUmemorytype to_type, std::uint64_t to, CUmemorytype from_type, std::uint64_t from,
                        std::size_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = from_type;
  copy.dstMemoryType = to_type;
  if (from_type == CU_MEMORYTYPE_HOST) {
    copy.srcHost = pointer_to(from);
  } else {
    copy.srcDevice = from;
  }
  if (to_type == CU_MEMORYTYPE_HOST) {
    copy.dstHost = pointer_to(to);
  } else {
    copy.dstDevice = to;
  }
  copy.WidthInBytes = bytes;
  copy.Height = 1;
  copy.Depth = 1;
  return copy;
}

std::uint64_t copy_source(const CUDA_MEMCPY3D& copy) {
  return source_end(copy).start;
}

std::uint64_t copy_target(const CUDA_MEMCPY3D& copy) {
  return target_end(copy).start;
}

CUresult check_copy(Machine& machine, const CUDA_MEMCPY3D& copy) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY || copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  const bool valid = valid_end(machine, copy.srcMemoryType, source_end(copy), copy) &&
                     valid_end(machine, copy.dstMemoryType, target_end(copy), copy);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult check_set(Machine& machine, const CUDA_MEMSET_NODE_PARAMS& set) {
  const std::size_t unit = set.elementSize;
  if (unit != 1 && unit != 2 && unit != 4) return CUDA_ERROR_INVALID_VALUE;
  if (set.width == 0 || set.height == 0) return CUDA_SUCCESS;
  if (set.dst % unit != 0 || set.width > (std::size_t{1} << 46) / unit) return CUDA_ERROR_INVALID_VALUE;
  if (set.height > 1 && (set.pitch < set.width * unit || set.pitch % unit != 0)) return CUDA_ERROR_INVALID_VALUE;
  const bool covered = machine.memory.covers(set.dst, set.pitch * (set.height - 1) + set.width * unit);
  return set.dst != 0 && covered ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void run_copy(Machine& machine, const CopyWork& work) {
  const End from = source_end(work.what);
  const End to = target_end(work.what);
  for (std::size_t slice = 0; slice < work.what.Depth; ++slice) {
    for (std::size_t row = 0; row < work.what.Height; ++row) {
      copy_bytes(to.start + slice * to.slice + row * to.row, from.start + slice * from.slice + row * from.row,
                 work.what.WidthInBytes);
    }
  }
  machine.doorbell.ring();
}

void run_set(Machine& machine, const SetWork& work) {
  std::this_thread::sleep_for(std::chrono::microseconds(machine.config.memset_us));
  if (work.what.elementSize == 1) fill<std::uint8_t>(work.what);
  if (work.what.elementSize == 2) fill<std::uint16_t>(work.what);
  if (work.what.elementSize == 4) fill<std::uint32_t>(work.what);
  machine.doorbell.ring();
}

}  // namespace gpuctl::softgpu
