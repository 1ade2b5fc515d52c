// Aligned columns for people, fitted to a width.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gpuctl::cli {

/// Columns that a terminal needs for `text`: one or two for each character (columns.h).
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns; a final '~' shows that something was cut.
std::string fit(std::string_view text, std::size_t width);
/// The same, but cut at its begin.
std::string fit_end(std::string_view text, std::size_t width);

/// Columns of the terminal that standard output is; 0: it is none.
std::size_t terminal_width();

/// `text` with '?' for each control character and for invalid UTF-8: names of other people's programs must not control
/// the terminal.
std::string printable(std::string_view text);

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    /// May be cut to this width if the table is too wide; the last column is cut first. 0: never.
    std::size_t shrink_to = 0;
    /// If cutting is not enough columns are dropped, the one with the greatest value first. 0: never.
    int drop = 0;
    /// Left out where it says nothing: if "-" is in every row.
    bool optional = false;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  /// As many cells as columns.
  void add_row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  /// Title line and rows, without trailing spaces. `width` 0: no limit.
  std::vector<std::string> lines(std::size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace gpuctl::cli
