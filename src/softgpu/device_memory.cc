#include "softgpu/device_memory.h"

#include <sys/mman.h>

#include <mutex>

#include "softgpu/device_limits.h"

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kPage = 4096;
/// From this size on freed memory is given back to the system at once.
constexpr std::size_t kReturnBytes = 1 << 20;

std::size_t align_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool in_arena(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
}

void* map_pages(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

}  // namespace

Memory::Memory(std::size_t limit) : limit_(align_up(limit, kPage)) {
  arena_ = static_cast<std::byte*>(map_pages(limit_));
  if (arena_ != nullptr) holes_.emplace(reinterpret_cast<std::uint64_t>(arena_), limit_);
}

Memory::~Memory() {
  for (const auto& [address, entry] : entries_) {
    if (entry.kind == MemoryKind::kHost) munmap(reinterpret_cast<void*>(address), entry.reserved);
  }
  if (arena_ != nullptr) munmap(arena_, limit_);
}

std::uint64_t Memory::allocate(std::size_t bytes, MemoryKind kind, unsigned flags, const void* owner) {
  if (bytes == 0 || bytes > (std::size_t{1} << 46)) return 0;
  const std::unique_lock lock(mutex_);
  Entry entry;
  if (in_arena(kind)) {
    entry.reserved = align_up(bytes, kAllocAlign);
    if (entry.reserved > limit_ - used_) return 0;
    auto hole = holes_.begin();
    while (hole != holes_.end() && hole->second < entry.reserved) ++hole;
    if (hole == holes_.end()) return 0;
    entry.address = hole->first;
    const std::size_t rest = hole->second - entry.reserved;
    holes_.erase(hole);
    if (rest > 0) holes_.emplace(entry.address + entry.reserved, rest);
    used_ += entry.reserved;
  } else {
    entry.reserved = align_up(bytes, kPage);
    entry.address = reinterpret_cast<std::uint64_t>(map_pages(entry.reserved));
    if (entry.address == 0) return 0;
  }
  entry.bytes = bytes;
  entry.kind = kind;
  entry.flags = flags;
  entry.owner = owner;
  entry.id = next_id_++;
  entries_.emplace(entry.address, entry);
  return entry.address;
}

bool Memory::take(std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  if (bytes > limit_ - used_) return false;
  used_ += bytes;
  return true;
}

void Memory::give(std::size_t bytes) {
  const std::unique_lock lock(mutex_);
  used_ -= bytes;
}

bool Memory::add(const Allocation& allocation) {
  if (allocation.address == 0 || allocation.bytes == 0) return false;
  const std::unique_lock lock(mutex_);
  const auto next = entries_.lower_bound(allocation.address);
  if (next != entries_.end() && next->first < allocation.address + allocation.bytes) return false;
  if (find_entry(allocation.address) != nullptr) return false;
  Entry entry{allocation};
  entry.id = next_id_++;
  entries_.emplace(entry.address, entry);
  return true;
}

void Memory::give_back(const Entry& entry) {
  if (entry.kind == MemoryKind::kHost) munmap(reinterpret_cast<void*>(entry.address), entry.reserved);
  if (!in_arena(entry.kind)) return;
  used_ -= entry.reserved;
  std::uint64_t begin = entry.address;
  std::uint64_t end = begin + entry.reserved;
  if (entry.reserved >= kReturnBytes) {
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

bool Memory::release(std::uint64_t address, MemoryKind kind, MemoryKind or_kind) {
  const std::unique_lock lock(mutex_);
  const auto found = entries_.find(address);
  if (found == entries_.end() || (found->second.kind != kind && found->second.kind != or_kind)) return false;
  give_back(found->second);
  entries_.erase(found);
  return true;
}

void Memory::release_owner(const void* owner) {
  const std::unique_lock lock(mutex_);
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    if (entry->second.owner != owner) {
      ++entry;
      continue;
    }
    give_back(entry->second);
    entry = entries_.erase(entry);
  }
}

const Memory::Entry* Memory::find_entry(std::uint64_t address) const {
  auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return nullptr;
  const Entry& entry = std::prev(after)->second;
  return address - entry.address < entry.bytes ? &entry : nullptr;
}

void Memory::set_flags(std::uint64_t address, unsigned flags) {
  const std::unique_lock lock(mutex_);
  const auto found = entries_.find(address);
  if (found != entries_.end()) found->second.flags = flags;
}

std::optional<Allocation> Memory::lookup(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const Entry* entry = find_entry(address);
  if (entry == nullptr) return std::nullopt;
  return *entry;
}

bool Memory::covers(std::uint64_t address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const Range range = usable_range(address);
  return range.end > range.begin && bytes <= range.end - address;
}

std::size_t Memory::free_bytes() const {
  const std::shared_lock lock(mutex_);
  return limit_ - used_;
}

engine::MemoryMap::Range Memory::find(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  return usable_range(address);
}

/// Mappings that touch each other are one range: a program that maps more behind what it has goes on through it.
Memory::Range Memory::usable_range(std::uint64_t address) const {
  const Entry* entry = find_entry(address);
  if (entry == nullptr) return {};
  Range range{entry->address, entry->address + entry->bytes};
  if (entry->kind != MemoryKind::kMapped) return range;
  const auto joins = [](const Entry& other) { return other.kind == MemoryKind::kMapped && other.flags != 0; };
  if (!joins(*entry)) return {};
  const auto start = entries_.find(entry->address);
  for (auto next = std::next(start); next != entries_.end() && next->first == range.end && joins(next->second);
       ++next) {
    range.end += next->second.bytes;
  }
  for (auto at = start; at != entries_.begin();) {
    const Entry& previous = (--at)->second;
    if (previous.address + previous.bytes != range.begin || !joins(previous)) break;
    range.begin = previous.address;
  }
  return range;
}

}  // namespace gpuctl::softgpu
