#include "gpuctl/text/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "base/one_line.h"
#include "base/utf8.h"
#include "gpuctl/text/columns.h"
#include "ipc/message.h"

namespace gpuctl::cli {
namespace {

constexpr std::size_t kGap = 2;  // spaces between columns

/// The first character, or byte that belongs to none, of `text`, which is not empty.
struct First {
  explicit First(std::string_view text)
      : bytes(std::max<std::size_t>(utf8_length(text), 1)),
        columns(utf8_length(text) == 0 ? 1 : static_cast<std::size_t>(columns_of(code_point(text.substr(0, bytes))))) {}
  std::size_t bytes, columns;
};

std::string padded(const std::string& text, std::size_t width, Table::Align align) {
  const std::string space(width - std::min(width, display_width(text)), ' ');
  return align == Table::Align::left ? text + space : space + text;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const First first(text);
    columns += first.columns;
    text.remove_prefix(first.bytes);
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;
  for (std::size_t columns = 1; end < text.size();) {
    const First next(text.substr(end));
    if ((columns += next.columns) > width) break;
    end += next.bytes;
  }
  return std::string(text.substr(0, end)) + '~';
}

std::string fit_end(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  while (!text.empty() && display_width(text) >= width) text.remove_prefix(First(text).bytes);
  return '~' + std::string(text);
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string printable(std::string_view text) {
  return one_line(ipc::to_utf8(text), '?');
}

std::vector<std::string> Table::lines(std::size_t limit) const {
  std::vector<std::size_t> widths;
  std::vector<bool> shown(columns_.size(), true);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
    shown[c] = !columns_[c].optional || rows_.empty() ||
               std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row[c] != "-"; });
  }
  const auto total = [&] {
    std::size_t sum = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c)
      if (shown[c]) sum += widths[c] + (sum == 0 ? 0 : kGap);
    return sum;
  };
  const auto shrink = [&] {
    for (std::size_t c = columns_.size(); c-- > 0;) {
      const std::size_t sum = total();
      if (sum <= limit || columns_[c].shrink_to == 0 || widths[c] <= columns_[c].shrink_to) continue;
      widths[c] = std::max(columns_[c].shrink_to, widths[c] - std::min(widths[c], sum - limit));
    }
  };
  if (limit != 0) {
    const std::vector<std::size_t> natural = widths;
    shrink();
    while (total() > limit) {
      const auto first = std::max_element(columns_.begin(), columns_.end(), [&](const Column& a, const Column& b) {
        const auto rank = [&](const Column& c) {
          return shown[static_cast<std::size_t>(&c - columns_.data())] ? c.drop : 0;
        };
        return rank(a) < rank(b);
      });
      const auto c = static_cast<std::size_t>(first - columns_.begin());
      if (columns_[c].drop == 0 || !shown[c]) break;
      shown[c] = false;
      widths = natural;
      shrink();
    }
  }

  std::vector<std::string> result;
  const auto add_line = [&](const auto& cell) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (!shown[c]) continue;
      if (!line.empty()) line.append(kGap, ' ');
      line += padded(fit(cell(c), widths[c]), widths[c], columns_[c].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result.push_back(limit == 0 ? line : fit(line, limit));
  };
  add_line([&](std::size_t c) { return columns_[c].title; });
  for (const auto& row : rows_) add_line([&](std::size_t c) { return row[c]; });
  return result;
}

}  // namespace gpuctl::cli
