// cuGetExportTable: NVIDIA's own CUDA runtime, static or shared, calls this first. The tables behind it are private and
// are not imitated. So such a program cannot run here, and one line says so.
#include <cuda.h>

#include <atomic>
#include <cstdio>

extern "C" CUresult CUDAAPI cuGetExportTable(const void** table, const CUuuid*) {
  static std::atomic<bool> told{false};
  if (!told.exchange(true)) {
    std::fputs(
        "gpuctl software GPU: this program is built with the static CUDA runtime, which runs on NVIDIA's driver only; "
        "rebuild it with nvcc -cudart shared or use the driver API\n",
        stderr);
  }
  if (table != nullptr) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}
