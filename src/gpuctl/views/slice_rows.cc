#include "gpuctl/views/slice_rows.h"

#include <algorithm>

#include "gpuctl/line/settings.h"

namespace gpuctl::cli {
namespace {

/// The names in a path; the root has none.
std::vector<std::string> names_of(const std::string& path) {
  std::vector<std::string> names;
  if (path == "/") return names;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    names.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

}  // namespace

std::vector<TreeRow> tree_rows(const std::vector<ipc::Slice>& slices) {
  std::vector<std::pair<std::vector<std::string>, const ipc::Slice*>> sorted;
  for (const ipc::Slice& slice : slices) sorted.emplace_back(names_of(slice.path), &slice);
  std::sort(sorted.begin(), sorted.end());
  std::vector<TreeRow> rows;
  for (const auto& [names, slice] : sorted)
    rows.push_back({slice, names.empty() ? "/" : std::string(2 * names.size(), ' ') + printable(names.back())});
  return rows;
}

std::string reserve_text(const ipc::Slice& slice) {
  if (slice.reserve == 0) return "-";
  return std::to_string(slice.reserve) + (slice.reserve_mode == "active" ? "" : ' ' + printable(slice.reserve_mode));
}

std::string max_text(const ipc::Slice& slice) {
  return slice.max ? std::to_string(*slice.max) : "-";
}

std::string owner_text(const ipc::Slice& slice) {
  const std::string group = group_name(slice.owner_gid);
  return user_name(slice.owner_uid) + (group == "-" ? "" : ':' + group);
}

Table slice_table(const std::vector<ipc::Slice>& slices) {
  using enum Table::Align;
  Table table({{"SLICE", left, 12},
               {"RESERVE", right},
               {"MAX", right},
               {"WEIGHT", right, 0, 1},
               {"PRIORITY", right, 0, 2},
               {"POLICY", left, 0, 3},
               {"OWNER", left, 6, 4},
               {"GRANTED", right},
               {"DEMAND", right},
               {"CLIENTS", right}});
  for (const TreeRow& row : tree_rows(slices)) {
    const ipc::Slice& s = *row.slice;
    table.add_row({row.label, reserve_text(s), max_text(s), std::to_string(s.weight), std::to_string(s.priority),
                   printable(s.policy), owner_text(s), std::to_string(s.granted), std::to_string(s.demand),
                   std::to_string(s.clients)});
  }
  return table;
}

}  // namespace gpuctl::cli
