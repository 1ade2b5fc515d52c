// Compiles CUDA C++ with NVRTC while the program runs.
#pragma once

#include <nvrtc.h>

#include <string>
#include <vector>

#include "driver.h"

/// Ends the program with the compiler's own words when the text does not compile.
inline nvrtcProgram compile(const char* source, const std::vector<std::string>& options) {
  nvrtcProgram program;
  CHECK_ZERO(nvrtcCreateProgram(&program, source, "source.cu", 0, nullptr, nullptr));
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  if (nvrtcCompileProgram(program, static_cast<int>(words.size()), words.data()) != NVRTC_SUCCESS) {
    std::size_t bytes = 0;
    CHECK_ZERO(nvrtcGetProgramLogSize(program, &bytes));
    std::vector<char> log(bytes + 1);
    CHECK_ZERO(nvrtcGetProgramLog(program, log.data()));
    std::fprintf(stderr, "%s\n", log.data());
    std::exit(2);
  }
  return program;
}

inline std::vector<char> ptx_of(nvrtcProgram program) {
  std::size_t bytes = 0;
  CHECK_ZERO(nvrtcGetPTXSize(program, &bytes));
  std::vector<char> text(bytes);
  CHECK_ZERO(nvrtcGetPTX(program, text.data()));
  CHECK_ZERO(nvrtcDestroyProgram(&program));
  return text;
}

inline std::vector<char> cubin_of(nvrtcProgram program) {
  std::size_t bytes = 0;
  CHECK_ZERO(nvrtcGetCUBINSize(program, &bytes));
  std::vector<char> code(bytes);
  CHECK_ZERO(nvrtcGetCUBIN(program, code.data()));
  CHECK_ZERO(nvrtcDestroyProgram(&program));
  return code;
}

inline std::string virtual_option(CUdevice device) {
  return "-arch=compute_" + std::to_string(architecture(device));
}
inline std::string real_option(CUdevice device) {
  return "-arch=sm_" + std::to_string(architecture(device));
}
