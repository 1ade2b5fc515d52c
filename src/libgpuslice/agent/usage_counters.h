// How the agent adds to the counters of ipc::Usage.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ipc/stub_map.h"

namespace gpuslice {

/// For counters that the agent alone writes.
template <class T>
void add(T& counter, T more) {
  gpuctl::ipc::store(counter, static_cast<T>(counter + more));
}

/// The client's thread counts launches too (activity.h).
inline void add_to_launches(gpuctl::ipc::Usage& out, std::uint32_t more) {
  __atomic_fetch_add(&out.launches, std::uint64_t{more}, __ATOMIC_RELAXED);
}

/// Adds one to the bucket of a histogram whose bucket i counts [2^i, 2^(i+1)) us. The last one counts all that is more.
template <std::size_t kBuckets>
void count_in(std::uint32_t (&histogram)[kBuckets], std::uint64_t ns) {
  const std::uint64_t us = ns / 1000;
  const std::size_t bucket = us == 0 ? 0 : static_cast<std::size_t>(std::bit_width(us) - 1);
  add(histogram[std::min(bucket, kBuckets - 1)], 1u);
}

}  // namespace gpuslice
