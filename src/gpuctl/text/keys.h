// Keys as a terminal sends them. Pure.
#pragma once

#include <string>
#include <vector>

namespace gpuctl::cli {

struct Key {
  enum class Kind { character, up, down, page_up, page_down, home, end, enter, tab, backspace, escape };
  Kind kind = Kind::character;
  char character = 0;  ///< a byte of text
  bool operator==(const Key&) const = default;
};

/// Takes the keys out of what was read. The beginning of a sequence whose rest has not come stays, unless `all`: then
/// it was the key Esc. Sequences of other keys are dropped.
std::vector<Key> take_keys(std::string& read, bool all);

}  // namespace gpuctl::cli
