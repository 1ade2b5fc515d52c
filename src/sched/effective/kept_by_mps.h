// Bounds that MPS itself keeps. A program under MPS can be started with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; then its
// blocks are never on more than so many SMs at once, whichever these are: its cap, which stays until the program ends.
// Where caps are enough for a max or a reserve, nobody else needs to see to it. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sched/allocator.h"

namespace gpuctl::sched {

/// For each node: how many SMs the clients directly in it may have at most, whatever happens while the settings stay as
/// they are. This is what the maxima on its path allow, less the strict reserves outside of that path. Reserves that
/// are lent at times do not count, unlike in guaranteed(). At least 1.
std::vector<CapSM> most_ever(std::span<const NodeInput> nodes, CapSM capacity);

/// A whole device, in hundredths of a percent.
inline constexpr std::uint32_t kAllHundredths = 10'000;

/// The percentage with which MPS keeps a program to no more than `most` of a device's SMs, in hundredths; none if it
/// may have all, or less than a pair.
///
/// MPS rounds down to pairs of SMs (seen on an H100: of 132 SMs 74 % are 96, 74.5 % and 75 % are 98). So the percentage
/// is half an SM more than that of the pairs that fit into `most`, and the program has exactly these.
std::optional<std::uint32_t> hundredths_for(CapSM most, CapSM device);

/// How many SMs of a device MPS makes of a percentage, by the same rule; at least a pair.
CapSM sms_of_hundredths(std::uint32_t hundredths, CapSM device);

/// Whether a client with a cap could have more if it were started anew: `max` has pairs that the cap leaves out.
bool kept_to_fewer(CapSM cap, CapSM max);

/// A client that is on the device, whether or not it has demand: what it may start at any moment counts.
struct CappedClient {
  std::uint32_t node = 0;
  CapSM cap = kUnlimitedCapSM;  ///< kUnlimitedCapSM: none
};

/// Which bounds of the tree caps keep.
///
/// - The max of a node, if the caps of the clients in it and below it add up to no more.
/// - The reserve of a node, of any mode, if the caps of all other clients leave as many SMs.
class KeptByMps {
 public:
  KeptByMps() = default;
  KeptByMps(std::span<const NodeInput> nodes, std::span<const CappedClient> clients, CapSM capacity);

  bool any() const { return any_; }

  /// Takes the kept bounds out of `nodes`, which are those that it was made of. What is decided by the rest never gives
  /// anybody more than the original bounds allow, as no client can have more than its cap. Allocates nothing.
  void lift(std::span<NodeInput> nodes) const;

 private:
  struct Kept {
    bool max = false, reserve = false;
  };
  std::vector<Kept> kept_;  ///< by node
  bool any_ = false;
};

}  // namespace gpuctl::sched
