// What the library allocates from when the system gives it no memory: a fixed reserve, so that calls that are under way
// end well. From the first such allocation on the library stands aside: it manages nothing new, and the program's
// calls go to the driver as they came (memory_ran_out()).
//
// All `new` of the library comes here (memory_reserve.cc), and no `new` of the program does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuslice {

/// Memory that is handed out once, and never again. Any thread; takes no lock, so it may be used in a forked child too.
template <std::size_t bytes>
class MemoryReserve {
 public:
  /// `alignment` is a power of two, at most 64. Null: there is not that much left.
  void* take(std::size_t size, std::size_t alignment) noexcept {
    if (alignment > kMostAlignment) return nullptr;
    std::size_t used = used_.load(std::memory_order_relaxed);
    for (;;) {
      const std::size_t begin = (used + alignment - 1) / alignment * alignment;
      if (begin > bytes || size > bytes - begin) return nullptr;
      if (used_.compare_exchange_weak(used, begin + size, std::memory_order_relaxed)) return &memory_[begin];
    }
  }

  /// Whether `pointer` came from take().
  bool has(const void* pointer) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer), begin = reinterpret_cast<std::uintptr_t>(memory_);
    return address >= begin && address < begin + bytes;
  }

  /// Whether take() was ever called with success.
  bool touched() const noexcept { return used_.load(std::memory_order_relaxed) != 0; }

 private:
  static constexpr std::size_t kMostAlignment = 64;
  alignas(kMostAlignment) std::byte memory_[bytes];  ///< costs address space only, until it is used
  std::atomic<std::size_t> used_;
};

/// Whether the system once refused memory to the library. Any thread.
bool memory_ran_out() noexcept;

}  // namespace gpuslice
