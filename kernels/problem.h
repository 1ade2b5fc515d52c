// One run of a benchmark kernel, described without any CUDA: its inputs, where its result goes, and how it is launched.
// All data are 32-bit words; floats are stored as their bits, so results are compared bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpuctl::bench {

/// The size of a problem. What x, y and z count is said in the kernel table, e.g. rows, columns, inner.
struct Extent {
  std::uint32_t x = 0;
  std::uint32_t y = 0;
  std::uint32_t z = 0;
  bool operator==(const Extent&) const = default;
};

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
};

using Words = std::vector<std::uint32_t>;

/// One kernel argument: the address of an input, the address of the output, or a plain number.
struct Argument {
  enum class Kind { kInput, kOutput, kNumber };
  Kind kind;
  std::uint32_t value;  ///< index of the input, or the number

  static Argument input(std::uint32_t index) { return {Kind::kInput, index}; }
  static Argument output() { return {Kind::kOutput, 0}; }
  static Argument number(std::uint32_t value) { return {Kind::kNumber, value}; }
};

/// Everything a launch needs. Each kernel writes one output, which holds `poison` in every word when it starts.
struct Problem {
  Dim3 grid;
  Dim3 block;
  std::vector<Words> inputs;
  std::size_t output_words = 0;
  std::uint32_t poison = 0;
  std::vector<Argument> arguments;
};

/// What an output holds before a kernel that overwrites it (a NaN), and before one that adds to it.
inline constexpr std::uint32_t kPoison = 0xffc0dead;

inline std::uint32_t divide_up(std::uint64_t amount, std::uint32_t by) {
  return static_cast<std::uint32_t>((amount + by - 1) / by);
}

}  // namespace gpuctl::bench
