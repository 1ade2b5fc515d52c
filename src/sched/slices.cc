#include "sched/slices.h"

#include <algorithm>

namespace gpuctl::sched {

std::string_view parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == path.npos || slash == 0 ? "/" : path.substr(0, slash);
}

bool in_or_below(std::string_view path, std::string_view ancestor) {
  return ancestor == "/" || path == ancestor ||
         (path.starts_with(ancestor) && path.substr(ancestor.size()).starts_with('/'));
}

/// Compares name by name, so that "a/b" comes after "a" and before "a-b". The root comes before everything.
bool PathLess::operator()(std::string_view a, std::string_view b) const {
  if (a == "/" || b == "/") return a == "/" && b != "/";
  const auto [x, y] = std::ranges::mismatch(a, b);
  if (x == a.end() || y == b.end()) return a.size() < b.size();
  return *y != '/' && (*x == '/' || static_cast<unsigned char>(*x) < static_cast<unsigned char>(*y));
}

}  // namespace gpuctl::sched
