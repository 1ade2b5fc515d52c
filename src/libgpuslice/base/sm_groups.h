// The groups of SMs of which a part of a GPU (a green context) consists.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gpuslice {

/// SMs of a pair, and the most blocks of a cluster that runs in a part made of pairs.
inline constexpr std::uint32_t kPairSms = 2;

/// SMs of a group: eight, or an eighth of a GPU of fewer than 64 SMs, in pairs. A GPU may have larger ones still.
constexpr std::uint32_t group_sms(std::uint32_t device_sms) {
  return std::clamp(device_sms / 16 * 2, 2u, 8u);
}

/// The SMs of a part that takes no more than `sms`: whole groups. `sms` itself where it is the whole device or less
/// than a group. A program is told of that many, as some kernels have one block for each SM that there is: on fewer
/// they take twice as long.
constexpr std::uint32_t in_whole_groups(std::uint32_t sms, std::uint32_t device_sms) {
  const std::uint32_t group = group_sms(device_sms);
  return sms >= device_sms || sms < group ? sms : sms - sms % group;
}

/// The same of a part that takes of the last `sms` of the device: the last group has what the division leaves over.
constexpr std::uint32_t in_last_groups(std::uint32_t sms, std::uint32_t device_sms) {
  const std::uint32_t group = group_sms(device_sms), last = group + device_sms % group;
  return sms >= device_sms || sms < last ? in_whole_groups(sms, device_sms) : sms - (sms - last) % group;
}

/// Where a grant of `count` SMs from `first` on begins where a part can be made of `all` SMs alone: it ends with them.
constexpr std::uint32_t first_within(std::uint32_t first, std::uint32_t count, std::uint32_t all) {
  return std::min(first, all - std::min(all, count));
}

/// Groups from `begin` on, before `end`. None if these are equal.
struct GroupRun {
  std::size_t begin = 0, end = 0;
  auto operator<=>(const GroupRun&) const = default;
};

/// The groups that a part takes for a grant of `count` SMs from number `first` on: the run with the most SMs that has
/// no more than `count`. `starts`: the SMs before each group, and then all SMs.
///
/// A group belongs to the grant in which its last SM lies, and to no other one. So parts of grants that do not meet
/// share no group, whatever other clients know of each other, and a grant that ends before the last group has as many
/// as fit into it, wherever it begins. All groups are alike but for the last one, in which the driver puts what is left
/// over (12 of 132 SMs on an H200). If the grant cannot have all its groups, it is better without that one or without
/// one of the others. So both ends of the run are tried.
///
/// `within`: it has only pairs of SMs whose last one lies in the grant too, so no more than a part made of pairs.
constexpr GroupRun choose_groups(std::span<const std::uint32_t> starts, std::uint32_t first, std::uint32_t count,
                                 bool within) {
  GroupRun best;
  std::uint32_t most = 0;
  std::size_t begin = 0;
  const auto before = [&](std::size_t group) {
    return (within ? starts[group] + kPairSms : starts[group + 1]) <= first;
  };
  while (begin + 1 < starts.size() && before(begin)) ++begin;
  for (std::size_t end = begin; end + 1 < starts.size() && starts[end + 1] <= first + count; ++end) {
    while (starts[end + 1] - starts[begin] > count) ++begin;
    if (starts[end + 1] - starts[begin] <= most) continue;
    most = starts[end + 1] - starts[begin];
    best = {begin, end + 1};
  }
  return best;
}

}  // namespace gpuslice
