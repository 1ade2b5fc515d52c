// The memory of the software GPU. A device address is the address of the same bytes in this process, and so it is with
// host memory the GPU may see; this map only knows what is valid, whose it is and how much is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <shared_mutex>

#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu {

enum class MemoryKind {
  kDevice,
  kManaged,
  kHost,        ///< page-locked, allocated here
  kRegistered,  ///< page-locked memory of the program
  kVariable,    ///< `.global` or `.const` of a loaded module
  kMapped,      ///< a mapping of cuMemMap; its flags say whether it may be used
};

/// In device memory for good, where the host cannot reach it.
inline bool is_device_only(MemoryKind kind) {
  return kind == MemoryKind::kDevice || kind == MemoryKind::kVariable || kind == MemoryKind::kMapped;
}

struct Allocation {
  std::uint64_t address = 0;
  std::size_t bytes = 0;  ///< as asked for
  MemoryKind kind = MemoryKind::kDevice;
  unsigned flags = 0;           ///< of cuMemHostAlloc, cuMemHostRegister; kMapped: CUmemAccess_flags, 0 for no access
  const void* owner = nullptr;  ///< the context
  std::uint64_t id = 0;         ///< unique in this process, CU_POINTER_ATTRIBUTE_BUFFER_ID
};

/// Any thread may call any method.
class Memory : public engine::MemoryMap {
 public:
  /// `limit` bytes of device memory. The address space is reserved now, pages are taken when they are touched.
  explicit Memory(std::size_t limit);
  ~Memory() override;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// Address of new memory, or 0 if there is not enough (kRegistered, kVariable: see add()).
  std::uint64_t allocate(std::size_t bytes, MemoryKind kind, unsigned flags, const void* owner);

  /// Counts physical memory that lies elsewhere. False if there is not so much left.
  bool take(std::size_t bytes);
  void give(std::size_t bytes);

  /// Makes memory that exists already known. False if it overlaps with something known.
  bool add(const Allocation& allocation);

  /// Frees or forgets what starts at `address` and is of one of two kinds. False if there is no such thing.
  bool release(std::uint64_t address, MemoryKind kind, MemoryKind or_kind);

  /// Frees and forgets everything that belongs to a context.
  void release_owner(const void* owner);

  /// Changes the flags of what starts at `address`.
  void set_flags(std::uint64_t address, unsigned flags);

  /// What holds that address.
  std::optional<Allocation> lookup(std::uint64_t address) const;

  /// True if all of [address, address + bytes) lies in one allocation, or in mappings side by side, and may be used.
  bool covers(std::uint64_t address, std::size_t bytes) const;

  std::size_t limit() const { return limit_; }
  std::size_t free_bytes() const;

  Range find(std::uint64_t address) const override;

 private:
  struct Entry : Allocation {
    std::size_t reserved = 0;  ///< bytes taken from the arena or from the system
  };
  void give_back(const Entry& entry);
  const Entry* find_entry(std::uint64_t address) const;
  Range usable_range(std::uint64_t address) const;

  const std::size_t limit_;
  mutable std::shared_mutex mutex_;
  std::byte* arena_ = nullptr;
  std::map<std::uint64_t, std::size_t> holes_;  ///< free parts of the arena: address to bytes, none touching another
  std::map<std::uint64_t, Entry> entries_;
  std::size_t used_ = 0;
  std::uint64_t next_id_ = 1;
};

}  // namespace gpuctl::softgpu
