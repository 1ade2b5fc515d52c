#include "gpuctl/views/top_screen.h"

#include <algorithm>
#include <cmath>

#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/fairness_lines.h"
#include "gpuctl/views/slice_rows.h"
#include "gpuctl/views/top_model.h"
#include "sched/slices.h"

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
  const std::string numbers = std::to_string(device.granted) + " of " + std::to_string(device.sms) + " SMs granted" +
                              (device.counted ? ", " + std::to_string(device.holding) + " held" : "");
  const std::size_t taken = name_width + numbers.size() + 6;  // "  [" "]  " and a spare
  std::size_t cells = kBarPlain;
  if (style.width != 0) cells = style.width > taken + kBarLeast ? std::min(kBarMost, style.width - taken) : 0;
  if (cells == 0) return fit(name + "  " + numbers, style.width);
  return bold(name, style) + "  [" + bar(device, cells, style) + "]  " + numbers;
}

/// A table, or the part of it for which there is room.
struct Part {
  Table table;
  std::size_t hidden = 0;  ///< rows that are not in it
};

void add_part(std::vector<std::string>& lines, const Part& part, const char* rows, const ScreenStyle& style) {
  std::vector<std::string> text = part.table.lines(style.width);
  text.front() = styled(text.front(), "1;4", style);
  lines.insert(lines.end(), text.begin(), text.end());
  if (part.hidden > 0)
    lines.push_back(
        fit("... " + std::to_string(part.hidden) + " more " + rows + "; make the window taller", style.width));
}

/// Which of `rows` rows are shown if there is room for `most` lines: all; or those that count, each with the rows above
/// that it needs (`above`: the index of the next one, its own if none), then the others, with a line left for the rest.
template <class Counts, class Above>
std::vector<bool> chosen(std::size_t rows, std::size_t most, Counts counts, Above above) {
  std::vector<bool> shown(rows, rows <= most);
  if (rows <= most) return shown;
  std::size_t room = most == 0 ? 0 : most - 1;
  for (const bool pass_counts : {true, false})
    for (std::size_t i = 0; i < rows; ++i) {
      if (shown[i] || counts(i) != pass_counts) continue;
      std::vector<std::size_t> needed{i};
      while (above(needed.back()) != needed.back() && !shown[above(needed.back())])
        needed.push_back(above(needed.back()));
      if (needed.size() > room) continue;
      for (const std::size_t row : needed) shown[row] = true;
      room -= needed.size();
    }
  return shown;
}

/// With the fairness of each slice if it is known of any.
Part slices_part(const ipc::Snapshot& now, std::size_t most) {
  using enum Table::Align;
  std::vector<Table::Column> columns{{"SLICE", left, 12},     {"RESERVE", right},        {"MAX", right},
                                     {"WEIGHT", right, 0, 2}, {"PRIORITY", right, 0, 3}, {"POLICY", left, 0, 4},
                                     {"GRANTED", right},      {"DEMAND", right},         {"CLIENTS", right, 0, 1}};
  const bool served = !now.fairness.empty();
  if (served) columns.insert(columns.end(), {{"ANTT", right, 0, 5}, {"DNTT", right, 0, 6}, {"STP", right, 0, 7}});
  Part part{Table(std::move(columns))};
  const std::vector<TreeRow> rows = tree_rows(now.slices);
  const auto above = [&](std::size_t i) {
    for (std::size_t j = i; j-- > 0;)
      if (rows[j].slice->path != "/" && sched::in_or_below(rows[i].slice->path, rows[j].slice->path)) return j;
    return i;
  };
  const std::vector<bool> shown = chosen(
      rows.size(), most, [&](std::size_t i) { return rows[i].slice->clients > 0; }, above);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!shown[i]) {
      ++part.hidden;
      continue;
    }
    const ipc::Slice& s = *rows[i].slice;
    // The daemon says the most of any device.
    const SliceSms sms = now.devices.size() > 1 ? slice_sms(now, s.path) : SliceSms{s.granted, s.demand};
    std::vector<std::string> cells{rows[i].label,
                                   reserve_text(s),
                                   max_text(s),
                                   std::to_string(s.weight),
                                   priority_text(s),
                                   printable(s.policy),
                                   std::to_string(sms.granted),
                                   std::to_string(sms.demand),
                                   std::to_string(s.clients)};
    if (const ipc::Fairness* f = fairness_of(now.fairness, s.path); f != nullptr && f->programs > 0)
      cells.insert(cells.end(), {format_slowdown(f->antt), format_slowdown(f->dntt), format_slowdown(f->stp)});
    else if (served)
      cells.insert(cells.end(), 3, "-");
    part.table.add_row(std::move(cells));
  }
  return part;
}

/// A command line without the directory of its program, which says little and takes space from the arguments.
std::string short_command(const std::string& command) {
  const std::size_t end = std::min(command.find(' '), command.size());
  const std::size_t slash = command.rfind('/', end);
  return slash == std::string::npos || slash + 1 >= end ? command : command.substr(slash + 1);
}

Part clients_part(const TopModel& model, std::size_t most) {
  using enum Table::Align;
  // The rows of one program on several GPUs differ by that.
  const int drop_device = model.devices.size() > 1 ? 0 : 8;
  Part part{Table({{"PID", right},
                   {"SLICE", left, 10},
                   {"GPU", right, 0, drop_device},
                   {"STATE", left, 0, 5},
                   {"MODE", left, 0, 4},
                   {"BUSY", right, 0, 3, true},
                   {"GRANTED", right, 0, 0, true},
                   {"HOLDING", right, 0, 0, true},
                   {"LAUNCH/S", right},
                   {"EVICT/S", right, 0, 0, true},
                   {"EVICT MEAN", right, 0, 6, true},
                   {"EVICT LAST", right, 0, 7, true},
                   {"P50", right, 0, 2, true},
                   {"P99", right, 0, 1, true},
                   {"COMMAND", left, 8}})};
  const auto rate = [](const std::optional<double>& value) { return value ? format_rate(*value) : std::string("-"); };
  const auto time = [](const std::optional<double>& us) { return us ? format_us(*us) : std::string("-"); };
  const auto launches = [&](std::size_t i) { return model.clients[i].launches_per_s.value_or(0) > 0; };
  const std::vector<bool> shown = chosen(model.clients.size(), most, launches, [](std::size_t i) { return i; });
  for (std::size_t i = 0; i < model.clients.size(); ++i) {
    const TopClient& row = model.clients[i];
    const ipc::Client& c = *row.client;
    if (!shown[i]) {
      ++part.hidden;
      continue;
    }
    std::vector<std::string> cells{std::to_string(c.pid), printable(c.slice)};
    if (const ipc::ClientUsage* u = row.usage) {
      const bool evicted = u->evictions != 0;
      const bool by_grant = u->mode != "free" || row.holds_counted();
      for (const std::string& cell :
           {std::to_string(u->device), row.state(), printable(u->mode),
            row.busy ? std::to_string(std::lround(100 * *row.busy)) + " %" : std::string("-"),
            by_grant ? std::to_string(u->granted) : "-", row.holds_counted() ? std::to_string(u->holding) : "-",
            rate(row.launches_per_s), row.holds_counted() ? rate(row.evictions_per_s) : "-",
            evicted ? format_us(u->evict_us_mean) : "-", evicted ? format_us(u->evict_us_last) : "-",
            time(row.latency_us_p50), time(row.latency_us_p99)})
        cells.push_back(cell);
    } else {
      cells.insert(cells.end(), {"-", printable(row.state())});
      cells.insert(cells.end(), 10, "-");
    }
    cells.push_back(printable(short_command(c.command)));
    part.table.add_row(std::move(cells));
  }
  return part;
}

/// The first line: a summary.
std::string headline(const ipc::Snapshot& now, const ScreenStyle& style) {
  std::string left = !style.note.empty() ? "gpuctl top: " + printable(style.note)
                                         : "gpuctl top: " + plural(std::ssize(now.slices), "slice") + ", " +
                                               plural(std::ssize(now.clients), "client");
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

  // Where not all fits, programs have at least half of the room.
  std::size_t slices = now.slices.size(), clients = model.clients.size();
  const std::size_t taken = lines.size() + 3;  // two titles, and a line between the tables
  if (style.height > taken + 3 && slices + clients > style.height - taken) {
    const std::size_t room = style.height - taken;
    clients = std::min(clients, std::max(room / 2, room - std::min(slices, room)));
    slices = room - clients;
  }
  add_part(lines, slices_part(now, slices), "slices", style);
  lines.emplace_back();
  if (model.clients.empty()) {
    lines.push_back(
        fit("no programs; start one with: gpuctl run --slice NAME PROGRAM", style.width == 0 ? 200 : style.width));
  } else {
    add_part(lines, clients_part(model, clients), "rows", style);
  }
  if (style.height != 0 && lines.size() > style.height) {
    const std::size_t hidden = lines.size() - style.height + 1;
    lines.resize(style.height - 1);
    lines.push_back(fit("... " + std::to_string(hidden) + " more lines; make the window taller", style.width));
  }
  return lines;
}

}  // namespace gpuctl::cli
