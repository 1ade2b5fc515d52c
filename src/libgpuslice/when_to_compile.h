// When rewritten text is compiled: at once, before the load returns, or later, beside the program.
//
// A program that brings machine code for this GPU would start without any compiler, so a long text is not to hold it
// up: its image is loaded as it is, and the persistent forms follow (late_forms.h). Short texts are not worth that, and
// their kernels can so be evicted from their first launch on.
#pragma once

#include <cuda.h>

#include <chrono>
#include <cstddef>

namespace gpuslice {

/// What the driver's compiler takes for rewritten text, about: 2.2 s per MB (ptxas 13.0, one thread;
/// docs/architecture.md).
std::chrono::nanoseconds estimated_compile_time(std::size_t text_bytes);

/// What a program may be held up by, for kernels that can be evicted from the first launch on. Rewritten texts of up to
/// 22 KiB are so short, most modules of one kernel.
inline constexpr std::chrono::milliseconds kWorthWaiting{50};

/// True if one of the program's options for a load changes the code that is made, and not just what is said about it.
bool options_change_code(unsigned count, const CUjit_option* options);

struct LoadFacts {
  std::size_t text_bytes = 0;  ///< rewritten
  bool machine_code = false;   ///< the image has some for this GPU
  bool stands_alone = false;   ///< gpuctl::ptx::stands_alone()
  bool changed_by_options = false;
  bool has_context = false;  ///< one is current: the compiler needs it
  bool has_cache = false;    ///< what is compiled can be kept for the next start
  bool may_wait = true;      ///< GPUSLICE_BACKGROUND is not 0
};

enum class Compile {
  kNow,        ///< before the load returns; the rewritten text is loaded in place of the image
  kLater,      ///< beside the program; the persistent forms are loaded in addition to the image
  kNextStart,  ///< beside the program, for its next start: a second copy of the image would have variables of its own
};

Compile when_to_compile(const LoadFacts& facts);

}  // namespace gpuslice
