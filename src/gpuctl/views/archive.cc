#include "gpuctl/views/archive.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "gpuctl/text/table.h"
#include "ptx/container/image.h"

namespace gpuctl::cli {
namespace {

constexpr std::string_view kMagic = "!<arch>\n", kThinMagic = "!<thin>\n";
constexpr std::size_t kHeaderBytes = 60, kNameBytes = 16, kSizeAt = 48, kSizeBytes = 10, kEndAt = 58;
constexpr std::string_view kEndOfHeader = "`\n";

std::string_view characters(ptx::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The number that `text` begins with; blanks may follow.
std::optional<std::size_t> number(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  return error == std::errc() && rest.find_first_not_of(' ') == rest.npos ? std::optional(value) : std::nullopt;
}

struct Member {
  std::string_view name;
  std::string_view content;
};

/// Finds the name, where BSD puts it before the content and GNU into a table, `names`.
Member named(std::string_view name, std::string_view content, std::string_view names) {
  name = name.substr(0, name.find_last_not_of(' ') + 1);
  if (name.starts_with("#1/")) {
    const std::size_t length = std::min(number(name.substr(3)).value_or(0), content.size());
    const std::string_view before = content.substr(0, length);
    return {before.substr(0, before.find('\0')), content.substr(length)};
  }
  if (const auto at = name.starts_with('/') ? number(name.substr(1)) : std::nullopt; at && *at < names.size())
    name = names.substr(*at, names.find('\n', *at) - *at);
  return {name.substr(0, name.find('/')), content};
}

}  // namespace

bool is_archive(ptx::Bytes file) {
  const std::string_view text = characters(file);
  return text.starts_with(kMagic) || text.starts_with(kThinMagic);
}

Result<std::vector<ptx::FatbinEntry>> read_archive(ptx::Bytes file) {
  const std::string_view text = characters(file);
  if (text.starts_with(kThinMagic)) return fail("a thin archive, which holds no code; name its members");
  std::vector<ptx::FatbinEntry> entries;
  std::string_view names;
  for (std::size_t at = kMagic.size(); at < text.size();) {
    const std::string_view header = text.substr(at, kHeaderBytes);
    const bool sound = header.size() == kHeaderBytes && header.substr(kEndAt) == kEndOfHeader;
    const auto size = sound ? number(header.substr(kSizeAt, kSizeBytes)) : std::nullopt;
    if (!size || *size > text.size() - at - kHeaderBytes)
      return fail("archive offset " + std::to_string(at) + ": no member, or one that is cut off");
    const std::string_view content = text.substr(at + kHeaderBytes, *size);
    at += kHeaderBytes + *size + *size % 2;
    const std::string_view name = header.substr(0, kNameBytes);
    if (name.starts_with("// ")) names = content;
    if (name.starts_with("// ") || name.starts_with("/ ") || name.starts_with("/SYM64/ ")) continue;
    const Member member = named(name, content, names);
    const ptx::Bytes image =
        file.subspan(static_cast<std::size_t>(member.content.data() - text.data()), member.content.size());
    if (!ptx::has_device_code(image)) continue;
    Result<std::vector<ptx::FatbinEntry>> some = ptx::read_image(image);
    if (!some) return fail("member " + printable(member.name) + ": " + some.error().message);
    std::move(some->begin(), some->end(), std::back_inserter(entries));
  }
  if (entries.empty()) return fail("archive without device code");
  return entries;
}

}  // namespace gpuctl::cli
