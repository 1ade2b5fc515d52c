// Where kernels share each SM by capacity, clients can have more together than the device: as much as the registers,
// warps, blocks, shared memory and barriers of an SM suffice for (SiM 3.1). The device is first divided as if they
// could not (allocator.h). So reserves, weights and everything that is kept free are as always. Then grants grow beside
// each other, in the order of priority and then by weight, as far as clients have use for more, their slices may have
// more, and everything together fits on an SM.
//
// What adds up to the device need not fit on each SM. A client that has less than one worker on an SM may find no room
// for it anywhere, if others have their workers on all SMs. Then others of no greater priority have some workers less
// on each SM, as far as they keep one, and what is kept for them. If that does not help, the GPU starts its workers as
// room becomes free, as in the paper. Pure.
#pragma once

#include <span>
#include <vector>

#include "sched/allocator.h"
#include "sched/residency/footprint.h"

namespace gpuctl::sched {

struct Neighbour {
  std::uint32_t node = 0;
  CapSM own{};         ///< what nobody else has (ClientDecision::own); grows or shrinks
  CapSM most{};        ///< what it can use and may have; no more than the device
  bool gives = false;  ///< it may lose some so that others find room
  Footprint footprint;
};

class GrowBeside {
 public:
  /// `at_rest`: by node, what is kept free for all clients of a slice. It counts once, and as everything an SM has.
  /// Allocates nothing once it has seen the largest case.
  void run(std::span<const NodeInput> nodes, std::span<const CapSM> at_rest, const SmLimits& sm, CapSM sms,
           std::span<Neighbour> clients);

 private:
  void find_room(std::span<const NodeInput> nodes, std::span<const CapSM> at_rest, const SmLimits& sm, CapSM sms,
                 std::span<Neighbour> clients);

  std::vector<CapSM> left_;           ///< by node: how much more its max allows, of all clients in and below it
  std::vector<std::uint32_t> order_;  ///< clients that may grow
  std::vector<CapSM> before_;         ///< by client: what it had
};

}  // namespace gpuctl::sched
