#include "gpuctl/text/keys.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace gpuctl::cli {
namespace {

using enum Key::Kind;

constexpr char kEscape = '\x1b';

/// Of "\x1b[...": how long the sequence is; 0: its end has not come.
std::size_t sequence_length(std::string_view text) {
  for (std::size_t i = 2; i < text.size(); ++i)
    if (text[i] >= '@' && text[i] <= '~') return i + 1;
  return 0;
}

std::optional<Key> key_of(std::string_view sequence) {
  const std::string_view body = sequence.substr(2);
  constexpr struct {
    std::string_view body;
    Key::Kind kind;
  } kKnown[] = {{"A", up},  {"B", down},  {"5~", page_up}, {"6~", page_down}, {"H", home},
                {"F", end}, {"1~", home}, {"4~", end},     {"7~", home},      {"8~", end}};
  const auto found = std::ranges::find(kKnown, body, [](const auto& known) { return known.body; });
  return found == std::end(kKnown) ? std::nullopt : std::optional(Key{found->kind});
}

std::optional<Key> plain_key(char c) {
  if (c == '\r' || c == '\n') return Key{enter};
  if (c == '\t') return Key{tab};
  if (c == '\x7f' || c == '\b') return Key{backspace};
  if (static_cast<unsigned char>(c) < ' ') return std::nullopt;
  return Key{character, c};
}

}  // namespace

std::vector<Key> take_keys(std::string& read, bool all) {
  std::vector<Key> keys;
  std::string_view rest = read;
  while (!rest.empty()) {
    std::size_t length = 1;
    std::optional<Key> key;
    if (rest[0] != kEscape) {
      key = plain_key(rest[0]);
    } else if (rest.size() > 1 && (rest[1] == '[' || rest[1] == 'O')) {
      length = sequence_length(rest);
      if (length == 0 && !all) break;
      if (length == 0) length = rest.size();
      key = key_of(rest.substr(0, length));
    } else if (rest.size() == 1 && !all) {
      break;
    } else {
      key = Key{escape};
    }
    if (key) keys.push_back(*key);
    rest.remove_prefix(length);
  }
  read = std::string(rest);
  return keys;
}

}  // namespace gpuctl::cli
