#include "libgpuslice/text_cache.h"

#include <cstring>

#include "libgpuslice/guard.h"
#include "libgpuslice/rewriter_version.h"
#include "ptx/rewrite.h"

namespace gpuslice {

namespace {

constexpr char kKind[] = ".rewritten";
/// Smaller texts are rewritten faster than a file is made.
constexpr std::size_t kWorthKeepingBytes = 4096;

struct Packer {
  std::string bytes;

  void number(std::uint64_t value) { bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view text) {
    number(text.size());
    bytes += text;
  }
};

/// After the first thing that is not there all else is zero or empty, and `whole` false.
struct Unpacker {
  std::string_view bytes;
  bool whole = true;

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (bytes.size() < sizeof value) {
      whole = false;
      bytes = {};
      return 0;
    }
    std::memcpy(&value, bytes.data(), sizeof value);
    bytes.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > bytes.size()) whole = false;
    const std::string_view text = bytes.substr(0, size);
    bytes.remove_prefix(text.size());
    return std::string(text);
  }
};

using gpuctl::ptx::Guards;

Guards guards() { return guard() == Guard::kNever ? Guards::kNo : Guards::kYes; }

Rewritten rewrite(std::string_view text) {
  Rewritten made;
  gpuctl::Result<gpuctl::ptx::RewrittenText> result = gpuctl::ptx::rewrite_text(text, guards());
  if (!result) {
    made.reason = "PTX not understood: " + result.error().message;
    return made;
  }
  made.stands_alone = result->stands_alone;
  bool any = false;
  for (const gpuctl::ptx::EntryReport& report : result->entries) {
    ImageKernel& kernel = made.kernels.emplace_back();
    kernel.name = report.name;
    kernel.persistent = report.form != gpuctl::ptx::Form::kOpaque;
    kernel.once = report.form == gpuctl::ptx::Form::kGuarded;
    kernel.reason = report.reason;
    for (const gpuctl::ptx::ParamLayout& param : report.params) kernel.params.push_back({param.offset, param.size});
    kernel.args_offset = report.args_offset;
    kernel.needs_whole_warps = report.needs_whole_warps;
    kernel.words_behind = report.words_behind;
    any = any || kernel.persistent;
  }
  if (any) made.text = std::move(result->text);
  return made;
}

}  // namespace

std::string pack(const Rewritten& rewritten) {
  Packer packer;
  packer.text(rewritten.reason);
  packer.text(rewritten.text);
  packer.number(rewritten.stands_alone);
  packer.number(rewritten.kernels.size());
  for (const ImageKernel& kernel : rewritten.kernels) {
    packer.text(kernel.name);
    packer.text(kernel.reason);
    packer.number(kernel.persistent);
    packer.number(kernel.once);
    packer.number(kernel.needs_whole_warps);
    packer.number(kernel.words_behind);
    packer.number(kernel.args_offset);
    packer.number(kernel.params.size());
    for (const Parameter& param : kernel.params) {
      packer.number(param.offset);
      packer.number(param.size);
    }
  }
  return std::move(packer.bytes);
}

std::optional<Rewritten> unpack(std::string_view bytes) {
  Unpacker unpacker{bytes};
  Rewritten rewritten;
  rewritten.reason = unpacker.text();
  rewritten.text = unpacker.text();
  rewritten.stands_alone = unpacker.number() != 0;
  for (std::uint64_t left = unpacker.number(); left > 0 && unpacker.whole; --left) {
    ImageKernel& kernel = rewritten.kernels.emplace_back();
    kernel.name = unpacker.text();
    kernel.reason = unpacker.text();
    kernel.persistent = unpacker.number() != 0;
    kernel.once = unpacker.number() != 0;
    kernel.needs_whole_warps = unpacker.number() != 0;
    kernel.words_behind = unpacker.number() != 0;
    kernel.args_offset = static_cast<std::uint32_t>(unpacker.number());
    for (std::uint64_t params = unpacker.number(); params > 0 && unpacker.whole; --params) {
      const auto offset = static_cast<std::uint32_t>(unpacker.number());
      kernel.params.push_back({offset, static_cast<std::uint32_t>(unpacker.number())});
    }
  }
  if (!unpacker.whole || !unpacker.bytes.empty()) return std::nullopt;
  return rewritten;
}

Rewritten rewrite_once(std::string_view text, const CacheDirectory& cache) {
  if (text.size() < kWorthKeepingBytes) return rewrite(text);
  const ContentHash key = content_hash(text, kRewriterVersion + (guards() == Guards::kYes));
  if (const std::optional<std::string> kept = cache.get(key, kKind)) {
    if (std::optional<Rewritten> known = unpack(*kept)) return std::move(*known);
  }
  Rewritten made = rewrite(text);
  cache.put(key, kKind, pack(made));
  return made;
}

}  // namespace gpuslice
