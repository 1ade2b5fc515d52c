// A driver without a GPU, for tests of what asks it for memory, streams and events only: its memory is the host's,
// nothing runs, and events happen when the test says so. A test program that links fake_driver.cc gets it from
// driver().
#pragma once

#include <memory>
#include <utility>

#include "libgpuslice/image/kernels.h"
#include "libgpuslice/launch/slots.h"

namespace gpuslice {

/// New launch blocks, which live as long as the process.
inline Slots fake_slots() {
  return std::move(*Slots::create());
}

/// The oldest event that was recorded and has not happened happens now, at this time of the GPU.
void fake_event_happens(float at_ms);

/// What the driver says of how many blocks of any kind an SM holds, and how often it was asked.
extern int fake_blocks_per_sm, fake_occupancy_questions;

/// A kernel in a context.
struct FakeKernel {
  FakeKernel() { instance.kernel = &info; }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  KernelInfo info;
  Instance instance;
};

}  // namespace gpuslice
