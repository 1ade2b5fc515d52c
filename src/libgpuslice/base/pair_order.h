// The pairs of SMs of a GPU in the order of its groups (sm_groups.h).
//
// The SMs of a group are near each other. The driver lists pairs in another order: the first four of an H100 lie in
// four groups (bench/results/probe-part-shapes.txt). A part made of them leaves others no group of which they have
// all. With the pairs in the order of the groups, a part of pairs takes whole groups but for the ones at its ends, and
// the two kinds of parts number the SMs alike. docs/design/opaque.md, "Pairs, where programs have SMs in common".
#pragma once

#include <cuda.h>

#include <span>
#include <vector>

namespace gpuslice {

/// These pairs in the order of the groups in which they lie. Both are all that the driver makes of the same SMs. Empty:
/// it cannot be told. Pure.
///
/// No call tells which SMs a resource has, so this compares what the driver keeps in it. Nothing is supposed about that
/// but what is checked: each pair has a bit that no other pair has, the group in which it lies has all such bits of it
/// and no other group has, and the pairs of each group have as many SMs as the group.
std::vector<CUdevResource> in_order_of_groups(std::span<const CUdevResource> pairs,
                                              std::span<const CUdevResource> groups);

}  // namespace gpuslice
