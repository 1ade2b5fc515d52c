#include <algorithm>

#include "libgpuslice/agent/swap.h"
#include "libgpuslice/base/driver.h"
#include "libgpuslice/base/watching_tool.h"
#include "libgpuslice/image/cache_directory.h"
#include "libgpuslice/image/compile_options.h"
#include "libgpuslice/image/content_hash.h"
#include "libgpuslice/image/jit_options.h"
#include "libgpuslice/image/known_ptx.h"
#include "libgpuslice/modules/image_load.h"
#include "ptx/container/image.h"

namespace gpuslice {

namespace ptx = gpuctl::ptx;
using gpuctl::fail;
using gpuctl::Result;

namespace {

/// Compute capability, 90 for 9.0.
unsigned sm_of(CUdevice device) {
  int major = 0, minor = 0;
  driver().cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver().cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  return static_cast<unsigned>(major * 10 + minor);
}

/// The current device, or the first one if no context is current, since libraries may be loaded before there is a
/// context.
CUdevice current_device() {
  CUdevice device = 0;
  if (driver().cuCtxGetDevice(&device) != CUDA_SUCCESS) driver().cuDeviceGet(&device, 0);
  return device;
}

/// Whether all devices have the same architecture. Libraries are loaded for all devices, so code compiled for one must
/// run on all.
bool devices_are_alike() {
  int count = 0;
  if (driver().cuDeviceGetCount(&count) != CUDA_SUCCESS) return false;
  for (CUdevice device = 1; device < count; ++device) {
    if (sm_of(device) != sm_of(0)) return false;
  }
  return true;
}

/// The PTX that a cubin was made from, if libgpuslice saw that, and if the device can run code made from it.
std::optional<KnownPtx> ptx_of_cubin(const ImageLoad& load) {
  const std::optional<std::string_view> cubin = cubin_at(load.data, load.size);
  if (!cubin) return std::nullopt;
  std::optional<KnownPtx> known = find_known_ptx(*cubin, CacheDirectory::of_user());
  if (!known) return std::nullopt;
  const ptx::Bytes bytes(reinterpret_cast<const std::byte*>(known->text.data()), known->text.size());
  const Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(bytes);
  if (!entries || !ptx::choose_ptx(*entries, load.sm)) return std::nullopt;
  return known;
}

/// An image whose code has managed variables makes managed memory when it is loaded.
template <class Code>
void note_managed(const Code& code) {
  if (ptx::has_managed_variables(code)) Swap::get().note_managed_memory();
}

/// The PTX in the image that the device can run, with the register limit that is recorded with it.
Result<KnownPtx> ptx_of_image(const ImageLoad& load) {
  if (std::optional<KnownPtx> known = ptx_of_cubin(load)) {
    note_managed(known->text);
    return std::move(*known);
  }
  const Result<ptx::Bytes> bytes =
      load.size ? Result<ptx::Bytes>(ptx::Bytes{static_cast<const std::byte*>(load.data), *load.size})
                : ptx::image_in_memory(load.data);
  if (!bytes) return bytes.error();
  const Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(*bytes);
  if (!entries) return entries.error();
  const Result<std::size_t> choice = ptx::choose_ptx(*entries, load.sm);
  if (!choice) {
    std::ranges::for_each(*entries, note_managed<ptx::FatbinEntry>);
    return choice.error();
  }
  const ptx::FatbinEntry& entry = (*entries)[*choice];
  Result<std::string> text = ptx::ptx_text(entry);
  if (!text) return text.error();
  note_managed(*text);
  const std::optional<int> registers = fatbin_register_limit(entry.options);
  if (!registers) return fail("compiled with options the rewriter does not know: " + entry.options);
  return KnownPtx{std::move(*text), *registers};
}

}  // namespace

void find_ptx(ImageLoad& load) {
  load.sm = sm_of(current_device());
  Result<KnownPtx> found = ptx_of_image(load);
  if (!found) {
    load.reason = std::move(found.error().message);
    return;
  }
  load.image->label = "ptx " + to_text(content_hash(found->text)).substr(0, 8);
  const std::optional<int> limit = register_limit_of(load.options.count, load.options.options, load.options.values);
  if (tool_watches()) {
    load.reason = "a tool in the program, such as a profiler, has to see its kernels as they are";
  } else if (!limit) {
    load.reason = "loaded with options of the program that shape the code";
  } else if (!devices_are_alike()) {
    load.reason = "the GPUs here are of several architectures";
  } else {
    load.max_registers = *limit != 0 ? *limit : found->max_registers;
    load.ptx = std::move(found->text);
  }
}

}  // namespace gpuslice
