// What programs do that compile their kernels themselves: source text to a cubin by NVRTC, called as this file is
// linked.
#pragma once

#include <vector>

/// The cubin of `source`. Ends the program when NVRTC refuses.
extern "C" void make_cubin(const char* source, int count, const char* const* options, std::vector<char>& cubin);
