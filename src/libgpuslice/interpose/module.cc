// Modules: how they are loaded (load_image.h), and how functions are found in them.
#include "libgpuslice/client/client.h"
#include "libgpuslice/driver/driver.h"
#include "libgpuslice/interpose/hooks.h"
#include "libgpuslice/modules/load_image.h"
#include "libgpuslice/modules/own_entries.h"
#include "libgpuslice/streams/joining.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

CUresult load_module(CUmodule* out, const void* data, std::optional<std::size_t> size, CUjit_option* options,
                     void** values, unsigned count, std::function<CUresult()> plain) {
  return load_image(
      reinterpret_cast<void**>(out),
      {.data = data, .size = size, .options = options, .values = values, .count = count, .is_library = false},
      {.plain = std::move(plain),
       .load =
           [=](void** module, const void* code) {
             return driver().cuModuleLoadDataEx(reinterpret_cast<CUmodule*>(module), code, count, options, values);
           },
       .unload = [](void* module) { driver().cuModuleUnload(static_cast<CUmodule>(module)); }});
}

}  // namespace
}  // namespace gpuslice

using namespace gpuslice;

GPUSLICE_HOOK cuModuleLoadData(CUmodule* module, const void* image) {
  return load_module(module, image, std::nullopt, nullptr, nullptr, 0,
                     [&] { return driver().cuModuleLoadData(module, image); });
}

GPUSLICE_HOOK cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                                 void** values) {
  return load_module(module, image, std::nullopt, options, values, count,
                     [&] { return driver().cuModuleLoadDataEx(module, image, count, options, values); });
}

GPUSLICE_HOOK cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load_module(module, image, std::nullopt, nullptr, nullptr, 0,
                     [&] { return driver().cuModuleLoadFatBinary(module, image); });
}

GPUSLICE_HOOK cuModuleLoad(CUmodule* module, const char* path) {
  auto plain = [&] { return driver().cuModuleLoad(module, path); };
  std::optional<std::vector<char>> file = path && Client::get().wanted() ? read_file(path) : std::nullopt;
  if (!file) return plain();
  return load_module(module, file->data(), file->size(), nullptr, nullptr, 0, plain);
}

GPUSLICE_HOOK cuModuleUnload(CUmodule module) {
  return nothrow([&] {
    join_all();
    QuiesceLaunches quiesced;
    const std::shared_ptr<LoadedImage> image = Modules::get().remove(module);
    const CUresult result = driver().cuModuleUnload(module);
    unload_forms(image);
    return result;
  });
}

GPUSLICE_HOOK cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  CUresult result = driver().cuModuleGetFunction(function, module, name);
  if (result != CUDA_SUCCESS || !Client::get().wanted()) return result;
  return nothrow([&] {
    if (std::shared_ptr<LoadedImage> image = Modules::get().find(module)) image->kernel(name, *function, false);
    return CUDA_SUCCESS;
  });
}

GPUSLICE_HOOK cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  CUresult result = driver().cuModuleGetFunctionCount(count, module);
  if (result == CUDA_SUCCESS) *count -= added_entries(Modules::get().find(module));
  return result;
}

GPUSLICE_HOOK cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return nothrow([&] {
    return enumerate_own(functions, count, module, driver().cuModuleGetFunctionCount,
                         driver().cuModuleEnumerateFunctions, driver().cuModuleGetFunction);
  });
}
