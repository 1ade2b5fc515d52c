// A program whose kernel comes as a cubin, as those of CuPy and Triton do: cubin_program WAY FILE ROUNDS OPTION...
// The ways: linked (NVRTC is called by this program itself; the only one of cubin_program_linked), plugin (by a library
// that it opened, NVRTC with it, for itself), opened (NVRTC is opened and its functions looked up), read (FILE is the
// cubin). All but the last write FILE, and all load the cubin and run its kernel ROUNDS times (program.h).
#include <cuda.h>
#include <dlfcn.h>
#include <nvrtc.h>

#include <fstream>
#include <iterator>
#include <string>

#include "cubin_front_end.h"
#include "program.h"

namespace {

constexpr int kThreads = 128;
constexpr int kBlocks = 300;

constexpr char kSource[] = R"(
extern "C" __global__ void scale(const int* in, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] * 3 + blockIdx.x;
})";

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", call, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

#ifndef LINKED
void* open_or_end(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  std::fprintf(stderr, "%s\n", dlerror());
  std::exit(1);
}

/// As make_cubin(), with NVRTC's functions looked up by name.
void make_by_name(const char* source, int count, const char* const* options, std::vector<char>& cubin) {
  void* nvrtc = open_or_end(NVRTC_LIBRARY);
#define NVRTC(name) reinterpret_cast<decltype(&name)>(dlsym(nvrtc, #name))
  nvrtcProgram program = nullptr;
  std::size_t size = 0;
  if (NVRTC(nvrtcCreateProgram)(&program, source, "kernel.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS ||
      NVRTC(nvrtcCompileProgram)(program, count, options) != NVRTC_SUCCESS ||
      NVRTC(nvrtcGetCUBINSize)(program, &size) != NVRTC_SUCCESS) {
    std::exit(1);
  }
  cubin.resize(size);
  if (NVRTC(nvrtcGetCUBIN)(program, cubin.data()) != NVRTC_SUCCESS) std::exit(1);
  NVRTC(nvrtcDestroyProgram)(&program);
}
#endif

std::vector<char> cubin_by(const std::string& way, const char* file, int count, const char* const* options) {
  std::vector<char> cubin;
  if (way == "read") {
    std::ifstream stream(file, std::ios::binary);
    cubin.assign(std::istreambuf_iterator<char>(stream), {});
    return cubin;
  }
#ifdef LINKED
  if (way == "linked") make_cubin(kSource, count, options, cubin);
#else
  if (way == "plugin") {
    reinterpret_cast<decltype(&make_cubin)>(dlsym(open_or_end(PLUGIN), "make_cubin"))(kSource, count, options, cubin);
  } else if (way == "opened") {
    make_by_name(kSource, count, options, cubin);
  } else {
    std::exit(2);
  }
#endif
  std::ofstream(file, std::ios::binary).write(cubin.data(), static_cast<std::streamsize>(cubin.size()));
  return cubin;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  Rounds rounds("cubin_program", argc - 2, argv + 2);
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(cuCtxSetCurrent(context));
  const std::vector<char> cubin = cubin_by(argv[1], argv[2], argc - 4, argv + 4);
  CUmodule module = nullptr;
  CUfunction scale = nullptr;
  CHECK(cuModuleLoadData(&module, cubin.data()));
  CHECK(cuModuleGetFunction(&scale, module, "scale"));

  std::vector<int> in(kThreads * kBlocks), expected(in.size()), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    in[i] = static_cast<int>(i * 7 + 1);
    expected[i] = in[i] * 3 + static_cast<int>(i / kThreads);
  }
  const std::size_t bytes = in.size() * sizeof(int);
  CUdeviceptr device_in = 0, device_out = 0;
  CHECK(cuMemAlloc(&device_in, bytes));
  CHECK(cuMemAlloc(&device_out, bytes));
  CHECK(cuMemcpyHtoD(device_in, in.data(), bytes));
  while (rounds.next()) {
    CHECK(cuMemsetD8(device_out, 0xff, bytes));
    void* params[] = {&device_in, &device_out};
    CHECK(cuLaunchKernel(scale, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, params, nullptr));
    CHECK(cuMemcpyDtoH(out.data(), device_out, bytes));
    rounds.compare(out.data(), expected.data(), bytes);
  }
  return rounds.finish();
}
