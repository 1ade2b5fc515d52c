// Runs a target once on each file below some directories: replay DIRECTORY... A file NAME.hex holds its bytes in
// hexadecimal. The file that a target fails on is the last one named on standard output.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz.h"

namespace {

std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  if (path.extension() != ".hex") return bytes;
  std::erase(bytes, '\n');
  std::vector<std::uint8_t> decoded;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const char* digits = reinterpret_cast<const char*>(bytes.data()) + i;
    std::uint8_t byte = 0;
    const auto [end, error] = std::from_chars(digits, digits + 2, byte, 16);
    gpuctl::fuzz::require(error == std::errc() && end == digits + 2, path.string() + " holds hexadecimal digits");
    decoded.push_back(byte);
  }
  return decoded;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    const std::vector<std::uint8_t> bytes = read_bytes(path);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu files\n", paths.size());
  return paths.empty() ? 1 : 0;
}
