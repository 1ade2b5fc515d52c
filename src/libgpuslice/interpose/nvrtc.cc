// How a program's NVRTC calls reach the wrappers: by the names that we export, if the program or one of its libraries
// is linked with libnvrtc, and by dlsym (resolve.cc). No other NVRTC functions are wrapped, and without a slice nothing
// is noted.
//
// Several libnvrtc can be loaded, and each call must reach the one that the NVRTC program was made with. A wrapper
// returned by dlsym belongs to the library that was asked. For a call of an exported name, the return address tells the
// caller, and so the library that the caller is linked with. A pointer to an exported name may have been handed to
// another library, which hides the caller. There is mostly only one libnvrtc then; if there are several, the one whose
// path is nearest to the caller's is used.
#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/image/nvrtc.h"

namespace gpuslice {

namespace {

constexpr std::size_t kMostLibraries = 4;

/// The known libraries, by load address. They are never closed.
struct Libraries {
  std::mutex mutex;
  std::array<void*, kMostLibraries> bases{};
  std::array<Nvrtc, kMostLibraries> nvrtc;
};

Libraries& libraries() {
  static Libraries* known = new Libraries;
  return *known;
}

template <std::size_t I>
int compile_in(Nvrtc::Program program, int count, const char* const* options) {
  return libraries().nvrtc[I].compile_noted(program, count, options);
}

template <std::size_t I>
int get_cubin_in(Nvrtc::Program program, char* cubin) {
  return libraries().nvrtc[I].get_cubin_noted(program, cubin);
}

template <std::size_t... I>
void* wrapper_in(std::size_t which, bool compile, std::index_sequence<I...>) {
  void* const compiles[] = {reinterpret_cast<void*>(&compile_in<I>)...};
  void* const gets[] = {reinterpret_cast<void*>(&get_cubin_in<I>)...};
  return (compile ? compiles : gets)[which];
}

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(real_dlsym(handle, name));
  return function != nullptr;
}

/// The number of the library that contains `function`. kMostLibraries if it is no libnvrtc, or one too many.
std::size_t library_of(void* function) {
  Dl_info info{};
  if (!dladdr(function, &info) || !info.dli_fname) return kMostLibraries;
  Libraries& known = libraries();
  std::lock_guard lock(known.mutex);
  for (std::size_t i = 0; i < kMostLibraries; ++i) {
    if (known.bases[i] == info.dli_fbase) return i;
    if (known.bases[i]) continue;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);  // keeps it loaded from now on
    Nvrtc& nvrtc = known.nvrtc[i];
    if (!handle || !find(handle, "nvrtcCompileProgram", nvrtc.compile) ||
        !find(handle, "nvrtcGetCUBIN", nvrtc.get_cubin) || !find(handle, "nvrtcGetCUBINSize", nvrtc.get_cubin_size) ||
        !find(handle, "nvrtcGetPTX", nvrtc.get_ptx) || !find(handle, "nvrtcGetPTXSize", nvrtc.get_ptx_size)) {
      return kMostLibraries;
    }
    known.bases[i] = info.dli_fbase;
    return i;
  }
  return kMostLibraries;
}

/// The function that the object at `caller` would find under `name` without us; null if there is none.
void* as_linked(void* caller, const char* name, void* ours) {
  Dl_info info{};
  void* found = nullptr;
  if (dladdr(caller, &info) && info.dli_fname && *info.dli_fname) {
    if (void* object = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      found = real_dlsym(object, name);
      dlclose(object);
    }
  }
  // The program's own scope begins with us.
  return found && found != ours ? found : real_dlsym(RTLD_NEXT, name);
}

int collect_nvrtc(dl_phdr_info* info, std::size_t, void* paths) {
  const std::string_view path = info->dlpi_name ? info->dlpi_name : "";
  if (path.substr(path.rfind('/') + 1).starts_with("libnvrtc.so"))
    static_cast<std::vector<std::string>*>(paths)->emplace_back(path);
  return 0;
}

/// `name` in the libnvrtc whose path has the longest start in common with that of the object at `caller`; null if none
/// is loaded.
void* nearest(void* caller, const char* name) {
  std::vector<std::string> paths;
  dl_iterate_phdr(collect_nvrtc, &paths);
  Dl_info info{};
  const std::string_view from = dladdr(caller, &info) && info.dli_fname ? info.dli_fname : "";
  const auto common = [&](const std::string& path) {
    return std::mismatch(path.begin(), path.end(), from.begin(), from.end()).first - path.begin();
  };
  const auto best =
      std::max_element(paths.begin(), paths.end(), [&](const auto& a, const auto& b) { return common(a) < common(b); });
  if (best == paths.end()) return nullptr;
  void* library = dlopen(best->c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  void* found = real_dlsym(library, name);
  dlclose(library);
  return found;
}

constexpr char kCompile[] = "nvrtcCompileProgram";
constexpr char kGetCubin[] = "nvrtcGetCUBIN";

/// The wrapper for the function `name` at `real` in one libnvrtc; null if there is none.
void* wrap(const char* name, void* real) {
  const std::size_t which = real ? library_of(real) : kMostLibraries;
  return which == kMostLibraries ? nullptr
                                 : wrapper_in(which, name == kCompile, std::make_index_sequence<kMostLibraries>());
}

/// For a call of our exported name from `caller`: the wrapper of the real function, or that function itself; null if
/// there is none.
template <class Function>
Function behind(void* caller, const char* name, Function ours) {
  void* real = as_linked(caller, name, reinterpret_cast<void*>(ours));
  if (!real) real = nearest(caller, name);
  void* wrapper = wrap(name, real);
  return reinterpret_cast<Function>(wrapper ? wrapper : real);
}

}  // namespace

void* resolve_nvrtc(void* handle, const char* name) {
  for (const char* wrapped : {kCompile, kGetCubin}) {
    if (std::strcmp(name, wrapped) == 0) return wrap(wrapped, real_dlsym(handle, name));
  }
  return nullptr;
}

}  // namespace gpuslice

using gpuslice::Nvrtc;

#define NVRTC_HOOK extern "C" __attribute__((visibility("default"))) int

NVRTC_HOOK nvrtcCompileProgram(Nvrtc::Program program, int count, const char* const* options) {
  const auto real = gpuslice::behind(__builtin_return_address(0), gpuslice::kCompile, &nvrtcCompileProgram);
  return real ? real(program, count, options) : Nvrtc::kInternalError;
}

NVRTC_HOOK nvrtcGetCUBIN(Nvrtc::Program program, char* cubin) {
  const auto real = gpuslice::behind(__builtin_return_address(0), gpuslice::kGetCubin, &nvrtcGetCUBIN);
  return real ? real(program, cubin) : Nvrtc::kInternalError;
}
