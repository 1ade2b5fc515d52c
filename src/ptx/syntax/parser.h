// Tokens to tree, by recursive descent over the PTX grammar.
#pragma once

#include <string_view>

#include "base/result.h"
#include "ptx/syntax/syntax.h"

namespace gpuctl::ptx {

/// The module of a whole PTX text. Errors: "line:column: message", the first one found. The result does not refer to
/// `text`. Names are resolved only as far as registers: see Operand::Kind.
Result<Module> parse(std::string_view text);

}  // namespace gpuctl::ptx
