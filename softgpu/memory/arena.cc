#include "softgpu/memory/arena.h"

#include <sys/mman.h>

#include <iterator>

#include "softgpu/table/device_limits.h"

namespace gpuctl::softgpu {
namespace {

/// Freed memory of at least this size is returned to the system at once.
constexpr std::size_t kReturnBytes = 1 << 20;

}  // namespace

void* map_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

Arena::Arena(std::size_t limit) : limit_(align_up(limit, kPage)) {
  start_ = static_cast<std::byte*>(map_pages(limit_));
  if (start_ != nullptr) holes_.emplace(reinterpret_cast<std::uint64_t>(start_), limit_);
}

Arena::~Arena() {
  if (start_ != nullptr) munmap(start_, limit_);
}

std::size_t Arena::size_of(std::size_t bytes) {
  return align_up(bytes, kAllocAlign);
}

std::uint64_t Arena::allocate(std::size_t size) {
  if (size > limit_ - used_) return 0;
  auto hole = holes_.begin();
  while (hole != holes_.end() && hole->second < size) ++hole;
  if (hole == holes_.end()) return 0;
  const std::uint64_t address = hole->first;
  const std::size_t rest = hole->second - size;
  holes_.erase(hole);
  if (rest > 0) holes_.emplace(address + size, rest);
  used_ += size;
  return address;
}

void Arena::free(std::uint64_t address, std::size_t size) {
  used_ -= size;
  std::uint64_t begin = address;
  std::uint64_t end = begin + size;
  if (size >= kReturnBytes) {
    const std::uint64_t first_page = align_up(begin, kPage);
    madvise(reinterpret_cast<void*>(first_page), end / kPage * kPage - first_page, MADV_DONTNEED);
  }
  auto next = holes_.lower_bound(begin);
  if (next != holes_.end() && next->first == end) {
    end += next->second;
    next = holes_.erase(next);
  }
  if (next != holes_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == begin) {
      begin = previous->first;
      holes_.erase(previous);
    }
  }
  holes_.emplace(begin, end - begin);
}

bool Arena::take(std::size_t bytes) {
  if (bytes > limit_ - used_) return false;
  used_ += bytes;
  return true;
}

}  // namespace gpuctl::softgpu
