// cuLink*: one PTX text, nothing else.
#include <cuda.h>

#include "ptx/syntax/parser.h"
#include "softgpu/code/linker.h"
#include "softgpu/device/exit.h"
#include "softgpu/driver/driver.h"

using namespace gpuctl::softgpu;

namespace {

template <class Body>
CUresult with_linker(CUlinkState state, Body&& body, const char* call = __builtin_FUNCTION()) noexcept {
  return with_found(
      &Driver::linkers, state, [&](Driver&, Linker& linker) { return body(linker); }, call);
}

}  // namespace

extern "C" {

/// NVIDIA's driver has no such name. Who finds it knows that machine code for a GPU is of no use here, but what the
/// linker below makes.
void cuRunsOwnCodeAlone() {}

CUresult CUDAAPI cuLinkCreate_v2(unsigned int, CUjit_option*, void**, CUlinkState* result) {
  return with_context([&](Driver& driver, Context&) {
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CompilerUse use;
    *result = driver.linkers.add(std::make_shared<Linker>());
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void* data, size_t size, const char*,
                                  unsigned int, CUjit_option*, void**) {
  return with_linker(state, [&](Linker& linker) {
    if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_JIT_INPUT_PTX || !linker.text.empty()) return CUDA_ERROR_NOT_SUPPORTED;
    const CompilerUse use;
    const std::string_view text(static_cast<const char*>(data), size);
    linker.text = text.substr(0, text.find('\0'));
    return gpuctl::ptx::parse(linker.text) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX;
  });
}

CUresult CUDAAPI cuLinkComplete(CUlinkState state, void** image, size_t* size) {
  return with_linker(state, [&](Linker& linker) {
    if (image == nullptr || linker.text.empty()) return CUDA_ERROR_INVALID_VALUE;
    const CompilerUse use;
    take_time_to_compile();
    linker.image = compiled_image(linker.text);
    *image = linker.image.data();
    if (size != nullptr) *size = linker.image.size();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuLinkDestroy(CUlinkState state) {
  return with_driver([&](Driver& driver) {
    return driver.linkers.remove(state) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

}  // extern "C"
