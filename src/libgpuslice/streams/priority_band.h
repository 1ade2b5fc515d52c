// Which of the GPU's priority levels a stream has: pure (stream_priority.h).
#pragma once

#include <algorithm>

#include "ipc/stub.h"

namespace gpuslice {

/// The priorities that the device has, as CUDA numbers them: a lower number goes first.
struct PriorityRange {
  int least = 0;
  int greatest = 0;
};

/// The priorities of a band. If the device has more than two levels, no band has the greatest one: that is the agent's.
constexpr PriorityRange range_of(gpuctl::ipc::PriorityBand band, PriorityRange device) {
  const int levels = device.least - device.greatest + 1;
  const int ours = levels > 2 ? levels - 1 : levels;
  const int count = static_cast<int>(band.count), rank = static_cast<int>(band.rank);
  const int first = rank * ours / count, last = std::max(first, (rank + 1) * ours / count - 1);
  return {device.least - first, device.least - last};
}

/// The priority to give the driver when the program asks for `own`. Within its band, a stream has the level that it
/// asks for, counted from the band's least, but at most the band's greatest.
constexpr int banded(int own, gpuctl::ipc::PriorityBand band, PriorityRange device) {
  const PriorityRange range = range_of(band, device);
  const int asked = std::clamp(device.least - own, 0, device.least - device.greatest);
  return std::max(range.least - asked, range.greatest);
}

/// What a program asked for to get this level in its band: of several priorities the least. A level outside of the band
/// counts as the nearest one in it.
constexpr int asked_for(int level, gpuctl::ipc::PriorityBand band, PriorityRange device) {
  const PriorityRange range = range_of(band, device);
  return device.least - (range.least - std::clamp(level, range.greatest, range.least));
}

}  // namespace gpuslice
