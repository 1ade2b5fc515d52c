// The [slice] tables of a file, one after the other. A later table overrides single keys of an earlier one.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "slicefile/configured_slice.h"
#include "slicefile/values.h"

namespace gpuctl::slicefile {

/// The names of a table's rows: "a, b, c".
std::string names_of(const auto& rows) {
  std::string names;
  for (const auto& row : rows) names.append(names.empty() ? "" : ", ").append(row.name);
  return names;
}

class SliceTables : public Values {
 public:
  /// Adds to `problems` and to `slices`, which must outlive this object. `former`: the former reserve mode is no
  /// problem, as the caller replaces it (base/former_mode.h).
  SliceTables(std::string file, std::vector<std::string>& problems, std::vector<ConfiguredSlice>& slices,
              bool former = false)
      : Values(std::move(file), problems), problems_(problems), slices_(slices), former_(former) {}

  /// `key`, "slice", and the table of tables that it has.
  void tables(const toml::key& key, const toml::node& node);

 protected:
  template <class Visit>
  void each(const toml::key& key, const toml::node& node, Visit visit) {
    if (const toml::table* table = node.as_table())
      for (const auto& [k, v] : *table) visit(k, v);
    else
      problem(node.source(), key.str(), "must be a table: [" + std::string(key.str()) + "]");
  }

 private:
  void table(const toml::key& key, const toml::node& node);
  void setting(const std::string& prefix, const toml::key& key, const toml::node& node, sched::SliceChange& change);
  void check(const std::string& prefix, const ConfiguredSlice& slice);

  std::vector<std::string>& problems_;
  std::vector<ConfiguredSlice>& slices_;
  bool former_;
};

/// Hands the content of a file to `read`. If it cannot be read or parsed, that is a problem.
void parse(const std::string& file, Values& problems, const std::function<void(const toml::table&)>& read);

}  // namespace gpuctl::slicefile
