#include "libgpuslice/image/outstanding_needs.h"

namespace gpuslice {

void OutstandingNeeds::add(const gpuctl::ipc::WorkerNeeds& needs) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (kinds_[i] != needs) continue;
    ++launches_[i];
    return;
  }
  ++gained_;
  if (count_ == kinds_.size()) {
    ++others_;
    return;
  }
  kinds_[count_] = needs;
  launches_[count_++] = 1;
}

/// A launch of a kind that has a place may have been added while there was none; which of them leaves does not matter.
void OutstandingNeeds::remove(const gpuctl::ipc::WorkerNeeds& needs) {
  for (std::uint32_t i = 0; i < count_; ++i) {
    if (kinds_[i] != needs) continue;
    if (--launches_[i] != 0) return;
    kinds_[i] = kinds_[--count_];
    launches_[i] = launches_[count_];
    return;
  }
  --others_;
}

std::span<const gpuctl::ipc::WorkerNeeds> OutstandingNeeds::kinds() const {
  return {kinds_.data(), others_ != 0 ? 0 : count_};
}

}  // namespace gpuslice
