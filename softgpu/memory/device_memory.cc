#include "softgpu/memory/device_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <mutex>

namespace gpuctl::softgpu {
namespace {

bool in_arena(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kManaged;
}

}  // namespace

Memory::Memory(const std::vector<std::size_t>& limits) {
  for (const std::size_t limit : limits) arenas_.emplace_back(limit);
  shared_.resize(limits.size());
}

void Memory::share(int device, Table& table, std::optional<std::size_t> all) {
  shared_[static_cast<std::size_t>(device)] = {.table = &table, .all = all};
}

bool Memory::Shared::take(std::size_t bytes) const {
  if (table == nullptr || bytes == 0) return true;
  const Table::Lock lock(*table);
  return table->take_memory(bytes, all.value_or(std::numeric_limits<std::size_t>::max()));
}

void Memory::Shared::give(std::size_t bytes) const {
  if (table == nullptr || bytes == 0) return;
  const Table::Lock lock(*table);
  table->give_memory(bytes);
}

void Memory::move_out() {
  const std::unique_lock lock(mutex_);
  for (Shared& shared : shared_) {
    if (shared.table == nullptr) continue;
    shared.moved_out = shared.table->own_memory();
    shared.give(shared.moved_out);
  }
}

bool Memory::bring_back() {
  const std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < shared_.size(); ++i) {
    if (shared_[i].take(shared_[i].moved_out)) continue;
    for (std::size_t taken = 0; taken < i; ++taken) shared_[taken].give(shared_[taken].moved_out);
    return false;
  }
  for (Shared& shared : shared_) shared.moved_out = 0;
  return true;
}

bool Memory::any(MemoryKind kind) const {
  const std::shared_lock lock(mutex_);
  return std::ranges::any_of(entries_, [kind](const auto& entry) { return entry.second.kind == kind; });
}

Memory::~Memory() {
  for (const auto& [address, entry] : entries_) {
    if (entry.kind == MemoryKind::kHost) munmap(reinterpret_cast<void*>(address), entry.reserved);
  }
}

std::uint64_t Memory::allocate(std::size_t bytes, MemoryKind kind, unsigned flags, const void* owner, int device) {
  if (bytes == 0 || bytes > (std::size_t{1} << 46)) return 0;
  const std::unique_lock lock(mutex_);
  Entry entry;
  if (in_arena(kind)) {
    entry.reserved = Arena::size_of(bytes);
    if (!shared_of(device).take(entry.reserved)) return 0;
    entry.address = arena_of(device).allocate(entry.reserved);
    if (entry.address == 0) shared_of(device).give(entry.reserved);
  } else {
    entry.reserved = align_up(bytes, kPage);
    entry.address = reinterpret_cast<std::uint64_t>(map_pages(entry.reserved));
  }
  if (entry.address == 0) return 0;
  entry.bytes = bytes;
  entry.kind = kind;
  entry.flags = flags;
  entry.owner = owner;
  entry.device = device;
  entry.id = next_id_++;
  entries_.emplace(entry.address, entry);
  return entry.address;
}

bool Memory::take(std::size_t bytes, int device) {
  const std::unique_lock lock(mutex_);
  if (!shared_of(device).take(bytes)) return false;
  const bool taken = arena_of(device).take(bytes);
  if (!taken) shared_of(device).give(bytes);
  return taken;
}

void Memory::give(std::size_t bytes, int device) {
  const std::unique_lock lock(mutex_);
  arena_of(device).give(bytes);
  shared_of(device).give(bytes);
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
  arena_of(entry.device).free(entry.address, entry.reserved);
  shared_of(entry.device).give(entry.reserved);
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

void Memory::set_access(std::uint64_t address, int device, unsigned access) {
  const std::unique_lock lock(mutex_);
  const auto found = entries_.find(address);
  if (found == entries_.end()) return;
  unsigned& flags = found->second.flags;
  flags = (flags & ~(3U << (2 * device))) | access << (2 * device);
}

std::optional<Allocation> Memory::lookup(std::uint64_t address) const {
  const std::shared_lock lock(mutex_);
  const Entry* entry = find_entry(address);
  if (entry == nullptr) return std::nullopt;
  return *entry;
}

bool Memory::covers(std::uint64_t address, std::size_t bytes) const {
  const std::shared_lock lock(mutex_);
  const Range range =
      usable_range(address, [](const Entry& entry) { return entry.kind != MemoryKind::kMapped || entry.flags != 0; });
  return range.end > range.begin && bytes <= range.end - address;
}

std::size_t Memory::limit(int device) const {
  return arenas_[static_cast<std::size_t>(device)].limit();
}

std::size_t Memory::free_bytes(int device) const {
  const std::shared_lock lock(mutex_);
  const std::size_t own = arenas_[static_cast<std::size_t>(device)].free_bytes();
  const Shared& shared = shared_of(device);
  if (shared.table == nullptr || !shared.all) return own;
  const Table::Lock held(*shared.table);
  return std::min<std::size_t>(own, *shared.all - std::min<std::size_t>(*shared.all, shared.table->memory_held()));
}

Memory::Range Memory::find(std::uint64_t address, int device, unsigned peers) const {
  const std::shared_lock lock(mutex_);
  return usable_range(address, [&](const Entry& entry) {
    if (entry.kind == MemoryKind::kMapped) return access_of(entry.flags, device) != 0;
    return !is_device_only(entry.kind) || entry.device == device || (peers >> entry.device & 1) != 0;
  });
}

/// Adjacent mappings are one range: a program may map more memory after its own and access both as one.
template <class MayUse>
Memory::Range Memory::usable_range(std::uint64_t address, MayUse may_use) const {
  const Entry* entry = find_entry(address);
  if (entry == nullptr || !may_use(*entry)) return {};
  Range range{entry->address, entry->address + entry->bytes};
  if (entry->kind != MemoryKind::kMapped) return range;
  const auto joins = [&](const Entry& other) { return other.kind == MemoryKind::kMapped && may_use(other); };
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
