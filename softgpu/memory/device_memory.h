// The memory of the software GPUs. A device address is the address of the same bytes in this process. That also holds
// for host memory that the GPUs may access. This map only records which memory is valid, who owns it, on which device
// it is, and how much is left there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "softgpu/engine/engine.h"
#include "softgpu/memory/arena.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {

enum class MemoryKind {
  kDevice,
  kManaged,
  kHost,        ///< page-locked, allocated here
  kRegistered,  ///< page-locked memory of the program
  kVariable,    ///< `.global` or `.const` of a loaded module
  kMapped,      ///< a mapping of cuMemMap; its flags say whether it may be used
};

/// Whether the memory is always in device memory, where the host cannot reach it.
inline bool is_device_only(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kVariable || kind == MemoryKind::kMapped;
}

struct Allocation {
  std::uint64_t address = 0;
  std::size_t bytes = 0;  ///< as requested
  MemoryKind kind = MemoryKind::kDevice;
  unsigned flags = 0;           ///< of cuMemHostAlloc, cuMemHostRegister; kMapped: see access_of()
  const void* owner = nullptr;  ///< the context
  int device = 0;               ///< where it lies, or whose context asked for it
  std::uint64_t id = 0;         ///< unique in this process, CU_POINTER_ATTRIBUTE_BUFFER_ID
};

/// The flags of a mapping hold CUmemAccess_flags for each device.
inline unsigned access_of(unsigned flags, int device) {
  return flags >> (2 * device) & 3;
}

/// Any thread may call any method.
class Memory {
 public:
  using Range = engine::MemoryMap::Range;

  /// `limits`: bytes of memory of each device. The address space is reserved now; pages are taken when they are
  /// touched.
  explicit Memory(const std::vector<std::size_t>& limits);
  /// The processes of this table have `all` bytes of the device together; none: each has the device's by itself. Before
  /// anything is allocated. The table outlives this object.
  void share(int device, Table& table, std::optional<std::size_t> all);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Address of new memory, or 0 if there is not enough (kRegistered, kVariable: see add()).
  std::uint64_t allocate(std::size_t bytes, MemoryKind kind, unsigned flags, const void* owner, int device = 0);

  /// Counts physical memory that lies elsewhere. Returns false if not that much is left.
  bool take(std::size_t bytes, int device);
  void give(std::size_t bytes, int device);

  /// Registers memory that exists already. Returns false if it overlaps registered memory.
  bool add(const Allocation& allocation);

  /// Frees or unregisters the memory that starts at `address` and is of one of two kinds. Returns false if there is
  /// none.
  bool release(std::uint64_t address, MemoryKind kind, MemoryKind or_kind);

  /// Frees and unregisters all memory that belongs to a context.
  void release_owner(const void* owner);

  /// What a device may do with the mapping that starts at `address` (CUmemAccess_flags).
  void set_access(std::uint64_t address, int device, unsigned access);

  /// The allocation that holds that address.
  std::optional<Allocation> lookup(std::uint64_t address) const;

  /// True if all of [address, address + bytes) lies in one allocation, or in adjacent mappings, and some device may use
  /// it.
  bool covers(std::uint64_t address, std::size_t bytes) const;

  std::size_t limit(int device) const;
  std::size_t free_bytes(int device) const;
  bool any(MemoryKind kind) const;

  /// All of this process's memory on the devices is elsewhere until bring_back(), and others may have as much.
  void move_out();
  /// False, with nothing done: on some device not that much is left.
  bool bring_back();

  /// The range around an address that kernels of a device may use. `peers`: the devices (bit = device) whose memory is
  /// open to those kernels.
  Range find(std::uint64_t address, int device, unsigned peers) const;

 private:
  struct Entry : Allocation {
    std::size_t reserved = 0;  ///< bytes taken from the arena or from the system
  };
  void give_back(const Entry& entry);
  const Entry* find_entry(std::uint64_t address) const;
  template <class MayUse>
  Range usable_range(std::uint64_t address, MayUse may_use) const;
  Arena& arena_of(int device) { return arenas_[static_cast<std::size_t>(device)]; }
  /// What the device's processes have in common.
  struct Shared {
    Table* table = nullptr;  ///< null: nothing
    std::optional<std::size_t> all;
    std::size_t moved_out = 0;
    bool take(std::size_t bytes) const;
    void give(std::size_t bytes) const;
  };
  const Shared& shared_of(int device) const { return shared_[static_cast<std::size_t>(device)]; }

  mutable std::shared_mutex mutex_;
  std::deque<Arena> arenas_;  ///< by device, as is the next
  std::vector<Shared> shared_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_id_ = 1;
};

/// The memory that kernels of one context may access.
class MemoryView : public engine::MemoryMap {
 public:
  MemoryView(const Memory& memory, int device) : memory_(memory), device_(device) {}

  /// The other devices whose memory is open to the context: bit = device.
  void set_peers(unsigned peers) { peers_ = peers; }

  Range find(std::uint64_t address) const override { return memory_.find(address, device_, peers_); }

 private:
  const Memory& memory_;
  const int device_;
  std::atomic<unsigned> peers_{0};
};

}  // namespace gpuctl::softgpu
