// UTF-8, and which of its characters must not reach a terminal.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gpuctl {

/// Length of the UTF-8 sequence with which `text` starts; 0 if it starts with none.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  // The second byte rules out overlong forms, surrogates and code points beyond U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

/// The first bytes of the text, `most` at most. UTF-8 stays UTF-8: no character is cut in two.
inline std::string_view whole_characters(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most);
}

/// The code point of a character (one UTF-8 sequence).
inline std::uint32_t code_point(std::string_view character) {
  constexpr std::size_t kMost[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t code = static_cast<unsigned char>(character[0]) & kMost[character.size()];
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

/// Whether a terminal would obey the character (one UTF-8 sequence) rather than show it: control characters, ends of
/// lines, and what changes the direction or the look of what follows.
inline bool controls_terminal(std::string_view character) {
  const std::uint32_t code = code_point(character);
  const auto within = [code](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  return code < 0x20 || within(0x7f, 0x9f) || code == 0xad || code == 0x61c || within(0x200b, 0x200f) ||
         within(0x2028, 0x202e) || within(0x2060, 0x206f) || code == 0xfeff || within(0xfff9, 0xfffb) ||
         within(0xe0000, 0xe0fff);
}

}  // namespace gpuctl
