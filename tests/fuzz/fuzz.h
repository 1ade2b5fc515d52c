// A fuzz target is one function that bears any bytes. libFuzzer calls it with what it makes up (scripts/fuzz.sh), and a
// test of the normal suite with the files of its corpus (replay.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

/// The target. Returns 0, or ends the process when the program under test did wrong.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace gpuctl::fuzz {

/// Ends the process, with `what` on stderr, unless it holds.
inline void require(bool holds, std::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

/// An error is one line for a person.
inline void require_line(std::string_view message) {
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\t'; };
  bool line = !message.empty();
  for (const char c : message) line = line && !control(c);
  require(line, "an error is one line: '" + std::string(message) + "'");
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace gpuctl::fuzz
