// One run of a benchmark kernel, described without any CUDA: its inputs, where its result goes, and how it is launched.
// Most kernels are one launch; some are a sequence of launches in one stream, each of which reads what earlier ones
// wrote. All data are 32-bit words; floats are stored as their bits, so results are compared bit for bit.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gpuctl::bench {

/// The size of a problem. What x, y and z count is said in the kernel table, e.g. rows, columns, inner.
struct Extent {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  bool operator==(const Extent&) const = default;
};

inline constexpr std::uint32_t kMostRepeats = 65'535;  ///< of a launch's blocks: the depth of a grid

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

using Words = std::vector<std::uint32_t>;

/// What memory holds before a kernel that overwrites it (a NaN), and before one that adds to it.
inline constexpr std::uint32_t kPoison = 0xffc0dead;

/// One kernel argument: the address of an input, of the output or of a scratch buffer, or a plain 32-bit number.
struct Argument {
  enum class Kind { kInput, kOutput, kScratch, kNumber };
  Kind kind;
  std::uint32_t value;  ///< index of the input or scratch buffer, or the number

  static Argument input(std::uint32_t index) { return {Kind::kInput, index}; }
  static Argument output() { return {Kind::kOutput, 0}; }
  static Argument scratch(std::uint32_t index) { return {Kind::kScratch, index}; }
  static Argument number(std::uint32_t value) { return {Kind::kNumber, value}; }
  static Argument real(float value) { return {Kind::kNumber, std::bit_cast<std::uint32_t>(value)}; }
};

/// One launch of a problem. Its blocks are independent of each other; it starts when the step before is complete.
struct Step {
  std::string_view entry;  ///< its name in the kernel's PTX; empty: the kernel's own name
  Dim3 grid;
  Dim3 block;
  std::vector<Argument> arguments;
  bool once = false;  ///< what it leaves depends on what was there: its blocks cannot be done again
};

/// Memory that steps hand on to later steps. Nobody compares it.
struct Scratch {
  std::size_t words = 0;
  std::uint32_t fill = kPoison;  ///< what every word holds when the first step starts
};

/// Everything a run needs. Inputs are never written. The last word about a run is its output, which holds `poison` in
/// every word when the first step starts. A run that nobody checks finds its output and scratch buffers as the run
/// before left them: how long a step takes must not depend on what they hold at the start.
struct Problem {
  std::vector<Words> inputs;
  std::size_t output_words = 0;
  std::uint32_t poison = 0;
  std::vector<Scratch> scratch;
  std::vector<Step> steps;

  /// Blocks of all steps.
  std::uint64_t block_tasks() const {
    std::uint64_t count = 0;
    for (const Step& step : steps) count += step.grid.count();
    return count;
  }

  /// Makes each launch do its blocks so often, as a grid of that depth; steps that are `once` stay as they are. No
  /// kernel looks at its depth in the grid, so all write the same again. Returns whether any launch is longer now.
  bool repeat(std::uint32_t times) {
    bool any = false;
    for (Step& step : steps) {
      if (step.once) continue;
      step.grid.z = times;
      any = true;
    }
    return any;
  }
};

/// A problem of one launch: converts to a Problem.
struct OneLaunch {
  Dim3 grid;
  Dim3 block;
  std::vector<Words> inputs;
  std::size_t output_words = 0;
  std::uint32_t poison = 0;
  std::vector<Argument> arguments;
  bool once = false;

  operator Problem() && {
    return {.inputs = std::move(inputs),
            .output_words = output_words,
            .poison = poison,
            .scratch = {},
            .steps = {{.entry = {}, .grid = grid, .block = block, .arguments = std::move(arguments), .once = once}}};
  }
};

inline std::uint32_t divide_up(std::uint64_t amount, std::uint32_t by) {
  return static_cast<std::uint32_t>((amount + by - 1) / by);
}

}  // namespace gpuctl::bench
