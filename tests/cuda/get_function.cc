// The software GPU's CUDA runtime has no cudaGetFuncBySymbol: this one is linked into programs that need it there.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

extern "C" cudaError_t CUDARTAPI __cudaGetKernel(cudaKernel_t*, const void*);

cudaError_t CUDARTAPI cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  cudaKernel_t kernel = nullptr;
  const cudaError_t found = __cudaGetKernel(&kernel, symbol);
  if (found != cudaSuccess) return found;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  const auto get =
      reinterpret_cast<decltype(&cuKernelGetFunction)>(driver ? dlsym(driver, "cuKernelGetFunction") : nullptr);
  if (get == nullptr) return cudaErrorInitializationError;
  return static_cast<cudaError_t>(get(function, reinterpret_cast<CUkernel>(kernel)));
}
