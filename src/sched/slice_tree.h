// The tree of slices: names, settings, the rights to change them, and admission. Every operation is all or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sched/allocator.h"
#include "sched/effective/effective.h"
#include "sched/on_gpu.h"
#include "sched/slice.h"
#include "sched/slices.h"

namespace gpuctl::sched {

inline constexpr std::size_t kMaxSlices = 1000;         ///< in one tree
inline constexpr std::size_t kMaxSlicesPerOwner = 100;  ///< below what root has given to one owner
inline constexpr std::size_t kSlicesKeptForRoot = 100;  ///< of kMaxSlices: others cannot create these
inline constexpr std::size_t kMaxSliceDepth = 8;        ///< levels below the root
inline constexpr std::size_t kMaxNameLength = 64;       ///< characters of one name, as in the rule below

/// Why `path` cannot be the path of a slice below the root; null if it can.
const char* bad_path(std::string_view path);

/// Of a slice, by its two ids.
struct SliceOwner {
  std::uint32_t uid, gid;
  bool operator==(const SliceOwner&) const = default;
};

/// "/" is the root, "ls" or "batch/train" are below it; a name is [A-Za-z0-9_.-]{1,64} but not "." or "..".
///
/// Rights: root, and the owner (uid or gid) of a slice or of one above it, may create, change and delete what is
/// *below* that slice. So the settings of a slice are changed by the owner of the level above. Its own owner may change
/// only `policy`, which acts below it, and who owns the root alone `join`. A new slice belongs to the uid that created
/// it and to no group.
///
/// Limits: below what root has given to an owner there are at most kMaxSlicesPerOwner slices, whoever makes or owns
/// them. The last kSlicesKeptForRoot slices are root's to create, or those of the root slice's owner.
///
/// Admission: the children's reserves never add up to more than the parent's; the root's is the capacity. So it
/// is of the memory that is kept, whose root is the GPU's. Where amounts
/// differ by GPU, that is so of changed amounts, on the largest GPUs and on those that the slice names. The largest are
/// those with the most SMs, and for memory those with the most of it. A max bounds the whole subtree. Values are
/// copyable; not thread-safe.
class SliceTree {
 public:
  /// `capacity`: SMs of the largest device. On a smaller one less is in force (effective/fit_reserves.h). The owner
  /// owns the root. What an amount is on single GPUs is not looked at, as nothing more is known of them.
  SliceTree(CapSM capacity, std::uint32_t owner_uid, std::uint32_t owner_gid = kNobody);
  /// For the GPUs of a machine, of which there is at least one.
  SliceTree(std::vector<GpuSize> gpus, std::uint32_t owner_uid, std::uint32_t owner_gid = kNobody);

  SliceResult<void> create(std::string_view path, const SliceChange& change, const Caller& caller);
  SliceResult<void> change(std::string_view path, const SliceChange& change, const Caller& caller);
  /// One slice as it is to be. A slice that does not exist is created.
  struct Edit {
    std::string_view path;
    const SliceChange* change;
  };
  /// Many slices at once, parents first: only the tree that follows from all edits must be admitted, so slices can
  /// exchange reserves. Reserves may add up to `capacity`, which is no device's. `at`: the edit that is refused. Rights
  /// are asked for what differs.
  SliceResult<void> apply(std::span<const Edit> edits, const Caller& caller, CapSM capacity, std::size_t& at);
  /// `clients`: how many clients are in the slice now. slice_busy unless that is 0 and the slice has no children.
  SliceResult<void> remove(std::string_view path, std::size_t clients, const Caller& caller);
  /// With all slices below it. `clients`: how many are in all these. slice_busy unless that is 0.
  SliceResult<void> remove_all(std::string_view path, std::size_t clients, const Caller& caller);
  /// Whether a program of the caller may join: in the root always, below it if the caller may change what is below
  /// `path`.
  SliceResult<void> may_join(std::string_view path, const Caller& caller) const;

  /// Whether the caller is root or owns `path` or a slice above it, and so may change what is below and end its
  /// programs.
  bool may_change_below(std::string_view path, const Caller& caller) const;

  /// Whether the slice exists and would be as it is, whoever made the change.
  bool changes_nothing(std::string_view path, const SliceChange& change) const;

  /// Isolates the slice or not, if its isolation is "auto".
  void isolate(std::string_view path, bool isolated);

  /// Null if there is no such slice. Valid until the next create or remove.
  const Slice* find(std::string_view path) const;

  const Slices& slices() const { return slices_; }

  /// To whom root has given the topmost slice above `path` that it has given away; none: it is root's.
  std::optional<SliceOwner> given_to(std::string_view path) const;

  const std::vector<GpuSize>& gpus() const { return gpus_; }

  /// The tree as it is on one GPU, with the same amounts for every GPU.
  SliceTree on(const GpuSize& gpu) const;

  /// What is in force for each slice, in the order of slices(). Where amounts differ by GPU: the most of any.
  std::vector<Effective> effective() const;

  /// The allocator's view of what effective() said.
  std::vector<NodeInput> nodes(std::span<const Effective> effective) const;
  std::vector<NodeInput> nodes() const { return nodes(effective()); }

  CapSM capacity() const { return capacity_; }

 private:
  void make_root(std::uint32_t owner_uid, std::uint32_t owner_gid);
  SliceResult<void> may_remove(std::string_view path, const Caller& caller) const;
  SliceResult<void> has_room(std::string_view path, const Caller& caller) const;
  SliceResult<Slice> fresh(std::string_view path, const SliceChange& change, const Caller& caller) const;
  SliceResult<Slice> allowed(std::string_view path, const Slice& now, SliceResult<Slice> wanted,
                             const Caller& caller) const;
  SliceResult<void> named_once(std::string_view path, const Slice& wanted) const;
  SliceResult<Slice> changed(std::string_view path, const SliceChange& change, const Caller& caller) const;
  SliceResult<void> admit(std::string_view path, const Slice& now, const Slice& wanted) const;
  SliceResult<void> admit_on(std::string_view path, const Slice& now, const Slice& wanted) const;
  SliceResult<void> admit_all(std::span<const Edit> edits, CapSM capacity, const SliceTree& before,
                              std::size_t& at) const;
  SliceResult<void> admit_memory(std::string_view path, const Slice& now, const Slice& wanted) const;
  bool has_to_fit(std::string_view path, const Slice& slice, const GpuSize& gpu, AmountOf of) const;
  SliceResult<void> admit_all_on(std::span<const Edit> edits, CapSM capacity, std::size_t& at) const;
  CapSM reserved_by_children(std::string_view path, std::string_view except) const;

  CapSM capacity_;
  std::vector<GpuSize> gpus_;
  Slices slices_;
};

}  // namespace gpuctl::sched
