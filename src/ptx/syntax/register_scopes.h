// Knows which names are registers at a place of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace gpuctl::ptx {

/// The registers declared in the scopes that are open, innermost last.
class RegisterScopes {
 public:
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }

  /// `count`: of a range `%r<count>`; nothing for a single name.
  void declare(const std::string& name, std::optional<std::uint32_t> count);

  /// A variable hides a register of an outer scope that has its name.
  void hide(const std::string& name) { scopes_.back().names[name] = false; }

  bool contains(const std::string& name) const;

 private:
  struct Names {
    std::unordered_map<std::string, bool> names;  // true: a register
    std::unordered_map<std::string, std::uint32_t> ranges;
  };
  static bool in_range(const Names& scope, const std::string& name, std::size_t digits);

  std::vector<Names> scopes_;
};

}  // namespace gpuctl::ptx
