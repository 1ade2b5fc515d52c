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

/// The priority to give the driver when the program asks for `own`. Within its band, a stream has the level that it
/// asks for, counted from the band's least, but at most the band's greatest. If the device has more than two levels, no
/// band has the greatest one: that is the agent's.
constexpr int banded(int own, gpuctl::ipc::PriorityBand band, PriorityRange device) {
  const int levels = device.least - device.greatest + 1;
  const int ours = levels > 2 ? levels - 1 : levels;
  const int count = static_cast<int>(band.count), rank = static_cast<int>(band.rank);
  const int first = rank * ours / count, last = std::max(first, (rank + 1) * ours / count - 1);
  const int asked = std::clamp(device.least - own, 0, levels - 1);
  return device.least - std::min(first + asked, last);
}

}  // namespace gpuslice
