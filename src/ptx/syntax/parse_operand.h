// What an instruction works on: registers, constants, addresses, vectors and lists of them.
#pragma once

#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {

/// Parses the operand at this place. `depth`: how many operands it is nested in. Throws Mistake.
Operand parse_operand(TokenCursor& in, int depth);

}  // namespace gpuctl::ptx
