// Computes how much memory an array takes. Pure.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace gpuslice {

/// Bytes that the elements of an array with `levels` mipmap levels take. 0 for arrays without memory of their own yet
/// (sparse ones, and those mapped later), and for formats that are not known here.
std::uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& array, unsigned levels = 1);
std::uint64_t array_bytes(const CUDA_ARRAY_DESCRIPTOR& array);

}  // namespace gpuslice
