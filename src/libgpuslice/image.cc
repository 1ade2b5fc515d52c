#include "libgpuslice/image.h"

#include <algorithm>
#include <cstdlib>

#include "libgpuslice/content_hash.h"
#include "libgpuslice/debug.h"
#include "libgpuslice/text_cache.h"
#include "ptx/image.h"

namespace gpuslice {

namespace ptx = gpuctl::ptx;

namespace {

/// The register limit among ptxas options recorded with the PTX; nothing when there is an option that changes what the
/// code computes or that we do not know.
std::optional<int> register_limit(std::string_view options) {
  int limit = 0;
  while (!options.empty()) {
    const std::size_t end = std::min(options.find(' '), options.size());
    std::string_view option = options.substr(0, end);
    options.remove_prefix(std::min(end + 1, options.size()));
    while (option.starts_with("--")) option.remove_prefix(1);
    if (option.empty()) continue;
    constexpr std::string_view kLimit = "-maxrregcount=";
    if (option.starts_with(kLimit)) {
      limit = std::atoi(std::string(option.substr(kLimit.size())).c_str());
    } else if (option != "-O3" && option != "-v" && option != "-lineinfo" && option != "-generate-line-info" && option != "-w") {
      return std::nullopt;
    }
  }
  return limit;
}

PreparedImage opaque(PreparedImage image, std::string reason) {
  image.reason = std::move(reason);
  debug("%s loads as it is: %s", image.label.c_str(), image.reason.c_str());
  return image;
}

}  // namespace

PreparedImage prepare_image(const void* data, std::optional<std::size_t> size, unsigned sm) {
  PreparedImage image;
  image.label = "image";
  gpuctl::Result<ptx::Bytes> bytes =
      size ? gpuctl::Result<ptx::Bytes>(ptx::Bytes{static_cast<const std::byte*>(data), *size}) : ptx::image_in_memory(data);
  if (!bytes) return opaque(std::move(image), bytes.error().message);
  gpuctl::Result<std::vector<ptx::FatbinEntry>> entries = ptx::read_image(*bytes);
  if (!entries) return opaque(std::move(image), entries.error().message);
  gpuctl::Result<std::size_t> choice = ptx::choose_ptx(*entries, sm);
  if (!choice) return opaque(std::move(image), choice.error().message);
  const ptx::FatbinEntry& entry = (*entries)[*choice];
  gpuctl::Result<std::string> text = ptx::ptx_text(entry);
  if (!text) return opaque(std::move(image), text.error().message);
  image.label = "ptx " + to_text(content_hash(*text)).substr(0, 8);
  std::optional<int> registers = register_limit(entry.options);
  if (!registers) return opaque(std::move(image), "compiled with options the rewriter does not know: " + entry.options);
  image.max_registers = *registers;

  Rewritten rewritten = rewrite_once(*text, CacheDirectory::of_user());
  if (!rewritten.reason.empty()) return opaque(std::move(image), rewritten.reason);
  // With no reason of its own the image leaves each kernel the one the rewriter gave.
  image.kernels = std::move(rewritten.kernels);
  image.text = std::move(rewritten.text);
  return image;
}

}  // namespace gpuslice
