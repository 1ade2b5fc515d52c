// What nvcc's host code registers before main: device code, and the host addresses that stand for kernels and
// variables.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace gpuctl::softgpu::cudart {

/// The kernel that a host function stands for, loaded at the first use. nullptr and an error if there is none.
CUkernel find_kernel(const void* host_function, CUresult* result);

/// Address and size of the variable that a host variable stands for.
CUresult find_variable(const void* host_variable, CUdeviceptr* address, std::size_t* bytes);

}  // namespace gpuctl::softgpu::cudart
