#include "libgpuslice/modules/first_launch.h"

#include <optional>

#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/relaxed_capture.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

void load_before_first_launch(KernelInfo* kernel, CUfunction function) {
  if (!kernel || kernel->launches.load(std::memory_order_relaxed) > 0 || !driver().cuFuncLoad) return;
  const Stage stage("loading a kernel before its first launch");
  const RelaxedCapture relaxed;
  CUfunction loadable = function;
  std::optional<QuiesceLaunches> quiesced;
  if (kernel->is_library_kernel || !is_loaded(function)) {
    quiesced.emplace(device_of_current());
    if (!quiesced->quiet()) return;  // the launch will load it, as it would without us
  }
  if (kernel->is_library_kernel &&
      driver().cuKernelGetFunction(&loadable, reinterpret_cast<CUkernel>(function)) != CUDA_SUCCESS)
    return;
  driver().cuFuncLoad(loadable);
  int registers = 0;
  driver().cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, loadable);
  kernel->registers_original = registers;
}

}  // namespace gpuslice
