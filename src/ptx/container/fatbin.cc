#include "ptx/container/fatbin.h"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>

namespace gpuctl::ptx {
namespace {

// Largest PTX text that is unpacked, in bytes: far above any real module, small enough that a forged size does not
// exhaust a process.
constexpr std::uint64_t kMaxText = std::uint64_t{512} << 20;
constexpr std::uint32_t kMinEntryHeader = 64;
// A byte of LZ4 expands to at most 255 bytes. A block of zstd, of three bytes or more, expands to at most 128 KiB.
constexpr std::uint64_t kLz4Most = 255;
constexpr std::uint64_t kZstdMost = (std::uint64_t{128} << 10) / 3 + 1;

Error fail_at(std::uint64_t offset, const std::string& problem) {
  char place[40];
  std::snprintf(place, sizeof place, "fatbin offset 0x%llx: ", static_cast<unsigned long long>(offset));
  return fail(place + problem);
}

/// Result<std::string> cannot tell by type whether a string is the value or the error.
Result<std::string> text_result(std::string text) {
  return text;
}

std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(std::string_view(" \t\0", 3));
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(std::string_view(" \t\0", 3)) - first + 1));
}

/// The option string of an entry. `header`: the entry's header; `block`: the offset in its option field, not 0;
/// `offset`: of the entry in the image.
Result<std::string> read_options(Bytes header, std::uint32_t block, std::uint64_t offset) {
  const auto text_offset = read_at<std::uint32_t>(header, block);
  const auto length = read_at<std::uint32_t>(header, std::uint64_t{block} + 4);
  if (!text_offset || !length) return fail_at(offset + 0x14, "option block lies outside the entry header");
  const auto text = slice(header, *text_offset, *length);
  if (!text) return fail_at(offset + block, "option string lies outside the entry header");
  return text_result(trimmed(as_text(*text)));
}

/// Reads the entry at `offset` of `image` and moves `offset` behind it; it must end at or before `end`.
Result<FatbinEntry> read_entry(Bytes image, std::uint64_t& offset, std::uint64_t end) {
  const auto available = slice(image, offset, end - offset);
  if (!available || available->size() < kMinEntryHeader) return fail_at(offset, "entry header is cut off");
  const Bytes bytes = *available;
  const std::uint32_t header_size = *read_at<std::uint32_t>(bytes, 0x04);
  const std::uint64_t payload_size = *read_at<std::uint64_t>(bytes, 0x08);
  const std::uint32_t compressed_size = *read_at<std::uint32_t>(bytes, 0x10);
  const std::uint32_t options = *read_at<std::uint32_t>(bytes, 0x14);
  if (header_size < kMinEntryHeader) return fail_at(offset + 0x04, "entry header size is too small");
  const auto header = slice(bytes, 0, header_size);
  if (!header) return fail_at(offset + 0x04, "entry header does not fit its container");
  const auto payload = slice(bytes, header_size, payload_size);
  if (!payload) return fail_at(offset + 0x08, "payload does not fit its container");

  FatbinEntry entry;
  entry.kind = static_cast<FatbinKind>(*read_at<std::uint16_t>(bytes, 0x00));
  entry.sm = *read_at<std::uint32_t>(bytes, 0x1c);
  entry.flags = *read_at<std::uint64_t>(bytes, 0x28);
  entry.suffix = (entry.flags & kFatbinArchSpecific) != 0     ? 'a'
                 : (entry.flags & kFatbinFamilySpecific) != 0 ? 'f'
                                                              : '\0';
  entry.offset = offset;
  entry.payload = *payload;
  entry.uncompressed_size = *read_at<std::uint64_t>(bytes, 0x38);
  if (compressed_size != 0) {
    if (compressed_size > payload_size) return fail_at(offset + 0x10, "compressed size is larger than the payload");
    entry.payload = payload->first(compressed_size);
  }
  if (options != 0) {
    Result<std::string> text = read_options(*header, options, offset);
    if (!text) return text.error();
    entry.options = std::move(*text);
  }
  offset += header_size + payload_size;
  return entry;
}

bool runs_on(const FatbinEntry& entry, std::uint32_t device_sm) {
  if (entry.suffix == 'a') return entry.sm == device_sm;
  if (entry.suffix != 'f') return entry.sm <= device_sm;
  // 10.1 shares its major number with 10.0 and 10.3 but is a family of its own.
  const bool same_family = entry.sm / 10 == device_sm / 10 && (entry.sm == 101) == (device_sm == 101);
  return same_family && entry.sm <= device_sm;
}

std::string arch_name(const FatbinEntry& entry) {
  std::string name = "sm_" + std::to_string(entry.sm);
  if (entry.suffix != '\0') name += entry.suffix;
  return name;
}

Result<std::string> unpack_lz4(const FatbinEntry& entry, std::string text) {
  const int written = LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()), text.data(),
                                          static_cast<int>(entry.payload.size()), static_cast<int>(text.size()));
  if (written < 0 || static_cast<std::size_t>(written) != text.size())
    return fail_at(entry.offset, "LZ4 payload is damaged");
  return text_result(std::move(text));
}

Result<std::string> unpack_zstd(const FatbinEntry& entry, std::string text) {
  const std::size_t written = ZSTD_decompress(text.data(), text.size(), entry.payload.data(), entry.payload.size());
  if (ZSTD_isError(written)) return fail_at(entry.offset, std::string("zstd payload: ") + ZSTD_getErrorName(written));
  if (written != text.size())
    return fail_at(entry.offset + 0x38, "zstd payload does not have the size the entry names");
  return text_result(std::move(text));
}

}  // namespace

Result<std::uint64_t> fatbin_size(Bytes header) {
  const auto magic = read_at<std::uint32_t>(header, 0);
  const auto version = read_at<std::uint16_t>(header, 4);
  const auto header_size = read_at<std::uint16_t>(header, 6);
  const auto size = read_at<std::uint64_t>(header, 8);
  if (!size) return fail_at(0, "container header is cut off");
  if (*magic != kFatbinMagic) return fail_at(0, "not a fatbin container");
  if (*version != 1) return fail_at(4, "container version " + std::to_string(*version) + " is not known");
  if (*header_size != kFatbinHeaderBytes) return fail_at(6, "container header size is not 16");
  if (*size > UINT64_MAX / 2) return fail_at(8, "container size is out of range");
  return *size + kFatbinHeaderBytes;
}

Result<std::vector<FatbinEntry>> read_fatbin(Bytes image) {
  std::vector<FatbinEntry> entries;
  std::uint64_t start = 0;
  do {
    const Result<std::uint64_t> size = fatbin_size(image.subspan(start));
    if (!size) return start == 0 ? size.error() : fail_at(start, "not a container: " + size.error().message);
    if (*size > image.size() - start) return fail_at(start + 8, "container is larger than the image");
    const std::uint64_t end = start + *size;
    for (std::uint64_t offset = start + kFatbinHeaderBytes; offset < end;) {
      Result<FatbinEntry> entry = read_entry(image, offset, end);
      if (!entry) return entry.error();
      entries.push_back(std::move(*entry));
    }
    start = (end + 7) / 8 * 8;
    // Linkers pad a section with zeros between containers.
    while (start + 8 <= image.size() && *read_at<std::uint64_t>(image, start) == 0) start += 8;
  } while (start + 8 <= image.size());
  return entries;
}

Result<std::string> ptx_text(const FatbinEntry& entry) {
  if (entry.kind != FatbinKind::kPtx) return fail_at(entry.offset, "entry is not PTX");
  const bool lz4 = (entry.flags & kFatbinLz4) != 0;
  const bool zstd = (entry.flags & kFatbinZstd) != 0;
  if (!lz4 && !zstd) {
    if (entry.uncompressed_size != 0) return fail_at(entry.offset + 0x28, "compression of the payload is not known");
    const std::string_view text = as_text(entry.payload);
    return text_result(std::string(text.substr(0, text.find('\0'))));
  }
  if (entry.uncompressed_size == 0 || entry.uncompressed_size > kMaxText || entry.payload.size() > kMaxText) {
    return fail_at(entry.offset + 0x38, "uncompressed size is out of range");
  }
  // This check comes before the memory is allocated.
  if (entry.uncompressed_size / (lz4 ? kLz4Most : kZstdMost) > entry.payload.size()) {
    return fail_at(entry.offset + 0x38, "uncompressed size is more than the payload can hold");
  }
  std::string buffer(entry.uncompressed_size, '\0');
  Result<std::string> text = lz4 ? unpack_lz4(entry, std::move(buffer)) : unpack_zstd(entry, std::move(buffer));
  if (text) text->resize(std::min(text->find('\0'), text->size()));
  return text;
}

Result<std::size_t> choose_ptx(std::span<const FatbinEntry> entries, std::uint32_t device_sm) {
  std::optional<std::size_t> best;
  std::string others;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const FatbinEntry& entry = entries[i];
    if (entry.kind != FatbinKind::kPtx) continue;
    if (!runs_on(entry, device_sm)) {
      others += (others.empty() ? "" : ", ") + arch_name(entry);
      continue;
    }
    const auto rank = [](const FatbinEntry& e) { return e.sm * 4 + (e.suffix == 'a' ? 2 : e.suffix == 'f' ? 1 : 0); };
    if (!best || rank(entry) > rank(entries[*best])) best = i;
  }
  if (best) return *best;
  if (!others.empty()) return fail("no PTX for sm_" + std::to_string(device_sm) + " (only " + others + ")");
  const bool lto =
      std::any_of(entries.begin(), entries.end(), [](const auto& e) { return e.kind == FatbinKind::kLtoIr; });
  return fail(lto ? "no PTX, only link-time IR" : "no PTX, only machine code");
}

bool has_machine_code(std::span<const FatbinEntry> entries, std::uint32_t device_sm) {
  return std::any_of(entries.begin(), entries.end(), [device_sm](const FatbinEntry& entry) {
    return entry.kind == FatbinKind::kElf && entry.sm / 10 == device_sm / 10 && runs_on(entry, device_sm);
  });
}

}  // namespace gpuctl::ptx
