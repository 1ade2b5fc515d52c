#include "libgpuslice/image/known_ptx.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <mutex>

#include "ptx/container/image.h"

namespace gpuslice {

namespace {

constexpr char kKind[] = ".ptx-of-cubin";
constexpr std::uint64_t kDomain = 2;  ///< unlike that of forms.cc, which is a hash
/// Most bytes of PTX kept in memory when there is no directory. Above that, all are forgotten.
constexpr std::size_t kMostInMemory = std::size_t{64} << 20;

/// PTX that could not be kept in a directory.
struct InMemory {
  std::mutex mutex;
  std::map<std::string, KnownPtx> by_hash;
  std::size_t bytes = 0;
};

InMemory& in_memory() {
  static InMemory* memory = new InMemory;
  return *memory;
}

/// Whether the ELF headers say that the file ends within `size` bytes. Its sections are checked later.
bool headers_within(const void* image, std::size_t size) {
  Elf64_Ehdr header;
  if (size < sizeof header) return false;
  std::memcpy(&header, image, sizeof header);
  const auto within = [size](std::uint64_t offset, std::uint64_t count, std::uint64_t each) {
    return offset <= size && count * each <= size - offset;
  };
  return within(header.e_shoff, header.e_shnum, header.e_shentsize) &&
         within(header.e_phoff, header.e_phnum, header.e_phentsize);
}

}  // namespace

std::optional<std::string_view> cubin_at(const void* image, std::optional<std::size_t> size) {
  const auto* bytes = static_cast<const char*>(image);
  for (std::size_t i = 0; i < SELFMAG; ++i) {
    if ((size && i >= *size) || bytes[i] != ELFMAG[i]) return std::nullopt;
  }
  if (size && !headers_within(image, *size)) return std::nullopt;
  const gpuctl::Result<gpuctl::ptx::Bytes> extent = gpuctl::ptx::image_in_memory(image);
  if (!extent || (size && extent->size() > *size)) return std::nullopt;
  return std::string_view(bytes, extent->size());
}

void remember_ptx(std::string_view cubin, const KnownPtx& ptx, const CacheDirectory& cache) {
  const ContentHash key = content_hash(cubin, kDomain);
  if (cache.put(key, kKind, std::to_string(ptx.max_registers) + '\n' + ptx.text)) return;
  InMemory& memory = in_memory();
  std::lock_guard lock(memory.mutex);
  if (memory.bytes + ptx.text.size() > kMostInMemory) {
    memory.by_hash.clear();
    memory.bytes = 0;
  }
  if (memory.by_hash.insert_or_assign(to_text(key), ptx).second) memory.bytes += ptx.text.size();
}

std::optional<KnownPtx> find_known_ptx(std::string_view cubin, const CacheDirectory& cache) {
  const ContentHash key = content_hash(cubin, kDomain);
  if (const std::optional<std::string> kept = cache.get(key, kKind)) {
    const std::size_t line = kept->find('\n');
    if (line != kept->npos) return KnownPtx{kept->substr(line + 1), std::atoi(kept->c_str())};
  }
  InMemory& memory = in_memory();
  std::lock_guard lock(memory.mutex);
  const auto known = memory.by_hash.find(to_text(key));
  return known == memory.by_hash.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace gpuslice
