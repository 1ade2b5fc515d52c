#include "gpuctl/views/top_view.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "gpuctl/text/table.h"
#include "gpuctl/views/latency_lines.h"
#include "sched/slices.h"

namespace gpuctl::cli {
namespace {

using Asking = TopView::Asking;
using Order = TopView::Order;
using Pane = TopView::Pane;

constexpr std::array kOrderNames{"slice", "time busy", "SMs granted", "launches", "p99"};
constexpr std::size_t kRemembered = 60;
constexpr std::size_t kLongestAnswer = 200;

bool has(const std::string& text, const std::string& part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::ranges::search(text, part, same).begin() != text.end() || part.empty();
}

bool matches(const TopClient& row, const std::string& filter) {
  const ipc::Client& c = *row.client;
  return has(c.slice, filter) || has(c.command, filter) || has(std::to_string(c.pid), filter);
}

/// What rows are sorted by, the greatest first.
double measure(const TopClient& row, Order order) {
  switch (order) {
    case Order::slice:
      return 0;
    case Order::busy:
      return row.busy.value_or(-1);
    case Order::granted:
      return row.usage == nullptr ? -1 : static_cast<double>(row.usage->granted);
    case Order::launches:
      return row.launches_per_s.value_or(-1);
    case Order::p99:
      return row.usage == nullptr || !lately(row.usage->latency) ? -1 : lately(row.usage->latency)->p99_us;
  }
  return 0;
}

std::pair<std::int64_t, std::int64_t> name_of(const TopClient& row) {
  return {row.client->pid, row.usage == nullptr ? -1 : row.usage->device};
}

std::optional<std::size_t> chosen_index(const TopView& view, const TopRows& rows) {
  if (view.pane == Pane::slices) {
    const auto found = std::ranges::find_if(rows.slices, [&](const TreeRow& r) { return r.slice->path == view.slice; });
    if (view.slice && found != rows.slices.end()) return found - rows.slices.begin();
  } else {
    const auto found =
        std::ranges::find_if(rows.programs, [&](const TopClient* r) { return view.program == name_of(*r); });
    if (view.program && found != rows.programs.end()) return found - rows.programs.begin();
  }
  return std::nullopt;
}

void choose(TopView& view, const TopRows& rows, std::size_t index) {
  if (view.pane == Pane::slices && index < rows.slices.size()) view.slice = rows.slices[index].slice->path;
  if (view.pane == Pane::programs && index < rows.programs.size()) view.program = name_of(*rows.programs[index]);
}

void move(TopView& view, const TopRows& rows, Key::Kind kind, std::size_t page) {
  const std::size_t count = view.pane == Pane::slices ? rows.slices.size() : rows.programs.size();
  if (count == 0) return;
  const std::optional<std::size_t> at = chosen_index(view, rows);
  const std::size_t step =
      kind == Key::Kind::page_up || kind == Key::Kind::page_down ? std::max<std::size_t>(1, page) : 1;
  std::size_t to = 0;
  if (kind == Key::Kind::end) to = count - 1;
  if (at && (kind == Key::Kind::down || kind == Key::Kind::page_down)) to = std::min(count - 1, *at + step);
  if (at && (kind == Key::Kind::up || kind == Key::Kind::page_up)) to = *at - std::min(*at, step);
  choose(view, rows, to);
}

const ipc::Client* chosen_program(const TopView& view, const TopRows& rows) {
  const auto at = view.pane == Pane::programs ? chosen_index(view, rows) : std::nullopt;
  return at ? rows.programs[*at]->client : nullptr;
}

const ipc::Slice* chosen_slice(const TopView& view, const TopRows& rows) {
  const auto at = view.pane == Pane::slices ? chosen_index(view, rows) : std::nullopt;
  return at ? rows.slices[*at].slice : nullptr;
}

/// The slice whose settings `e` changes: the chosen one, or that of the chosen program.
std::string slice_to_set(const TopView& view, const TopRows& rows) {
  if (const ipc::Client* program = chosen_program(view, rows)) return program->slice;
  if (const ipc::Slice* slice = chosen_slice(view, rows)) return slice->path;
  return {};
}

TopRequest answered(TopView& view, const TopRows& rows) {
  const Asking asked = std::exchange(view.asking, Asking::nothing);
  const std::string typed = std::exchange(view.typed, "");
  if (asked == Asking::filter) view.filter = typed;
  if (asked == Asking::setting && !typed.empty() && !slice_to_set(view, rows).empty())
    return {TopRequest::Kind::set, 0, slice_to_set(view, rows), typed};
  return {};
}

TopRequest press_while_asked(TopView& view, const Key& key, const TopRows& rows) {
  if (view.asking == Asking::help) {
    view.asking = Asking::nothing;
    return {};
  }
  if (view.asking == Asking::kill) {
    view.asking = Asking::nothing;
    if (key != Key{Key::Kind::character, 'y'}) return {};
    if (const ipc::Client* program = chosen_program(view, rows))
      return {TopRequest::Kind::kill_program, program->pid, "", ""};
    if (const ipc::Slice* slice = chosen_slice(view, rows)) return {TopRequest::Kind::kill_slice, 0, slice->path, ""};
    return {};
  }
  switch (key.kind) {
    case Key::Kind::enter:
      return answered(view, rows);
    case Key::Kind::escape:
      view.asking = Asking::nothing;
      view.typed.clear();
      break;
    case Key::Kind::backspace:
      while (!view.typed.empty() && (static_cast<unsigned char>(view.typed.back()) & 0xc0) == 0x80)
        view.typed.pop_back();
      if (!view.typed.empty()) view.typed.pop_back();
      break;
    case Key::Kind::character:
      if (view.typed.size() < kLongestAnswer) view.typed += key.character;
      break;
    default:
      break;
  }
  return {};
}

/// A prompt and the end of what was typed, where the cursor is.
std::string typed_line(const std::string& prompt, const std::string& typed, std::size_t width) {
  const std::string answer = printable(typed) + "_";
  const std::size_t most = width - std::min(width, display_width(answer));
  const std::string asked = fit(prompt, std::max(most, width / 2));
  return asked + fit_end(answer, width - display_width(asked));
}

/// The question with its end, whatever has to be cut of what is asked about.
std::string yes_or_no(const std::string& what, std::size_t width) {
  const std::string begin = "end ";
  for (const std::string end : {"? y, or any other key", "? y"})
    if (begin.size() + end.size() + std::min<std::size_t>(display_width(what), 12) <= width)
      return begin + fit(what, width - begin.size() - end.size()) + end;
  return fit("end it? y", width);
}

void fold(TopView& view, const TopRows& rows) {
  const ipc::Slice* slice = chosen_slice(view, rows);
  if (slice == nullptr || slice->path == "/") return;
  if (view.folded.erase(slice->path) == 0) view.folded.insert(slice->path);
}

}  // namespace

TopRows rows_of(const TopModel& model, const ipc::Snapshot& now, const TopView& view) {
  TopRows rows;
  for (const TopClient& row : model.clients)
    if (matches(row, view.filter)) rows.programs.push_back(&row);
  std::ranges::stable_sort(rows.programs, std::ranges::greater{},
                           [&](const TopClient* row) { return measure(*row, view.order); });
  const auto shown = [&](const ipc::Slice& slice) {
    const auto hides = [&](const std::string& path) {
      return path != slice.path && sched::in_or_below(slice.path, path);
    };
    if (std::ranges::any_of(view.folded, hides)) return false;
    return has(slice.path, view.filter) || std::ranges::any_of(rows.programs, [&](const TopClient* row) {
             return sched::in_or_below(row->client->slice, slice.path);
           });
  };
  for (TreeRow& row : tree_rows(now.slices)) {
    if (!shown(*row.slice)) continue;
    if (view.folded.contains(row.slice->path)) row.label += " +";
    rows.slices.push_back(std::move(row));
  }
  return rows;
}

TopRequest press(TopView& view, const Key& key, const TopRows& rows, std::size_t page) {
  view.note.clear();
  if (view.asking != Asking::nothing) return press_while_asked(view, key, rows);
  switch (key.kind) {
    case Key::Kind::up:
    case Key::Kind::down:
    case Key::Kind::page_up:
    case Key::Kind::page_down:
    case Key::Kind::home:
    case Key::Kind::end:
      move(view, rows, key.kind, page);
      return {};
    case Key::Kind::tab:
      view.pane = view.pane == Pane::slices ? Pane::programs : Pane::slices;
      if (!chosen_index(view, rows)) choose(view, rows, 0);
      return {};
    case Key::Kind::escape:
      view.filter.clear();
      view.slice.reset();
      view.program.reset();
      return {};
    case Key::Kind::enter:
      fold(view, rows);
      return {};
    case Key::Kind::backspace:
      return {};
    case Key::Kind::character:
      break;
  }
  switch (key.character) {
    case 'q':
    case 'Q':
      return {TopRequest::Kind::quit, 0, "", ""};
    case '?':
    case 'h':
      view.asking = Asking::help;
      break;
    case '/':
      view.asking = Asking::filter;
      view.typed = view.filter;
      break;
    case 'o':
      view.order = static_cast<Order>((static_cast<std::size_t>(view.order) + 1) % kOrderNames.size());
      break;
    case 'l':
      view.sparks_first = !view.sparks_first;
      break;
    case ' ':
      fold(view, rows);
      break;
    case 'k':
    case 'e':
      if (!chosen_index(view, rows))
        view.note = "choose a program or a slice with the arrows first";
      else
        view.asking = key.character == 'k' ? Asking::kill : Asking::setting;
      break;
    default:
      break;
  }
  return {};
}

std::string question(const TopView& view, const TopRows& rows, std::size_t width) {
  switch (view.asking) {
    case Asking::filter:
      return typed_line("only rows with: ", view.typed, width);
    case Asking::setting:
      if (slice_to_set(view, rows).empty()) return fit("it is gone", width);
      return typed_line("set " + printable(slice_to_set(view, rows)) + " (max=40 weight=50 ...): ", view.typed, width);
    case Asking::kill:
      if (const ipc::Client* program = chosen_program(view, rows))
        return yes_or_no("program " + std::to_string(program->pid) + " in " + printable(program->slice), width);
      if (const ipc::Slice* slice = chosen_slice(view, rows))
        return yes_or_no("all programs in and below " + printable(slice->path), width);
      return fit("it is gone", width);
    default:
      return {};
  }
}

std::string order_name(Order order) {
  return kOrderNames[static_cast<std::size_t>(order)];
}

void remember(TopView& view, const ipc::Snapshot& now) {
  std::int64_t sms = 0;
  for (const ipc::Device& device : now.devices) sms += device.sms;
  std::map<std::string, TopView::History> kept;
  for (const ipc::Slice& slice : now.slices) {
    TopView::History& samples = kept[slice.path] = std::move(view.history[slice.path]);
    const auto granted = static_cast<double>(slice_sms(now, slice.path).granted);
    TopView::Sample& sample = samples.emplace_back();
    if (sms > 0) sample.granted = std::clamp(granted / static_cast<double>(sms), 0.0, 1.0);
    if (const ipc::Latency* latency = lately(slice.latencies)) sample.p99_us = latency->p99_us;
    if (samples.size() > kRemembered) samples.erase(samples.begin());
  }
  view.history = std::move(kept);
}

}  // namespace gpuctl::cli
