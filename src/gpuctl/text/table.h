// Aligned columns for people, fitted to a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuctl::cli {

/// Columns a terminal needs for valid UTF-8 `text`: one per code point (no text here is wider).
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns; what was cut is shown by a final '~'.
std::string fit(std::string_view text, std::size_t width);

/// `text` with control characters, invalid UTF-8 included, shown as '?': names of other people's programs must not
/// steer our terminal.
std::string printable(std::string_view text);

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    std::size_t shrink_to = 0;  ///< may be cut to this width when the table is too wide, the last first; 0: never
    int drop = 0;               ///< when that is not enough, columns go away, the greatest first; 0: never
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  /// Title line and rows, without trailing spaces. `width` 0: as wide as it is.
  std::vector<std::string> lines(std::size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpuctl::cli
