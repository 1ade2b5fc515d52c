#include "libgpuslice/base/memory_reserve.h"

#include <algorithm>
#include <cstdlib>
#include <new>

#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/launch_words.h"

namespace gpuslice {

namespace {

/// Enough for a start and for all that is under way in some dozens of threads.
constexpr std::size_t kReserveBytes = std::size_t{1} << 20;

MemoryReserve<kReserveBytes> g_reserve;  // zero at load, without a constructor that runs

void* or_from_reserve(void* memory, std::size_t size, std::size_t alignment) {
  if (memory) return memory;
  if (!memory_ran_out()) debug("the system gives no memory: from here on kernels keep their original form");
  if (void* reserved = g_reserve.take(size, alignment)) {
    g_launch_words.memory_ran_out.store(true, std::memory_order_relaxed);
    return reserved;
  }
  throw std::bad_alloc();
}

void give_back(void* memory) noexcept {
  if (!g_reserve.has(memory)) std::free(memory);
}

}  // namespace

bool memory_ran_out() noexcept {
  return g_launch_words.memory_ran_out.load(std::memory_order_relaxed);
}

}  // namespace gpuslice

// The linker's version script hides these, so they serve this library alone. The other forms of the C++ library call
// them. Those of a sanitizer's runtime do not, so each form whose memory comes back to these is here.
void* operator new(std::size_t size) {
  return gpuslice::or_from_reserve(std::malloc(std::max<std::size_t>(size, 1)), size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return gpuslice::or_from_reserve(std::aligned_alloc(to, (std::max<std::size_t>(size, 1) + to - 1) / to * to), size,
                                   to);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  gpuslice::give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  gpuslice::give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  gpuslice::give_back(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  gpuslice::give_back(memory);
}
