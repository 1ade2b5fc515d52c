// The guard around driver calls that block until the device is idle. Inside the driver such a call
// holds what resuming an evicted launch needs; so it is only entered while no launch is incomplete, and none starts
// before it returns.
#pragma once

#include "libgpuslice/context.h"

namespace gpuslice {

/// Quiesces every managed context of the process for its lifetime. May wait as long as evicted launches do.
class Quiet {
 public:
  Quiet() : contexts_(Context::all()) {
    for (Context* context : contexts_) context->quiesce();
  }
  ~Quiet() {
    for (Context* context : contexts_) context->resume_launches();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::vector<Context*> contexts_;
};

}  // namespace gpuslice
