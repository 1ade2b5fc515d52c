// How long a launch takes to return after an eviction. An eviction costs more than the time until the SMs are free:
// when they are given back, workers must come again. The return ends when half of the workers that fit are there.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "libgpuslice/agent/stub_page.h"
#include "libgpuslice/launch/context_state.h"

namespace gpuslice {

/// For the agent alone.
class ReturnWatch {
 public:
  /// Both outlive this object.
  ReturnWatch(ContextState& context, const StubPage& page) : context_(context), page_(page) {}

  /// Called at each look at a launch, with the book's mutex. `before`, `allowed`: the range of SMs that the launch
  /// might use at the previous look and may use now. `workers`: how many fit there. Returns whether it is on its way
  /// back.
  bool look(Launch& head, std::uint32_t before, std::uint32_t allowed, std::uint64_t workers);
  /// Reads how many workers are there, by one small copy after another on `stream`.
  void count_workers(CUstream stream);
  /// The launch is over. With the book's mutex.
  void over(const Launch& launch) {
    if (launch_ == &launch) has_returned();
  }

 private:
  void has_returned();

  ContextState& context_;
  const StubPage& page_;
  Launch* launch_ = nullptr;    ///< was evicted and has SMs again, but its workers are not known to be on them yet
  std::uint64_t since_ns_ = 0;  ///< when the daemon decided that
  std::uint32_t workers_ = 0;   ///< how many workers must be there
  bool asked_ = false;          ///< a copy that shows the workers is under way
};

}  // namespace gpuslice
