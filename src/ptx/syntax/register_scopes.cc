#include "ptx/syntax/register_scopes.h"

namespace gpuctl::ptx {

void RegisterScopes::declare(const std::string& name, std::optional<std::uint32_t> count) {
  if (count) {
    scopes_.back().ranges[name] = *count;
  } else {
    scopes_.back().names[name] = true;
  }
}

bool RegisterScopes::contains(const std::string& name) const {
  std::size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
    if (in_range(*scope, name, digits)) return true;
  }
  return false;
}

/// The prefix of a range may itself end in digits, so each split of the trailing digits is tried.
bool RegisterScopes::in_range(const Names& scope, const std::string& name, std::size_t digits) {
  if (scope.ranges.empty()) return false;
  for (std::size_t split = digits; split < name.size(); ++split) {
    const bool leading_zero = name[split] == '0' && split + 1 < name.size();
    if (split == 0 || leading_zero || name.size() - split > 9) continue;
    const auto found = scope.ranges.find(name.substr(0, split));
    if (found != scope.ranges.end() && std::stoul(name.substr(split)) < found->second) return true;
  }
  return false;
}

}  // namespace gpuctl::ptx
