// NVRTC compiles CUDA C++ to machine code inside the program, which then loads the cubin. NVRTC also has the PTX.
// libgpuslice reads it when the program takes the cubin (interpose/nvrtc.cc).
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace gpuslice {

/// One libnvrtc of this process. There can be several, and each knows only its own programs.
struct Nvrtc {
  using Program = void*;
  static constexpr int kSuccess = 0;
  static constexpr int kInternalError = 11;

  int (*compile)(Program, int, const char* const*) = nullptr;
  int (*get_cubin)(Program, char*) = nullptr;
  int (*get_cubin_size)(Program, std::size_t*) = nullptr;
  int (*get_ptx)(Program, char*) = nullptr;
  int (*get_ptx_size)(Program, std::size_t*) = nullptr;

  std::mutex mutex;
  /// Of compiled programs, from nvrtc_register_limit()
  std::unordered_map<Program, std::optional<int>> register_limits;

  /// Like NVRTC's functions of these names; they also note the PTX.
  int compile_noted(Program program, int count, const char* const* options);
  int get_cubin_noted(Program program, char* cubin);
};

/// What dlsym should return for a name of NVRTC in the library `handle`: a wrapper, or null for the C library's own
/// result. Any thread.
void* resolve_nvrtc(void* handle, const char* name);

}  // namespace gpuslice
