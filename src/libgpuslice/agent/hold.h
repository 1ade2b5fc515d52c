// Launches that wait because the daemon holds the program's back for a moment (ipc::kHeld), to see what another slice
// takes alone. Nothing else changes: no form, no grant. The thread that waits says when the program has nothing left on
// the device.
#pragma once

#include <cuda.h>

#include "ipc/stub.h"
#include "ipc/stub_map.h"
#include "libgpuslice/base/launch_words.h"

namespace gpuslice {

/// The program is about to launch something into the stream, which note_work() knows already. Any thread, with no lock
/// held that another launch needs.
void wait_while_held(CUstream stream);

inline void wait_if_held(CUstream stream) {
  const gpuctl::ipc::Stub* page = g_launch_words.page.load(std::memory_order_acquire);
  if (!page) return;
  if (g_launch_words.one_device.load(std::memory_order_relaxed) &&
      (gpuctl::ipc::load(page->grant[0].flags) & gpuctl::ipc::kHeld) == 0) [[likely]]
    return;
  wait_while_held(stream);
}

/// The client's thread calls it several times a second: a hold that has lasted too long is over only once it is gone
/// from the page.
void look_at_holds();

}  // namespace gpuslice
