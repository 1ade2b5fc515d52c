// cuCheckpoint*.
#include <cuda.h>

#include "softgpu/driver/checkpoint.h"

using namespace gpuctl::softgpu;

extern "C" {

CUresult CUDAAPI cuCheckpointProcessGetState(int pid, CUprocessState* state) {
  return state == nullptr ? CUDA_ERROR_INVALID_VALUE : state_of_process(pid, *state);
}

CUresult CUDAAPI cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  return order_process(pid, Order::kLock, args == nullptr ? 0 : args->timeoutMs);
}

CUresult CUDAAPI cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs*) {
  return order_process(pid, Order::kCheckpoint);
}

/// To other GPUs nothing is restored.
CUresult CUDAAPI cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  if (args != nullptr && args->gpuPairsCount != 0) return CUDA_ERROR_NOT_SUPPORTED;
  return order_process(pid, Order::kRestore);
}

CUresult CUDAAPI cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs*) {
  return order_process(pid, Order::kUnlock);
}

}  // extern "C"
