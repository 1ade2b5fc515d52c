#include "libgpuslice/modules/image_load.h"

#include "libgpuslice/base/current_context.h"
#include "libgpuslice/base/debug.h"
#include "libgpuslice/base/memory_reserve.h"
#include "libgpuslice/base/nothrow.h"
#include "libgpuslice/base/stage.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/image/read_file.h"
#include "libgpuslice/streams/quiesce.h"

namespace gpuslice {

namespace {

/// Returns false if the file cannot be read.
bool read_image_file(ImageLoad& load) {
  std::optional<std::string> file = read_file(load.path);
  if (!file) return false;
  load.file = std::move(*file);
  load.data = load.file.c_str();
  load.size = load.file.size() + 1;  // PTX is text and ends with a NUL
  return true;
}

}  // namespace

CUresult load_image(ImageLoad load) {
  if (!Client::get().wanted() || memory_ran_out() || !load.out || (!load.data && !load.path)) return load.plain();
  return nothrow([&] {
    if (load.path && !read_image_file(load)) return load.plain();
    const Stage stage("loading an image");
    const QuiesceLaunches quiesced(load.container->is_library ? QuiesceLaunches::kAllDevices : device_of_current());
    const Stopwatch watch;
    load.image = std::make_shared<LoadedImage>(*load.container);
    find_ptx(load);
    rewrite_ptx(load);
    const long long looked_us = watch.us();
    plan_load(load);
    if (const CUresult result = load_code(load); result != CUDA_SUCCESS) return result;
    register_kernels(load);
    debug("%s: looked at for %lld us, loaded %s in %lld us%s%s", load.image->label.c_str(), looked_us,
          load.image->has_forms ? "with its other forms" : "as it is", watch.us() - looked_us,
          load.reason.empty() ? "" : ": ", load.reason.c_str());
    return CUDA_SUCCESS;
  });
}

}  // namespace gpuslice
