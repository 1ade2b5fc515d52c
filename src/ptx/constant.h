// Numbers and constant expressions of PTX: `0x1F`, `-12`, `0f3F800000`, `(4*8)+1`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ptx/token.h"

namespace gpuctl::ptx {

struct Constant {
  std::uint64_t bits = 0;        ///< two's complement; of a float: its bit pattern
  std::uint8_t float_width = 0;  ///< 32 or 64 for a floating-point number, 0 for an integer
};

/// The value of one number token; nothing when it does not fit 64 bits.
std::optional<Constant> read_number(std::string_view text);

/// Reads the constant expression that starts at tokens[at] and leaves `at` behind it. Nothing, and `at` untouched, when
/// none starts there. Operators and their precedence are those of C; floating-point numbers take a sign, no operator.
std::optional<Constant> read_constant(const std::vector<Token>& tokens, std::size_t& at);

}  // namespace gpuctl::ptx
