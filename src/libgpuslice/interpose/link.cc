// The driver's linker. Notes what its cubins are made of (linked_ptx.h).
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/linked_ptx.h"
#include "libgpuslice/image/read_file.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/interpose/note_after.h"

using namespace gpuslice;

GPUSLICE_HOOK cuLinkCreate_v2(unsigned count, CUjit_option* options, void** values, CUlinkState* state) {
  if (!driver().cuLinkCreate_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return note_after(driver().cuLinkCreate_v2(count, options, values, state),
                    [&] { LinkedPtx::get().created(*state, count, options, values); });
}

GPUSLICE_HOOK cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char* name,
                               unsigned count, CUjit_option* options, void** values) {
  if (!driver().cuLinkAddData_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return note_after(driver().cuLinkAddData_v2(state, type, data, size, name, count, options, values), [&] {
    if (type == CU_JIT_INPUT_PTX)
      LinkedPtx::get().added(state, {static_cast<const char*>(data), size}, count, options, values);
    else
      LinkedPtx::get().added_other(state);
  });
}

GPUSLICE_HOOK cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char* path, unsigned count,
                               CUjit_option* options, void** values) {
  if (!driver().cuLinkAddFile_v2) return CUDA_ERROR_NOT_INITIALIZED;
  return note_after(driver().cuLinkAddFile_v2(state, type, path, count, options, values), [&] {
    const std::optional<std::string> file = type == CU_JIT_INPUT_PTX ? read_file(path) : std::nullopt;
    if (file)
      LinkedPtx::get().added(state, *file, count, options, values);
    else
      LinkedPtx::get().added_other(state);
  });
}

GPUSLICE_HOOK cuLinkComplete(CUlinkState state, void** cubin, size_t* size) {
  if (!driver().cuLinkComplete) return CUDA_ERROR_NOT_INITIALIZED;
  return note_after(driver().cuLinkComplete(state, cubin, size), [&] {
    const std::optional<KnownPtx> ptx = LinkedPtx::get().made_of(state);
    const std::optional<std::string_view> made =
        ptx ? cubin_at(*cubin, size ? std::optional(*size) : std::nullopt) : std::nullopt;
    if (!made) return;
    remember_ptx(*made, *ptx, CacheDirectory::of_user());
    debug("the driver linked %zu bytes of machine code from %zu bytes of PTX", made->size(), ptx->text.size());
  });
}

GPUSLICE_HOOK cuLinkDestroy(CUlinkState state) {
  if (!driver().cuLinkDestroy) return CUDA_ERROR_NOT_INITIALIZED;
  if (Client::get().wanted()) LinkedPtx::get().destroyed(state);
  return driver().cuLinkDestroy(state);
}
