// From a PTX text to the forms of its kernels: rewriting, compiling, and register limits where they pay.
#pragma once

#include "libgpuslice/image/compile_job.h"

namespace gpuctl::compile {

/// Never fails: Forms::reason, or that of each kernel, says what could not be made. `compiler` is GPUSLICE_COMPILER:
/// "nvjitlink", "ptxas" or "driver"; empty: the first of these that succeeds.
gpuslice::Forms make_forms(const gpuslice::CompileRequest& request, const std::string& compiler);

}  // namespace gpuctl::compile
