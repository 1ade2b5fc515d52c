#include <algorithm>
#include <thread>

#include "gpuslice-compile/compiler.h"

namespace gpuctl::compile {

char target_suffix(const std::string& text) {
  constexpr std::string_view kTarget = ".target sm_";
  const std::size_t at = text.find(kTarget);
  if (at == text.npos) return '\0';
  const std::size_t end = text.find_first_not_of("0123456789", at + kTarget.size());
  const char suffix = end < text.size() ? text[end] : '\0';
  return suffix == 'a' || suffix == 'f' ? suffix : '\0';
}

std::string architecture(const Source& source) {
  std::string name = "sm_" + std::to_string(source.sm);
  if (source.suffix != '\0') name += source.suffix;
  return name;
}

unsigned threads_for(std::size_t bytes) {
  constexpr std::size_t kWorthThreadsBytes = 65'536;
  constexpr unsigned kMostThreads = 8;
  return bytes < kWorthThreadsBytes ? 1 : std::clamp(std::thread::hardware_concurrency() / 2, 1u, kMostThreads);
}

}  // namespace gpuctl::compile
