// Reads single values of a configuration file. Checks their types; reports problems with file:line:column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <toml++/toml.h>

namespace gpuctl::slicefile {

class Values {
 public:
  /// Adds the problems in `file` to `problems`, which must outlive this object.
  Values(std::string file, std::vector<std::string>& problems) : file_(std::move(file)), problems_(problems) {}

  /// Adds "file:line:column: field: reason".
  void problem(const toml::source_region& source, std::string_view field, std::string_view reason);
  void problem(std::string line) { problems_.push_back(std::move(line)); }

 protected:
  std::string where(const toml::source_region& source) const;

  /// Empty, with a problem added, if the value is of another type.
  std::optional<std::int64_t> integer(const std::string& field, const toml::node& node,
                                      std::string_view otherwise = "must be an integer");
  std::optional<std::string> text(const std::string& field, const toml::node& node);
  /// A number, or text such as "16G".
  std::optional<std::int64_t> bytes(const std::string& field, const toml::node& node);
  /// A number, or the name of a user or group.
  std::optional<std::int64_t> user(const std::string& field, const toml::node& node);
  std::optional<std::int64_t> group(const std::string& field, const toml::node& node);

  /// A list of who joins a slice, with the numbers of users and groups. `mandatory`: as of parse_join.
  std::optional<std::string> join(const std::string& field, const toml::node& node, bool mandatory = false);

  void boolean(const std::string& field, const toml::node& node, bool& result);

  /// `least` to `greatest`, in the unit of `result`. On a problem `result` stays as it was.
  template <class Duration>
  void duration(const std::string& field, const toml::node& node, std::int64_t least, std::int64_t greatest,
                Duration& result) {
    const auto value = integer(field, node);
    if (!value) return;
    if (*value < least || *value > greatest)
      return problem(
          node.source(), field,
          "must be " + std::to_string(least) + " to " + std::to_string(greatest) + ", not " + std::to_string(*value));
    result = Duration(*value);
  }

 private:
  std::optional<std::int64_t> id(const std::string& field, const toml::node& node,
                                 std::optional<std::int64_t> (*look_up)(const std::string&));

  std::string file_;
  std::vector<std::string>& problems_;
};

}  // namespace gpuctl::slicefile
