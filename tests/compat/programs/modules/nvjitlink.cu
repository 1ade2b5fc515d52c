// compat: nvJitLink links two PTX texts to machine code, which the driver runs
// libs: nvJitLink nvrtc cuda
// builds: both shared
#include <nvJitLink.h>

#include "compile.h"

namespace {

constexpr const char* kKernel = R"(
__device__ unsigned turn(unsigned x);
extern "C" __global__ void work(unsigned* data, unsigned count, unsigned depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned x = data[i];
  for (unsigned done = 0; done < depth; ++done) x = turn(x);
  data[i] = x;
}
)";

constexpr const char* kFunction = R"(
__device__ unsigned turn(unsigned x) { return (x * 1664525u + 1013904223u) ^ (x >> 7); }
)";

void run(CUdevice device, const char* kind) {
  const bool lto = std::strcmp(kind, "lto") == 0;
  const std::string option = "-arch=sm_" + std::to_string(architecture(device));
  const char* options[] = {option.c_str(), "-lto"};
  nvJitLinkHandle link;
  CHECK_ZERO(nvJitLinkCreate(&link, lto ? 2 : 1, options));
  for (const char* source : {kKernel, kFunction}) {
    std::vector<std::string> words = {virtual_option(device), "-rdc=true"};
    if (lto) words.push_back("-dlto");
    nvrtcProgram program = compile(source, words);
    std::vector<char> code;
    if (lto) {
      std::size_t bytes = 0;
      CHECK_ZERO(nvrtcGetLTOIRSize(program, &bytes));
      code.resize(bytes);
      CHECK_ZERO(nvrtcGetLTOIR(program, code.data()));
      CHECK_ZERO(nvrtcDestroyProgram(&program));
    } else {
      code = ptx_of(program);
    }
    CHECK_ZERO(nvJitLinkAddData(link, lto ? NVJITLINK_INPUT_LTOIR : NVJITLINK_INPUT_PTX, code.data(), code.size(),
                                source == kKernel ? "kernel" : "function"));
  }
  CHECK_ZERO(nvJitLinkComplete(link));
  std::size_t bytes = 0;
  CHECK_ZERO(nvJitLinkGetLinkedCubinSize(link, &bytes));
  std::vector<char> code(bytes);
  CHECK_ZERO(nvJitLinkGetLinkedCubin(link, code.data()));
  CHECK_ZERO(nvJitLinkDestroy(&link));
  CUmodule module;
  CUfunction function;
  CHECK_DRIVER(cuModuleLoadData(&module, code.data()));
  CHECK_DRIVER(cuModuleGetFunction(&function, module, "work"));
  run_work(kind, function, amount());
  CHECK_DRIVER(cuModuleUnload(module));
}

}  // namespace

int main() {
  const CUdevice device = use_device();
  run(device, "ptx");
  run(device, "lto");
  return 0;
}
