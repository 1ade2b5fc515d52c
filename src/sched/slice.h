// The settings of a slice, a change to them, and why a change may be refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/device_list.h"
#include "base/join_text.h"
#include "base/per_gpu.h"
#include "base/quota_text.h"
#include "base/result.h"
#include "base/slice_settings.h"
#include "sched/capsm.h"

namespace gpuctl::sched {

struct Policy;

enum class ReserveMode {
  strict,  ///< kept free while idle: its clients start without waiting (SMGuard's reservation)
  active,  ///< kept free while the slice has had work within its hold, otherwise lent
};
std::string_view mode_name(ReserveMode mode);
/// Empty if there is no such mode.
std::optional<ReserveMode> reserve_mode(std::string_view name);

/// For mode `active`: how long after its last work a slice counts as active.
inline constexpr std::chrono::milliseconds kReserveHold{slice_setting("reserve_hold_ms").number_default};

inline constexpr std::uint32_t kNobody = 0xffffffff;  ///< a gid that no process has: no group owns the slice
inline constexpr std::uint32_t kWeightDefault = slice_setting("weight").number_default;
inline constexpr std::int32_t kPriorityMin = slice_setting("priority").least,
                              kPriorityMax = slice_setting("priority").greatest;

/// Of what is in force.
constexpr std::string_view isolation_name(bool isolated) {
  return isolated ? kIsolations[2] : kIsolations[1];
}

/// The value of the setting `frozen`.
constexpr std::string_view frozen_name(bool frozen, bool swapped) {
  return swapped ? kFrozen[2] : frozen ? kFrozen[1] : kFrozen[0];
}

/// The settings of one node of the tree, all of them valid.
struct Slice {
  CapSM reserve{};  ///< of every GPU, as are `max` and `memory_max`; see sched/on_gpu.h for the next
  PerGpu reserve_per_gpu;
  ReserveMode reserve_mode = ReserveMode::active;
  std::chrono::milliseconds reserve_hold = kReserveHold;
  CapSM max = kUnlimitedCapSM;
  PerGpu max_per_gpu;
  std::string quota{slice_setting("quota").text_default}, burst{slice_setting("burst").text_default};  ///< quota_of()
  std::uint32_t weight = kWeightDefault;
  std::int32_t priority = 0;
  bool isolated = false;         ///< its programs share no context of the GPU with others
  bool isolated_by_auto = true;  ///< SliceTree::isolate() says so, not the setting
  std::uint64_t memory_min = 0;  ///< bytes that are kept for its programs together
  PerGpu memory_min_per_gpu;
  std::optional<std::uint64_t> memory_max;  ///< bytes, of all its programs together
  PerGpu memory_max_per_gpu;
  std::optional<std::uint64_t> memory_high;  ///< bytes: above it allocations wait
  PerGpu memory_high_per_gpu;
  std::string latency{slice_setting("latency").text_default};  ///< base/latency_text.h
  const Policy* policy = nullptr;  ///< a row of the policy table, never null inside a SliceTree
  std::string job_policy;          ///< a policy for jobs, with its options; "": none, `policy` alone divides
  bool frozen = false;             ///< its programs get no SMs
  bool swapped = false;            ///< it is frozen, and their memory is to be on the host
  std::uint32_t owner_uid = 0;
  std::uint32_t owner_gid = kNobody;
  std::vector<Join> join;            ///< whose programs are in it that name no slice
  std::vector<std::string> devices;  ///< names of GPUs that its programs see; empty: all that slices above have
  bool seen = true;                  ///< on one GPU (sched/on_gpu.h): its programs see that

  friend bool operator==(const Slice&, const Slice&) = default;
};

/// The slice's policy as text: the name of a row, or a policy for jobs with its options.
std::string policy_text(const Slice& slice);

/// The settings `quota` and `burst`, of a slice as it is on one GPU (sched/on_gpu.h). No burst is more than the time.
Quota quota_of(const Slice& slice);
/// Whether it has a quota on some GPU.
bool has_quota(const Slice& slice);

/// The setting `join` as text.
std::string join_text(const Slice& slice);

/// Settings as they arrive from outside, not yet validated. Only what is present is changed.
using SliceChange = SliceSettings;

/// The caller's identity, as reported by the kernel. The groups are valid during the call only.
struct Caller {
  std::uint32_t uid = 0;
  std::span<const std::uint32_t> gids;
};

/// Why an operation on the tree was refused. The code says which fields have a meaning.
struct SliceError {
  /// no_slice: none is named, and none takes the program in.
  enum class Code {
    no_such_slice,
    slice_exists,
    slice_busy,
    invalid_value,
    reserve_does_not_fit,
    permission_denied,
    no_slice
  };
  Code code;
  std::string path;
  std::string field, reason;               ///< invalid_value
  std::int64_t asked = 0, available = 0;   ///< reserve_does_not_fit, in CapSM
  std::optional<std::int64_t> gpu;         ///< on which it does not fit; none: on the largest
  std::int64_t clients = 0, children = 0;  ///< slice_busy

  /// One line for a person.
  std::string message() const;
};

template <class T>
using SliceResult = BasicResult<T, SliceError>;

}  // namespace gpuctl::sched
