// What an instruction works on: registers, constants, addresses, vectors and lists of them.
#pragma once

#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {

/// The operand here; `depth`: how many it stands in. Throws Mistake.
Operand parse_operand(TokenCursor& in, int depth);

}  // namespace gpuctl::ptx
