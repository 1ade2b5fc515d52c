#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "libgpuslice/base/dlsym.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/environment.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/compile_queue.h"
#include "libgpuslice/modules/image_load.h"

namespace gpuslice {

namespace {

/// GPUSLICE_BACKGROUND=0: the program waits until its kernels are compiled, so that its first launches can be evicted
/// too.
bool waits_for_compiling() {
  static const bool waits = [] {
    const char* wanted = environment("GPUSLICE_BACKGROUND");
    return wanted && std::strcmp(wanted, "0") == 0;
  }();
  return waits;
}

/// A driver that runs no machine code but what its own linker makes has this function. NVIDIA's runs any.
bool runs_own_code_alone() {
  static const bool alone = libcuda_function("cuRunsOwnCodeAlone") != nullptr;
  return alone;
}

/// Path of the loaded library that the helper is to compile with: such a driver, or an nvJitLink, such as PyTorch's
/// wheels contain. Empty: there is none.
std::string loaded_linker() {
  struct Search {
    std::string_view part;
    std::string found;
  } search{runs_own_code_alone() ? "/libcuda.so" : "/libnvJitLink.so", {}};
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* result) {
        auto& wanted = *static_cast<Search*>(result);
        if (std::string_view(library->dlpi_name).find(wanted.part) == std::string_view::npos) return 0;
        wanted.found = library->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

/// What the compile helper must make of the PTX, except for the linker: only a job needs that.
CompileRequest request_for(ImageLoad& load) {
  int version = 0;
  driver().cuDriverGetVersion(&version);
  CompileRequest request{.ptx = std::move(load.ptx),
                         .key = {},
                         .sm = load.sm,
                         .max_registers = load.max_registers,
                         .by_driver = load.own_code_alone,
                         .linker = {}};
  request.key = cache_key(
      {.ptx = request.ptx, .sm = request.sm, .max_registers = request.max_registers, .driver_version = version});
  return request;
}

/// The forms, when the helper has made them; the program waits.
Forms wait_for_forms(const CompileRequest& request) {
  const Stage stage("waiting for the compile helper");
  CompileResult made = CompileQueue::compile_and_wait(request);
  if (made) return std::move(*made);
  return Forms{.code = {}, .kernels = {}, .reason = "not compiled: " + made.error().message};
}

}  // namespace

void rewrite_ptx(ImageLoad& load) {
  if (load.ptx.empty()) return;
  load.own_code_alone = runs_own_code_alone();
  CompileRequest request = request_for(load);
  load.forms = find_forms(request.key, CacheDirectory::of_user());
  if (!load.forms) {
    request.linker = loaded_linker();
    if (waits_for_compiling())
      load.forms = wait_for_forms(request);
    else
      load.request = std::move(request);
  }
  if (load.forms) load.reason = std::move(load.forms->reason);
}

}  // namespace gpuslice
