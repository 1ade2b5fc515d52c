#include "gpuctl/views/slice_rows.h"

#include <algorithm>
#include <cstdio>

#include "base/plural.h"
#include "gpuctl/line/settings.h"
#include "gpuctl/text/units.h"
#include "sched/policy.h"
#include "sched/slices.h"

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

std::string per_cent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", value);
  return text;
}

std::string in_force(const std::string& value) {
  return " (" + value + ")";
}

/// Of memory_min where less is in force than the same on every GPU.
std::string kept_text(const ipc::Slice& slice) {
  std::string text;
  for (const ipc::SliceOnGpu& on : slice.on_gpus) {
    const std::int64_t kept = on.memory_min.value_or(slice.memory_min);
    if (slice.memory_min_per_gpu != kSameOnEach || !on.seen.value_or(true) || kept >= slice.memory_min) continue;
    text += (text.empty() ? "memory min " : ", ") + format_bytes(kept) + " of GPU " + std::to_string(on.device);
  }
  return text.empty() ? text : text + " instead of " + format_bytes(slice.memory_min);
}

}  // namespace

bool is_frozen(const ipc::Slice& slice) {
  return slice.effective_frozen.value_or(slice.frozen) != kFrozen.front();
}

bool is_swapped(const ipc::Slice& slice) {
  return slice.effective_frozen.value_or(slice.frozen) == kFrozen.back();
}

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
  const std::string amount = amount_text(std::to_string(slice.reserve), "0", slice.reserve_per_gpu);
  if (amount == "0") return "-";
  std::string text = printable(amount);
  if (slice.reserve_mode != "active") text += ' ' + printable(slice.reserve_mode);
  if (slice.effective_reserve) return text + in_force(std::to_string(*slice.effective_reserve));
  return slice.effective_reserve_mode ? text + in_force(printable(*slice.effective_reserve_mode)) : text;
}

std::string max_text(const ipc::Slice& slice) {
  const std::string text = printable(amount_text(slice.max ? std::to_string(*slice.max) : "-", "-", slice.max_per_gpu));
  if (is_frozen(slice)) return text + in_force("frozen");
  if (slice.quota_now) return text + in_force("throttled");
  return slice.effective_max ? text + in_force(std::to_string(*slice.effective_max)) : text;
}

std::string priority_text(const ipc::Slice& slice) {
  const std::string text = std::to_string(slice.priority);
  return slice.effective_priority ? text + in_force(std::to_string(*slice.effective_priority)) : text;
}

std::string isolation_text(const ipc::Slice& slice) {
  const bool chosen = slice.effective_isolation && slice.isolation == kIsolations.front();
  return printable(slice.isolation) + (chosen ? in_force(printable(*slice.effective_isolation)) : "");
}

std::string bounds_text(const ipc::Slice& slice) {
  std::string text;
  const auto add = [&](const char* name, const std::string& bound, const std::string& set) {
    text.append(text.empty() ? "slices above bound it: " : ", ").append(name);
    text.append(" " + bound + " instead of " + set);
  };
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string("none"); };
  const auto bytes_of = [](const auto& value, const std::string& per_gpu) {
    return printable(amount_text(value ? format_bytes(*value) : "none", "none", per_gpu));
  };
  if (slice.effective_priority) add("priority", number(slice.effective_priority), std::to_string(slice.priority));
  const bool frozen = is_frozen(slice);
  if (slice.effective_frozen) add("frozen", printable(*slice.effective_frozen), printable(slice.frozen));
  if (slice.effective_max && !frozen)
    add("max", number(slice.effective_max), printable(amount_text(number(slice.max), "none", slice.max_per_gpu)));
  const bool isolated = slice.effective_isolation.value_or(slice.isolation) == kIsolations.back();
  if (slice.effective_reserve && !isolated && !frozen)
    add("reserve", number(slice.effective_reserve),
        printable(amount_text(std::to_string(slice.reserve), "0", slice.reserve_per_gpu)));
  if (slice.effective_reserve_mode)
    add("reserve mode", printable(*slice.effective_reserve_mode), printable(slice.reserve_mode));
  if (slice.effective_isolation && slice.isolation != kIsolations.front())
    add("isolation", printable(*slice.effective_isolation), printable(slice.isolation));
  if (slice.effective_memory_max)
    add("memory max", format_bytes(*slice.effective_memory_max), bytes_of(slice.memory_max, slice.memory_max_per_gpu));
  if (slice.effective_memory_high)
    add("memory high", format_bytes(*slice.effective_memory_high),
        bytes_of(slice.memory_high, slice.memory_high_per_gpu));
  const std::string kept = kept_text(slice);
  return text + (text.empty() || kept.empty() ? "" : "; ") + kept;
}

std::string ruling_policy(const std::vector<ipc::Slice>& slices, const std::string& path) {
  const ipc::Slice* ruling = nullptr;
  for (const ipc::Slice& slice : slices) {
    const sched::Policy* policy = sched::find_policy(slice.policy.substr(0, slice.policy.find(':')));
    const bool for_jobs = policy != nullptr && policy->divide == nullptr;
    if (for_jobs && sched::in_or_below(path, slice.path) &&
        (ruling == nullptr || slice.path.size() < ruling->path.size()))
      ruling = &slice;
  }
  return ruling == nullptr ? "" : "policy " + printable(ruling->policy) + " of " + printable(ruling->path);
}

std::string owner_text(const ipc::Slice& slice) {
  const std::string group = group_name(slice.owner_gid);
  return user_name(slice.owner_uid) + (group == "-" ? "" : ':' + group);
}

std::vector<std::string> gpu_lines(const ipc::Slice& slice) {
  std::vector<std::string> lines;
  for (const ipc::SliceOnGpu& on : slice.on_gpus) {
    if (on.same.value_or(false)) continue;
    lines.push_back(!on.seen.value_or(true)
                        ? "GPU " + std::to_string(on.device) + ": its programs do not see it"
                        : "GPU " + std::to_string(on.device) + ": reserve " + std::to_string(on.reserve) + ", max " +
                              (on.max ? std::to_string(*on.max) : "none") + ", memory max " +
                              (on.memory_max ? format_bytes(*on.memory_max) : "none") +
                              (on.memory_min.value_or(0) != 0 ? ", memory min " + format_bytes(*on.memory_min) : "") +
                              (on.memory_high ? ", memory high " + format_bytes(*on.memory_high) : "") +
                              (on.quota ? ", quota " + printable(*on.quota) : "") +
                              (on.burst ? ", burst " + printable(*on.burst) : ""));
  }
  return lines;
}

std::vector<std::string> use_lines(const ipc::Slice& slice) {
  std::vector<std::string> lines;
  for (const ipc::SliceOnGpu& on : slice.on_gpus) {
    const std::int64_t granted = on.granted.value_or(0), peak = on.memory_peak.value_or(0);
    if (granted + peak > 0 || on.driver_max)
      lines.push_back(
          "GPU " + std::to_string(on.device) + ": " + plural(granted, "SM") + " granted, memory " +
          format_bytes(on.memory.value_or(0)) + ", at most " + format_bytes(peak) +
          (on.driver_max ? "; the driver enforces " + format_bytes(*on.driver_max) + ", contexts included" : ""));
  }
  return lines;
}

std::string refusals_text(const ipc::Slice& slice) {
  std::int64_t by_max = 0;
  for (const ipc::SliceOnGpu& on : slice.on_gpus) by_max += on.max_refusals.value_or(0);
  const std::string text = plural(slice.memory_refusals, "refusal") + " for want of memory";
  return by_max == 0 ? text : text + ", " + std::to_string(by_max) + " by its own memory max";
}

std::vector<std::string> pressure_lines(const ipc::Slice& slice) {
  std::vector<std::string> lines;
  for (const ipc::Pressure& one : slice.pressure)
    lines.push_back(printable(one.of) + ' ' + per_cent(one.avg10) + " of 10 s, " + per_cent(one.avg60) + " of 60 s, " +
                    per_cent(one.avg300) + " of 300 s; " + format_us(static_cast<double>(one.total_us)) + " in all");
  return lines;
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
  const auto programs = [&](const ipc::Slice& of) {
    std::int64_t below = 0;
    for (const ipc::Slice& other : slices)
      if (&other != &of && sched::in_or_below(other.path, of.path)) below += other.clients;
    return std::to_string(of.clients) + (below > 0 ? "+" + std::to_string(below) : "");
  };
  for (const TreeRow& row : tree_rows(slices)) {
    const ipc::Slice& s = *row.slice;
    table.add_row({row.label, reserve_text(s), max_text(s), std::to_string(s.weight), priority_text(s),
                   printable(s.policy), owner_text(s), std::to_string(s.granted), std::to_string(s.demand),
                   programs(s)});
  }
  return table;
}

}  // namespace gpuctl::cli
