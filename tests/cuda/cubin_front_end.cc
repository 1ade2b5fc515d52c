#include "cubin_front_end.h"

#include <nvrtc.h>

#include <cstdio>
#include <cstdlib>

namespace {

void check(nvrtcResult result, const char* call) {
  if (result == NVRTC_SUCCESS) return;
  std::fprintf(stderr, "%s: %s\n", call, nvrtcGetErrorString(result));
  std::exit(1);
}

}  // namespace

void make_cubin(const char* source, int count, const char* const* options, std::vector<char>& cubin) {
  nvrtcProgram program = nullptr;
  check(nvrtcCreateProgram(&program, source, "kernel.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  check(nvrtcCompileProgram(program, count, options), "nvrtcCompileProgram");
  std::size_t size = 0;
  check(nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
  cubin.resize(size);
  check(nvrtcGetCUBIN(program, cubin.data()), "nvrtcGetCUBIN");
  check(nvrtcDestroyProgram(&program), "nvrtcDestroyProgram");
}
