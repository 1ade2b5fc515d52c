#include "libgpuslice/compile/image.h"

#include "libgpuslice/cache/cache_directory.h"
#include "libgpuslice/cache/content_hash.h"
#include "libgpuslice/front_ends/compile_options.h"
#include "libgpuslice/front_ends/known_ptx.h"
#include "ptx/container/image.h"

namespace gpuslice {

namespace ptx = gpuctl::ptx;

namespace {

struct Source {
  std::string text;
  int max_registers = 0;
};

/// The PTX that a cubin was made from, if libgpuslice saw that, and if the device can run code made from it.
std::optional<Source> source_of_cubin(const void* data, std::optional<std::size_t> size, unsigned sm) {
  const std::optional<std::string_view> cubin = cubin_at(data, size);
  if (!cubin) return std::nullopt;
  std::optional<KnownPtx> known = find_ptx(*cubin, CacheDirectory::of_user());
  if (!known) return std::nullopt;
  const ptx::Bytes bytes(reinterpret_cast<const std::byte*>(known->text.data()), known->text.size());
  const gpuctl::Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(bytes);
  if (!entries || !ptx::choose_ptx(*entries, sm)) return std::nullopt;
  return Source{std::move(known->text), known->max_registers};
}

gpuctl::Result<Source> find_source(const void* data, std::optional<std::size_t> size, unsigned sm) {
  if (std::optional<Source> source = source_of_cubin(data, size, sm)) return std::move(*source);
  const gpuctl::Result<ptx::Bytes> bytes =
      size ? gpuctl::Result<ptx::Bytes>(ptx::Bytes{static_cast<const std::byte*>(data), *size})
           : ptx::image_in_memory(data);
  if (!bytes) return bytes.error();
  const gpuctl::Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(*bytes);
  if (!entries) return entries.error();
  const gpuctl::Result<std::size_t> choice = ptx::choose_ptx(*entries, sm);
  if (!choice) return choice.error();
  const ptx::FatbinEntry& entry = (*entries)[*choice];
  gpuctl::Result<std::string> text = ptx::ptx_text(entry);
  if (!text) return text.error();
  const std::optional<int> registers = fatbin_register_limit(entry.options);
  if (!registers) return gpuctl::fail("compiled with options the rewriter does not know: " + entry.options);
  return Source{std::move(*text), *registers};
}

}  // namespace

ImagePtx ptx_of_image(const void* data, std::optional<std::size_t> size, unsigned sm) {
  ImagePtx ptx;
  gpuctl::Result<Source> source = find_source(data, size, sm);
  if (!source) {
    ptx.reason = std::move(source.error().message);
    return ptx;
  }
  ptx.label = "ptx " + to_text(content_hash(source->text)).substr(0, 8);
  ptx.max_registers = source->max_registers;
  ptx.text = std::move(source->text);
  return ptx;
}

}  // namespace gpuslice
