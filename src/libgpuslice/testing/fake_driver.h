// A driver without a GPU, for tests of what asks it for memory and streams only: its memory is the host's, and nothing
// runs. A test program that links fake_driver.cc gets it from driver().
#pragma once

#include <memory>
#include <utility>

#include "libgpuslice/book/slots.h"
#include "libgpuslice/kernels/kernels.h"

namespace gpuslice {

/// New launch blocks, which live as long as the process.
inline Slots fake_slots() {
  return std::move(*Slots::create());
}

/// A kernel in a context.
struct FakeKernel {
  FakeKernel() { instance.kernel = &info; }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  KernelInfo info;
  Instance instance;
};

}  // namespace gpuslice
