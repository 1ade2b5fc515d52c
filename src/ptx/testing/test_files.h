// Golden files of tests/ptx, for unit tests only.
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpuctl::ptx {

/// The content of tests/ptx/`name`.
inline std::string golden_text(const std::string& name) {
  std::ifstream file(std::string(PTX_GOLDEN_DIR) + "/" + name, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + name);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The bytes that tests/ptx/`name` holds in hexadecimal.
inline std::vector<std::byte> golden_hex(const std::string& name) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : golden_text(name)) {
    if (c == '\n') continue;
    digits += c;
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

}  // namespace gpuctl::ptx
