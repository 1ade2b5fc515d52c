// From a PTX text to the forms of its kernels: rewriting, compiling, and limits for registers where they pay.
#pragma once

#include "libgpuslice/compile/compile_job.h"

namespace gpuctl::compile {

/// Never fails: what cannot be made is said in Forms::reason, or in each kernel's. `compiler`: GPUSLICE_COMPILER;
/// "nvjitlink", "ptxas" or "driver" for that one, empty for the first of these that does it.
gpuslice::Forms make_forms(const gpuslice::CompileRequest& request, const std::string& compiler);

}  // namespace gpuctl::compile
