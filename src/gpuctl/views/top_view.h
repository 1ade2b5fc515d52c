// What a person has chosen in `top`, and how keys change it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpuctl/text/keys.h"
#include "gpuctl/views/slice_rows.h"
#include "gpuctl/views/top_model.h"

namespace gpuctl::cli {

struct TopView {
  enum class Pane { programs, slices };
  enum class Order { slice, busy, granted, launches, p99 };
  enum class Asking { nothing, filter, setting, kill, help };
  /// What a slice had when one snapshot was taken.
  struct Sample {
    double granted = 0;            ///< this part of the GPUs' SMs
    std::optional<double> p99_us;  ///< of its bursts and requests lately; none: nothing was counted
  };
  using History = std::vector<Sample>;  ///< the latest last

  Pane pane = Pane::programs;  ///< in which the arrows move
  std::optional<std::string> slice;
  std::optional<std::pair<std::int64_t, std::int64_t>> program;  ///< pid and device
  std::set<std::string> folded;                                  ///< slices whose slices are not shown
  std::string filter;                                            ///< only rows with this in them
  Order order = Order::slice;
  Asking asking = Asking::nothing;
  std::string typed;          ///< so far, as the answer
  std::string note;           ///< for the first line, until the next key
  bool sparks_first = false;  ///< where not all columns fit, those of the history stay rather than settings
  std::map<std::string, History> history;  ///< of each slice, by its path
};

/// What of the model is shown, in which order.
struct TopRows {
  std::vector<TreeRow> slices;
  std::vector<const TopClient*> programs;
};
/// Points into `model` and `now`.
TopRows rows_of(const TopModel& model, const ipc::Snapshot& now, const TopView& view);

/// What a key asks for.
struct TopRequest {
  enum class Kind { nothing, quit, kill_program, kill_slice, set };
  Kind kind = Kind::nothing;
  std::int64_t pid = 0;
  std::string slice;
  std::string settings;  ///< "max=40 weight=50"
  bool operator==(const TopRequest&) const = default;
};
/// `page`: how many rows a page has.
TopRequest press(TopView& view, const Key& key, const TopRows& rows, std::size_t page);

/// The first line while something is asked, in so many columns: of a long name or answer not all is shown, of the
/// question all. "" while nothing is asked.
std::string question(const TopView& view, const TopRows& rows, std::size_t width);

std::string order_name(TopView::Order order);

/// Adds a sample to the history of each slice, and forgets slices that are gone.
void remember(TopView& view, const ipc::Snapshot& now);

}  // namespace gpuctl::cli
