// Called functions that a persistent kernel cannot share with the original one. They read %ctaid or %nctaid, or contain
// a barrier that finished threads must come to, themselves or in functions they call.
#pragma once

#include "ptx/pass/kernel.h"

namespace gpuctl::ptx::pass {

/// Fills kernel.functions with copies under their new names and points the calls of the entry and of the copies to
/// them.
void copy_functions(Kernel& kernel);

/// GridReads of the function that `call` calls; 0 if that is not a copied function.
std::uint8_t copied_call_reads(const Kernel& kernel, const Instruction& call);

}  // namespace gpuctl::ptx::pass
