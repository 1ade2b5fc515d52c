#include "softgpu/device/printed.h"

#include <cstdio>
#include <mutex>
#include <string>

namespace gpuctl::softgpu {
namespace {

/// Never destroyed: kernels of a process that exits may still print.
struct Kept {
  std::mutex mutex;
  std::string output;
  std::string errors;
};

Kept& kept() {
  static auto* const kept = new Kept;
  return *kept;
}

void write(std::string& text, std::FILE* file) {
  if (!text.empty()) std::fwrite(text.data(), 1, text.size(), file);
  text.clear();
}

}  // namespace

void Printed::print(std::string_view text) {
  const std::lock_guard lock(kept().mutex);
  kept().output += text;
}

void Printed::assertion_failed(std::string_view line) {
  const std::lock_guard lock(kept().mutex);
  kept().errors += line;
}

WritesWhatWasPrinted::~WritesWhatWasPrinted() {
  const std::lock_guard lock(kept().mutex);
  write(kept().output, stdout);
  write(kept().errors, stderr);
}

}  // namespace gpuctl::softgpu
