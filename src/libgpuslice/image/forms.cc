#include "libgpuslice/image/forms.h"

#include "libgpuslice/image/packed.h"
#include "libgpuslice/rewriter_version.h"

namespace gpuslice {

namespace {

constexpr char kKind[] = ".compiled";

}  // namespace

ContentHash cache_key(const FormsKey& key) {
  const ContentHash ptx = content_hash(key.ptx, kRewriterVersion);
  const std::string whole = to_text(ptx) + ' ' + std::to_string(ptx.length) + ' ' + std::to_string(key.sm) + ' ' +
                            std::to_string(key.max_registers) + ' ' + std::to_string(key.driver_version);
  return content_hash(whole, kRewriterVersion);
}

std::string pack(const Forms& forms) {
  Packer packer;
  packer.text(forms.reason);
  packer.text(forms.code);
  packer.number(forms.stands_alone);
  packer.number(forms.kernels.size());
  for (const ImageKernel& kernel : forms.kernels) {
    packer.text(kernel.name);
    packer.text(kernel.reason);
    packer.number(kernel.persistent);
    packer.number(kernel.needs_whole_warps);
    packer.number(kernel.words_behind);
    packer.number(static_cast<std::uint64_t>(kernel.blocks_wait));
    packer.number(kernel.args_offset);
    packer.number(kernel.params.size());
    for (const Parameter& param : kernel.params) {
      packer.number(param.offset);
      packer.number(param.size);
    }
  }
  return std::move(packer.bytes);
}

std::optional<Forms> unpack(std::string_view bytes) {
  Unpacker unpacker{bytes};
  Forms forms;
  forms.reason = unpacker.text();
  forms.code = unpacker.text();
  forms.stands_alone = unpacker.number() != 0;
  for (std::uint64_t left = unpacker.number(); left > 0 && unpacker.whole; --left) {
    ImageKernel& kernel = forms.kernels.emplace_back();
    kernel.name = unpacker.text();
    kernel.reason = unpacker.text();
    kernel.persistent = unpacker.number() != 0;
    kernel.needs_whole_warps = unpacker.number() != 0;
    kernel.words_behind = unpacker.number() != 0;
    const std::uint64_t wait = unpacker.number();
    if (wait > static_cast<std::uint64_t>(gpuctl::ptx::BlocksWait::kYes)) return std::nullopt;
    kernel.blocks_wait = static_cast<gpuctl::ptx::BlocksWait>(wait);
    kernel.args_offset = static_cast<std::uint32_t>(unpacker.number());
    for (std::uint64_t params = unpacker.number(); params > 0 && unpacker.whole; --params) {
      const auto offset = static_cast<std::uint32_t>(unpacker.number());
      kernel.params.push_back({offset, static_cast<std::uint32_t>(unpacker.number())});
    }
  }
  if (!unpacker.whole || !unpacker.bytes.empty()) return std::nullopt;
  return forms;
}

std::optional<Forms> find_forms(const ContentHash& key, const CacheDirectory& cache) {
  const std::optional<std::string> kept = cache.get(key, kKind);
  return kept ? unpack(*kept) : std::nullopt;
}

bool keep_forms(const ContentHash& key, const Forms& forms, const CacheDirectory& cache) {
  return cache.put(key, kKind, pack(forms));
}

}  // namespace gpuslice
