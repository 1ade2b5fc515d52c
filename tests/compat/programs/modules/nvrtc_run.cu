// compat: NVRTC compiles a template kernel to PTX or to machine code, which the driver runs
// libs: nvrtc cuda
// builds: both shared
// args: ptx
// args: cubin
#include "compile.h"

namespace {

constexpr const char* kSource = R"(
template <typename T, int Unroll>
__global__ void work(T* data, unsigned count, unsigned depth) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  T x = data[i];
#pragma unroll Unroll
  for (unsigned turn = 0; turn < depth; ++turn) x = (x * T(1664525) + T(1013904223)) ^ (x >> 7);
  data[i] = x;
}
__constant__ int table[4];
)";

}  // namespace

int main(int argc, char** argv) {
  const bool cubin = argc > 1 && std::strcmp(argv[1], "cubin") == 0;
  const CUdevice device = use_device();
  nvrtcProgram program;
  CHECK_ZERO(nvrtcCreateProgram(&program, kSource, "source.cu", 0, nullptr, nullptr));
  CHECK_ZERO(nvrtcAddNameExpression(program, "work<unsigned, 4>"));
  CHECK_ZERO(nvrtcAddNameExpression(program, "&table"));
  const std::string option = cubin ? real_option(device) : virtual_option(device);
  const char* options[] = {option.c_str(), "-std=c++17", "-lineinfo"};
  CHECK_ZERO(nvrtcCompileProgram(program, 3, options));
  const char *kernel = nullptr, *variable = nullptr;
  CHECK_ZERO(nvrtcGetLoweredName(program, "work<unsigned, 4>", &kernel));
  CHECK_ZERO(nvrtcGetLoweredName(program, "&table", &variable));
  const std::string kernel_name = kernel, variable_name = variable;
  const std::vector<char> code = cubin ? cubin_of(program) : ptx_of(program);
  CUmodule module;
  if (cubin)
    CHECK_DRIVER(cuModuleLoadData(&module, code.data()));
  else
    CHECK_DRIVER(cuModuleLoadDataEx(&module, code.data(), 0, nullptr, nullptr));
  CUfunction function;
  CHECK_DRIVER(cuModuleGetFunction(&function, module, kernel_name.c_str()));
  CUdeviceptr table = 0;
  std::size_t bytes = 0;
  CHECK_DRIVER(cuModuleGetGlobal(&table, &bytes, module, variable_name.c_str()));
  std::printf("%s, table of %zu bytes\n", kernel_name.c_str(), bytes);
  run_work("work", function, amount());
  CHECK_DRIVER(cuModuleUnload(module));

  nvrtcProgram wrong;
  CHECK_ZERO(nvrtcCreateProgram(&wrong, "__global__ void broken( {", "broken.cu", 0, nullptr, nullptr));
  std::printf("broken: %s\n", nvrtcGetErrorString(nvrtcCompileProgram(wrong, 1, options)));
  CHECK_ZERO(nvrtcDestroyProgram(&wrong));
  return 0;
}
