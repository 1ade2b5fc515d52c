// The memory of one device: which parts are free, and how much is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace gpuctl::softgpu {

/// Not thread-safe.
class Arena {
 public:
  /// Reserves the address space now; pages are taken when they are touched.
  explicit Arena(std::size_t limit);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// The bytes that an allocation of that size occupies.
  static std::size_t size_of(std::size_t bytes);

  /// Allocates `size` bytes, a value of size_of(). Returns 0 if there is no room.
  std::uint64_t allocate(std::size_t size);
  void free(std::uint64_t address, std::size_t size);

  /// Counts memory that lies elsewhere. Returns false if not that much is left.
  bool take(std::size_t bytes);
  void give(std::size_t bytes) { used_ -= bytes; }

  std::size_t limit() const { return limit_; }
  std::size_t free_bytes() const { return limit_ - used_; }

 private:
  const std::size_t limit_;
  std::byte* start_ = nullptr;
  std::map<std::uint64_t, std::size_t> holes_;  ///< free parts: address to bytes, none touching another
  std::size_t used_ = 0;
};

/// Anonymous memory of the process, nullptr if there is none.
void* map_pages(std::size_t bytes);

inline constexpr std::size_t kPage = 4096;

constexpr std::size_t align_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace gpuctl::softgpu
