#include "gpuctl/views/top_screen.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/plural.h"
#include "gpuctl/text/table.h"
#include "gpuctl/text/units.h"
#include "gpuctl/views/fairness_lines.h"
#include "gpuctl/views/kernel_lines.h"
#include "gpuctl/views/latency_lines.h"
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
  // Colours that differ for the colour-blind too, and shapes that differ without any.
  return styled(repeat(style.utf8 ? "█" : "#", held), "34", style) +
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
  const std::string numbers = std::to_string(device.granted) + " of " + plural(device.sms, "SM") + " granted" +
                              (device.in_turns ? " in turns" : "") +
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
  std::size_t hidden = 0;             ///< rows that are not in it
  std::optional<std::size_t> chosen;  ///< which row of it the person has chosen
};

std::string reversed(std::string text, std::size_t width) {
  text.append(width - std::min(width, display_width(text)), ' ');
  return "\x1b[7m" + text + "\x1b[0m";
}

void add_part(std::vector<std::string>& lines, const Part& part, const char* rows, const ScreenStyle& style) {
  std::vector<std::string> text = part.table.lines(style.width);
  text.front() = styled(text.front(), "1;4", style);
  if (part.chosen && style.width != 0) text[1 + *part.chosen] = reversed(text[1 + *part.chosen], style.width);
  lines.insert(lines.end(), text.begin(), text.end());
  if (part.hidden > 0)
    lines.push_back(
        fit("... " + std::to_string(part.hidden) + " more " + rows + "; arrows, Tab and / show them", style.width));
}

/// Which of `rows` rows are shown if there is room for `most` lines: all; or those that count, each with the rows above
/// that it needs (`above`: the index of the next one, its own if none), then the others, with a line left for the rest.
template <class Counts, class Above>
std::vector<bool> that_count(std::size_t rows, std::size_t most, Counts counts, Above above) {
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

/// The same once a person has chosen a row: the page with that row.
std::vector<bool> page_of(std::size_t rows, std::size_t most, std::size_t chosen) {
  std::vector<bool> shown(rows, rows <= most);
  if (rows <= most) return shown;
  const std::size_t room = most <= 1 ? 1 : most - 1;
  const std::size_t first = std::min(chosen / room * room, rows - std::min(rows, room));
  std::fill_n(shown.begin() + static_cast<std::ptrdiff_t>(first), std::min(room, rows - first), true);
  return shown;
}

/// The latest of `heights`, each from 0 to 1, as a line of bars, oldest first.
std::string spark(const std::vector<double>& heights, bool utf8) {
  constexpr std::size_t kColumns = 8;
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr const char* kAscii[] = {" ", ".", ":", "-", "=", "+", "*", "#", "@"};
  std::string text;
  for (std::size_t i = heights.size() - std::min(heights.size(), kColumns); i < heights.size(); ++i)
    text += (utf8 ? kBlocks : kAscii)[static_cast<std::size_t>(std::ceil(heights[i] * 8))];
  return text;
}

std::string granted_spark(const TopView::History& samples, bool utf8) {
  std::vector<double> heights;
  for (const TopView::Sample& sample : samples) heights.push_back(sample.granted);
  return spark(heights, utf8);
}

/// From the least to the greatest p99 of the samples by their logarithms, blank where nothing was counted. The scale
/// has at least an octave, lest noise fill it. "-": nothing was counted in any.
std::string p99_spark(const TopView::History& samples, bool utf8) {
  const auto octave = [](const TopView::Sample& sample) { return std::log2(std::max(1.0, *sample.p99_us)); };
  std::optional<double> least, greatest;
  for (const TopView::Sample& sample : samples) {
    if (!sample.p99_us) continue;
    least = std::min(least.value_or(octave(sample)), octave(sample));
    greatest = std::max(greatest.value_or(octave(sample)), octave(sample));
  }
  if (!least) return "-";
  const double octaves = std::max(1.0, *greatest - *least);
  std::vector<double> heights;
  for (const TopView::Sample& sample : samples)
    heights.push_back(sample.p99_us ? (1 + std::round(7 * (octave(sample) - *least) / octaves)) / 8 : 0);
  return spark(heights, utf8);
}

/// With the fairness of each slice if it is known of any, and on a terminal with its history.
Part slices_part(const ipc::Snapshot& now, const std::vector<TreeRow>& rows, const TopView& view,
                 const ScreenStyle& style, std::size_t most) {
  using enum Table::Align;
  const int drop_granted = view.sparks_first ? 1 : 8, drop_p99 = view.sparks_first ? 1 : 10;
  std::vector<Table::Column> columns{{"SLICE", left, 12},
                                     {"RESERVE", right},
                                     {"MAX", right},
                                     {"WEIGHT", right, 0, 2},
                                     {"PRIORITY", right, 0, 3},
                                     {"POLICY", left, 0, 4},
                                     {"GRANTED", right},
                                     {"DEMAND", right},
                                     {"CLIENTS", right, 0, 1},
                                     {"LATELY", left, 0, drop_granted, true},
                                     {"P50", right, 0, 9, true},
                                     {"P99", right, 0, 0, true},
                                     {"P99 LATELY", left, 0, drop_p99, true}};
  const bool served = !now.fairness.empty();
  if (served) columns.insert(columns.end(), {{"ANTT", right, 0, 5}, {"DNTT", right, 0, 6}, {"STP", right, 0, 7}});
  Part part{Table(std::move(columns))};
  const auto above = [&](std::size_t i) {
    for (std::size_t j = i; j-- > 0;)
      if (rows[j].slice->path != "/" && sched::in_or_below(rows[i].slice->path, rows[j].slice->path)) return j;
    return i;
  };
  const auto chosen = std::ranges::find_if(rows, [&](const TreeRow& row) { return row.slice->path == view.slice; });
  const bool one_chosen = view.slice && chosen != rows.end();
  const std::vector<bool> shown =
      one_chosen ? page_of(rows.size(), most, static_cast<std::size_t>(chosen - rows.begin()))
                 : that_count(
                       rows.size(), most, [&](std::size_t i) { return rows[i].slice->clients > 0; }, above);
  std::size_t in_part = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!shown[i]) {
      ++part.hidden;
      continue;
    }
    const ipc::Slice& s = *rows[i].slice;
    if (one_chosen && view.pane == TopView::Pane::slices && s.path == view.slice) part.chosen = in_part;
    ++in_part;
    const auto history = view.history.find(s.path);
    const bool sparks = style.width != 0 && history != view.history.end();
    // The daemon says the most of any device, and counts what nobody wants as granted.
    SliceSms sms = slice_sms(now, s.path);
    if (now.devices.size() <= 1) sms.demand = s.demand;
    std::vector<std::string> cells{rows[i].label,
                                   reserve_text(s),
                                   max_text(s),
                                   std::to_string(s.weight),
                                   priority_text(s),
                                   printable(s.policy),
                                   std::to_string(sms.granted),
                                   std::to_string(sms.demand),
                                   std::to_string(s.clients),
                                   sparks ? granted_spark(history->second, style.utf8) : "-",
                                   latency_text(s.latencies, &ipc::Latency::p50_us),
                                   latency_text(s.latencies, &ipc::Latency::p99_us),
                                   sparks ? p99_spark(history->second, style.utf8) : "-"};
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

Part programs_part(const std::vector<const TopClient*>& rows, const TopView& view, std::size_t devices,
                   std::size_t most) {
  using enum Table::Align;
  // The rows of one program on several GPUs differ by that.
  const int drop_device = devices > 1 ? 0 : 8;
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
                   {"P99.9", right, 0, 9, true},
                   {"COMMAND", left, 8}})};
  const auto rate = [](const std::optional<double>& value) { return value ? format_rate(*value) : std::string("-"); };
  const auto launches = [&](std::size_t i) { return rows[i]->launches_per_s.value_or(0) > 0; };
  const auto is_chosen = [&](const TopClient* row) {
    return view.program && view.program->first == row->client->pid &&
           view.program->second == (row->usage == nullptr ? -1 : row->usage->device);
  };
  const auto chosen = std::ranges::find_if(rows, is_chosen);
  const std::vector<bool> shown = chosen != rows.end()
                                      ? page_of(rows.size(), most, static_cast<std::size_t>(chosen - rows.begin()))
                                      : that_count(rows.size(), most, launches, [](std::size_t i) { return i; });
  std::size_t in_part = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TopClient& row = *rows[i];
    const ipc::Client& c = *row.client;
    if (!shown[i]) {
      ++part.hidden;
      continue;
    }
    if (view.pane == TopView::Pane::programs && is_chosen(&row)) part.chosen = in_part;
    ++in_part;
    std::vector<std::string> cells{std::to_string(c.pid), printable(c.slice)};
    if (const ipc::ClientUsage* u = row.usage) {
      const bool evicted = u->evictions != 0;
      const bool by_grant = u->mode != "free" || row.holds_counted();
      for (const std::string& cell :
           {std::to_string(u->device), row.state(), mode_text(c, *u),
            row.busy ? std::to_string(std::lround(100 * *row.busy)) + " %" : std::string("-"),
            by_grant ? std::to_string(u->granted) : "-", row.holds_counted() ? std::to_string(u->holding) : "-",
            rate(row.launches_per_s), row.holds_counted() ? rate(row.evictions_per_s) : "-",
            evicted ? format_us(u->evict_us_mean) : "-", evicted ? format_us(u->evict_us_last) : "-",
            latency_text(u->latency, &ipc::Latency::p50_us), latency_text(u->latency, &ipc::Latency::p99_us),
            latency_text(u->latency, &ipc::Latency::p999_us)})
        cells.push_back(cell);
    } else {
      cells.insert(cells.end(), {"-", printable(row.state())});
      cells.insert(cells.end(), 11, "-");
    }
    cells.push_back(printable(short_command(c.command)));
    part.table.add_row(std::move(cells));
  }
  return part;
}

/// The first line: what is asked, what came of it, or a summary.
std::string headline(const ipc::Snapshot& now, const TopRows& rows, const ScreenStyle& style, const TopView& view) {
  if (std::string asked = question(view, rows, style.width); !asked.empty()) return asked;
  std::string left = "gpuctl top: ";
  if (!view.note.empty()) {
    left += printable(view.note);
  } else {
    left += plural(std::ssize(now.slices), "slice") + ", " + plural(std::ssize(now.clients), "client");
    if (!view.filter.empty()) left += ", only those with '" + printable(view.filter) + "'";
    if (view.order != TopView::Order::slice) left += ", by " + order_name(view.order);
  }
  const std::string right = "? help  q quits";
  if (style.width > display_width(left) + right.size() + 2)
    left += std::string(style.width - display_width(left) - right.size(), ' ') + right;
  return fit(left, style.width);
}

std::vector<std::string> help_lines(const ScreenStyle& style) {
  std::vector<std::string> lines{"gpuctl top: keys", ""};
  for (const char* line :
       {"arrows, PgUp, PgDn, Home, End   choose a row", "Tab        programs or slices",
        "Space      fold the chosen slice, or unfold it",
        "/          only rows with some text in slice, command or process id",
        "o          sort programs by slice, time busy, SMs granted, launches, p99",
        "k          end the chosen program, or all in the chosen slice; asks first",
        "e          change settings of the chosen slice, or of the chosen program's",
        "l          LATELY instead of settings, where not all fits", "Esc        choose nothing, show all",
        "q          quit", "", "[##==..]   of a GPU's SMs: held, granted and not held, free",
        "LATELY     SMs granted, the latest samples", "P99 LATELY the p99 likewise, on a scale by logarithm", "",
        "Any key goes back."})
    lines.emplace_back(line);
  for (std::string& line : lines) line = fit(line, style.width);
  if (style.height != 0 && lines.size() > style.height) lines.resize(style.height);
  return lines;
}

/// How many rows of each table there is room for. Where not all fits, programs have at least half of the room.
struct Room {
  std::size_t slices, programs;
};
Room room_for(const TopRows& rows, std::size_t taken, std::size_t height) {
  Room room{rows.slices.size(), rows.programs.size()};
  if (height <= taken + 3 || room.slices + room.programs <= height - taken) return room;
  const std::size_t left = height - taken;
  room.programs = std::min(room.programs, std::max(left / 2, left - std::min(room.slices, left)));
  room.slices = left - room.programs;
  return room;
}

}  // namespace

std::vector<std::string> render_top(const ipc::Snapshot* before, const ipc::Snapshot& now, const ScreenStyle& style,
                                    const TopView& view) {
  if (view.asking == TopView::Asking::help) return help_lines(style);
  const TopModel model = make_top_model(before, now);
  const TopRows rows = rows_of(model, now, view);
  std::vector<std::string> lines;
  if (style.width != 0) lines.push_back(headline(now, rows, style, view));

  std::size_t name_width = 0;
  for (const TopDevice& d : model.devices) name_width = std::max(name_width, display_width(device_name(d)));
  if (style.width != 0) name_width = std::min(name_width, std::max<std::size_t>(12, style.width / 3));
  for (const TopDevice& device : model.devices) lines.push_back(device_line(device, name_width, style));

  if (!lines.empty()) lines.emplace_back();

  const Room room = room_for(rows, lines.size() + 3, style.height);  // two titles, and a line between the tables
  add_part(lines, slices_part(now, rows.slices, view, style, room.slices), "slices", style);
  lines.emplace_back();
  if (model.clients.empty()) {
    lines.push_back(
        fit("no programs; start one with: gpuctl run --slice NAME PROGRAM", style.width == 0 ? 200 : style.width));
  } else {
    add_part(lines, programs_part(rows.programs, view, model.devices.size(), room.programs), "rows", style);
  }
  if (style.height != 0 && lines.size() > style.height) {
    const std::size_t hidden = lines.size() - style.height + 1;
    const bool asks = view.asking != TopView::Asking::nothing;
    lines.resize(std::max<std::size_t>(style.height - 1, asks ? 1 : 0));
    if (lines.size() < style.height)
      lines.push_back(fit("... " + std::to_string(hidden) + " more lines; make the window taller", style.width));
  }
  return lines;
}

}  // namespace gpuctl::cli
