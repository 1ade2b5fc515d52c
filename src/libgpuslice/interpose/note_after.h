// After a call of the driver that is not changed: what libgpuslice must know of it.
#pragma once

#include <cuda.h>

#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/client/client.h"

namespace gpuslice {

/// Calls `note` if the driver's call succeeded (`result`) and the program is in a slice. Returns what the program is
/// told: the driver's answer, also if there is no memory for the note.
template <class Note>
CUresult note_after(CUresult result, Note note) {
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow(
      [&] {
        note();
        return CUDA_SUCCESS;
      },
      CUDA_SUCCESS);
}

}  // namespace gpuslice
