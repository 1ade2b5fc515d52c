// compat: libraries of the driver, loaded lazily or eagerly: their kernels, variables and modules
// libs: cuda
// builds: both shared
// soft: yes
// args: LAZY
// args: EAGER
#include <algorithm>
#include <string>

#include "driver.h"

int main(int argc, char** argv) {
  setenv("CUDA_MODULE_LOADING", argc > 1 ? argv[1] : "LAZY", 1);
  use_device();
  CUmoduleLoadingMode mode;
  CHECK_DRIVER(cuModuleGetLoadingMode(&mode));
  std::printf("%s\n", mode == CU_MODULE_LAZY_LOADING ? "lazy" : "eager");

  CUlibrary library;
  CHECK_DRIVER(cuLibraryLoadData(&library, kWorkPtx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  CHECK_DRIVER(cuLibraryGetKernelCount(&count, library));
  std::vector<CUkernel> kernels(count);
  CHECK_DRIVER(cuLibraryEnumerateKernels(kernels.data(), count, library));
  std::vector<std::string> names;
  for (const CUkernel kernel : kernels) {
    const char* name = nullptr;
    CHECK_DRIVER(cuKernelGetName(&name, kernel));
    names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) std::printf("kernel %s\n", name.c_str());

  CUkernel work, scale;
  CHECK_DRIVER(cuLibraryGetKernel(&work, library, "work"));
  CHECK_DRIVER(cuLibraryGetKernel(&scale, library, "scale"));
  std::printf("enumerated %s\n", std::find(kernels.begin(), kernels.end(), work) != kernels.end() ? "yes" : "NO");
  // A kernel is launched as it is, by a cast, or as the function of the current context.
  run_work("by kernel", reinterpret_cast<CUfunction>(work), amount());
  CUfunction function;
  CHECK_DRIVER(cuKernelGetFunction(&function, work));
  run_work("by function", function, amount());

  CUlibrary owner;
  CHECK_DRIVER(cuKernelGetLibrary(&owner, work));
  CUmodule module, of_function;
  CHECK_DRIVER(cuLibraryGetModule(&module, library));
  CHECK_DRIVER(cuFuncGetModule(&of_function, function));
  std::printf("library %s, module %s\n", owner == library ? "same" : "OTHER", of_function == module ? "same" : "OTHER");
  CUfunction from_module;
  CHECK_DRIVER(cuModuleGetFunction(&from_module, module, "work"));
  run_work("by module", from_module, amount());
  std::size_t offset = 0, bytes = 0;
  for (std::size_t parameter = 0; parameter < 3; ++parameter) {
    CHECK_DRIVER(cuKernelGetParamInfo(work, parameter, &offset, &bytes));
    std::printf("parameter %zu at %zu, %zu bytes\n", parameter, offset, bytes);
  }
  const char* error = nullptr;
  CHECK_DRIVER(cuGetErrorName(cuKernelGetParamInfo(work, 3, &offset, &bytes), &error));
  std::printf("parameter 3: %s\n", error);

  CUdeviceptr factor = 0, same_factor = 0;
  CHECK_DRIVER(cuLibraryGetGlobal(&factor, &bytes, library, "factor"));
  CHECK_DRIVER(cuModuleGetGlobal(&same_factor, nullptr, module, "factor"));
  std::printf("factor of %zu bytes, %s\n", bytes, factor == same_factor ? "same" : "OTHER");
  run_scale("scale", reinterpret_cast<CUfunction>(scale), 5000);
  const unsigned seven = 7;
  CHECK_DRIVER(cuMemcpyHtoD(factor, &seven, sizeof seven));
  run_scale("scale", reinterpret_cast<CUfunction>(scale), 5000);
  CHECK_DRIVER(cuGetErrorName(cuLibraryGetKernel(&work, library, "absent"), &error));
  std::printf("absent kernel: %s\n", error);
  CHECK_DRIVER(cuLibraryUnload(library));
  return 0;
}
