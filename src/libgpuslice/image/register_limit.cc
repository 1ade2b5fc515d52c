#include "libgpuslice/image/register_limit.h"

#include <algorithm>

namespace gpuslice {

namespace {

/// With at most this many, all threads that an SM can hold fit: 2048 threads in 65536 registers.
constexpr int kAlwaysFits = 32;
/// Each thread gets registers in multiples of this.
constexpr int kUnit = 8;
/// ptxas can save this many without spilling.
constexpr int kFew = 4;

/// The position after the bracket that closes the entry's parameters; npos if there is no such entry.
std::size_t end_of_parameters(std::string_view text, const std::string& entry) {
  const std::string head = ".entry " + entry + '(';
  const std::size_t at = text.find(head);
  if (at == text.npos) return at;
  const std::size_t close = text.find(')', at + head.size());
  return close == text.npos ? close : close + 1;
}

}  // namespace

std::optional<int> register_limit(int original, int persistent) {
  const int fits = std::max(kAlwaysFits, (original + kUnit - 1) / kUnit * kUnit);
  if (original <= 0 || persistent <= fits || persistent > fits + kFew) return std::nullopt;
  return fits;
}

std::string limit_registers(std::string_view text, const std::vector<RegisterLimit>& limits) {
  std::string limited(text);
  for (const RegisterLimit& limit : limits) {
    const std::size_t at = end_of_parameters(limited, limit.entry);
    if (at == limited.npos) continue;
    const std::size_t body = limited.find_first_not_of(" \t\r\n", at);
    if (body == limited.npos || limited[body] != '{') continue;  // directives follow
    limited.insert(at, "\n.maxnreg " + std::to_string(limit.registers));
  }
  return limited;
}

}  // namespace gpuslice
