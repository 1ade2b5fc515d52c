#include "libgpuslice/compiled_image.h"

namespace gpuslice {

namespace {

constexpr char kKind[] = ".compiled";
/// Others than those of text_cache.cc and known_ptx.cc. Counted up when something else decides what is made, as the
/// rule for registers.
constexpr std::uint64_t kDomain = 3;

ContentHash hash_of(const CompileKey& key) {
  const ContentHash text = content_hash(key.text, kDomain);
  const std::string whole = to_text(text) + ' ' + std::to_string(text.length) + ' ' +
                            std::to_string(key.driver_version) + ' ' + std::to_string(key.sm) + ' ' +
                            std::to_string(key.max_registers);
  return content_hash(whole, kDomain);
}

}  // namespace

std::optional<std::string> find_compiled(const CompileKey& key, const CacheDirectory& cache) {
  return cache.get(hash_of(key), kKind);
}

bool keep_compiled(const CompileKey& key, std::string_view image, const CacheDirectory& cache) {
  return cache.put(hash_of(key), kKind, image);
}

}  // namespace gpuslice
