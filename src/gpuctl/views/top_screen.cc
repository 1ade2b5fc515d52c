#include "gpuctl/views/top_screen.h"

#include <algorithm>

#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/fairness_lines.h"
#include "gpuctl/views/kernel_lines.h"
#include "gpuctl/views/slice_rows.h"
#include "gpuctl/views/top_model.h"

namespace gpuctl::cli {
namespace {

constexpr std::size_t kBarLeast = 10, kBarMost = 50, kBarPlain = 40;  // columns

std::string styled(const std::string& text, const char* code, const ScreenStyle& style) {
  return style.color && !text.empty() ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
}

std::string bold(const std::string& text, const ScreenStyle& style) {
  return styled(text, "1", style);
}

std::string repeat(const char* piece, std::size_t count) {
  std::string text;
  while (count-- > 0) text += piece;
  return text;
}

/// The held part, the part granted and not held, the free part. Each nonzero part gets at least one cell while there
/// are any.
std::string bar(const TopDevice& device, std::size_t cells, const ScreenStyle& style) {
  const auto part = [&](std::int64_t sms) -> std::size_t {
    if (device.sms <= 0 || sms <= 0) return 0;
    const double share = std::min(1.0, static_cast<double>(sms) / static_cast<double>(device.sms));
    return std::max<std::size_t>(1, static_cast<std::size_t>(share * static_cast<double>(cells) + 0.5));
  };
  const std::size_t held = part(device.holding);
  const std::size_t granted = std::max(held, part(device.granted));
  return styled(repeat(style.utf8 ? "█" : "#", held), "32", style) +
         styled(repeat(style.utf8 ? "▒" : "=", granted - held), "33", style) +
         styled(repeat(style.utf8 ? "·" : ".", cells - granted), "2", style);
}

std::string device_name(const TopDevice& device) {
  const std::string mode = device.mode.empty() ? "" : " (" + printable(device.mode) + ")";
  return "GPU " + std::to_string(device.index) + "  " + printable(device.name) + mode;
}

std::string device_line(const TopDevice& device, std::size_t name_width, const ScreenStyle& style) {
  std::string name = fit(device_name(device), name_width);
  name.append(name_width - display_width(name), ' ');
  const std::string numbers = std::to_string(device.granted) + " of " + std::to_string(device.sms) + " SMs granted, " +
                              std::to_string(device.holding) + " held";
  const std::size_t taken = name_width + numbers.size() + 6;  // "  [" "]  " and a spare
  std::size_t cells = kBarPlain;
  if (style.width != 0) cells = style.width > taken + kBarLeast ? std::min(kBarMost, style.width - taken) : 0;
  if (cells == 0) return fit(name + "  " + numbers, style.width);
  return bold(name, style) + "  [" + bar(device, cells, style) + "]  " + numbers;
}

void add_table(std::vector<std::string>& lines, const Table& table, const ScreenStyle& style) {
  std::vector<std::string> rows = table.lines(style.width);
  rows.front() = styled(rows.front(), "1;4", style);
  lines.insert(lines.end(), rows.begin(), rows.end());
}

/// With the fairness of each slice if it is known of any.
Table slices_table(const ipc::Snapshot& now) {
  using enum Table::Align;
  std::vector<Table::Column> columns{{"SLICE", left, 12},     {"RESERVE", right},        {"MAX", right},
                                     {"WEIGHT", right, 0, 2}, {"PRIORITY", right, 0, 3}, {"POLICY", left, 0, 4},
                                     {"GRANTED", right},      {"DEMAND", right},         {"CLIENTS", right, 0, 1}};
  const bool served = !now.fairness.empty();
  if (served) columns.insert(columns.end(), {{"ANTT", right, 0, 5}, {"DNTT", right, 0, 6}, {"STP", right, 0, 7}});
  Table table(std::move(columns));
  for (const TreeRow& row : tree_rows(now.slices)) {
    const ipc::Slice& s = *row.slice;
    std::vector<std::string> cells{row.label,
                                   reserve_text(s),
                                   max_text(s),
                                   std::to_string(s.weight),
                                   priority_text(s),
                                   printable(s.policy),
                                   std::to_string(s.granted),
                                   std::to_string(s.demand),
                                   std::to_string(s.clients)};
    if (const ipc::Fairness* f = fairness_of(now.fairness, s.path); f != nullptr && f->programs > 0)
      cells.insert(cells.end(), {format_slowdown(f->antt), format_slowdown(f->dntt), format_slowdown(f->stp)});
    else if (served)
      cells.insert(cells.end(), 3, "-");
    table.add_row(std::move(cells));
  }
  return table;
}

/// A command line without the directory of its program, which says little and takes space from the arguments.
std::string short_command(const std::string& command) {
  const std::size_t end = std::min(command.find(' '), command.size());
  const std::size_t slash = command.rfind('/', end);
  return slash == std::string::npos || slash + 1 >= end ? command : command.substr(slash + 1);
}

Table clients_table(const TopModel& model) {
  using enum Table::Align;
  Table table({{"PID", right},
               {"SLICE", left, 10},
               {"GPU", right, 0, 5},
               {"STATE", left, 0, 6},
               {"GRANTED", right},
               {"HOLDING", right},
               {"LAUNCH/S", right},
               {"EVICT/S", right},
               {"EVICT MEAN", right, 0, 3},
               {"EVICT LAST", right, 0, 4},
               {"P50", right, 0, 2},
               {"P99", right, 0, 1},
               {"COMMAND", left, 8}});
  const auto rate = [](const std::optional<double>& value) { return value ? format_rate(*value) : std::string("-"); };
  const auto time = [](const std::optional<double>& us) { return us ? format_us(*us) : std::string("-"); };
  for (const TopClient& row : model.clients) {
    const ipc::Client& c = *row.client;
    std::vector<std::string> cells{std::to_string(c.pid), printable(c.slice)};
    if (const ipc::ClientUsage* u = row.usage) {
      const bool evicted = u->evictions != 0;
      for (const std::string& cell :
           {std::to_string(u->device), state_text(c, *u), std::to_string(u->granted), std::to_string(u->holding),
            rate(row.launches_per_s), rate(row.evictions_per_s), evicted ? format_us(u->evict_us_mean) : "-",
            evicted ? format_us(u->evict_us_last) : "-", time(row.latency_us_p50), time(row.latency_us_p99)})
        cells.push_back(cell);
    } else {
      cells.insert(cells.end(), {"-", printable(c.state)});
      cells.insert(cells.end(), 8, "-");
    }
    cells.push_back(printable(short_command(c.command)));
    table.add_row(std::move(cells));
  }
  return table;
}

/// The first line: a summary.
std::string headline(const ipc::Snapshot& now, const ScreenStyle& style) {
  std::string left =
      "gpuctl top: " + plural(std::ssize(now.slices), "slice") + ", " + plural(std::ssize(now.clients), "client");
  const std::string right = "q quits";
  if (style.width > display_width(left) + right.size() + 2)
    left += std::string(style.width - display_width(left) - right.size(), ' ') + right;
  return style.width == 0 ? left : fit(left, style.width);
}

}  // namespace

std::vector<std::string> render_top(const ipc::Snapshot* before, const ipc::Snapshot& now, const ScreenStyle& style) {
  const TopModel model = make_top_model(before, now);
  std::vector<std::string> lines;
  if (style.width != 0) lines.push_back(headline(now, style));

  std::size_t name_width = 0;
  for (const TopDevice& d : model.devices) name_width = std::max(name_width, display_width(device_name(d)));
  if (style.width != 0) name_width = std::min(name_width, std::max<std::size_t>(12, style.width / 3));
  for (const TopDevice& device : model.devices) lines.push_back(device_line(device, name_width, style));

  if (!lines.empty()) lines.emplace_back();
  add_table(lines, slices_table(now), style);
  lines.emplace_back();
  if (model.clients.empty()) {
    lines.push_back(
        fit("no programs; start one with: gpuctl run --slice NAME PROGRAM", style.width == 0 ? 200 : style.width));
  } else {
    add_table(lines, clients_table(model), style);
  }
  if (style.height != 0 && lines.size() > style.height) {
    const std::size_t hidden = lines.size() - style.height + 1;
    lines.resize(style.height - 1);
    lines.push_back(fit("... " + std::to_string(hidden) + " more lines; make the window taller", style.width));
  }
  return lines;
}

}  // namespace gpuctl::cli
