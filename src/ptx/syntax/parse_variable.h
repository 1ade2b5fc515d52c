// Declarations of registers, parameters and variables in memory, with their initial values.
#pragma once

#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {

/// Whether the token is a state space, with which a declaration may begin.
bool is_space(const Token& token);

/// A statement ends with `;` and may declare several names.
enum class Where { kStatement, kParameter };

/// Parses the declaration at this place and adds its names to `in.registers`. Throws Mistake.
Variable parse_variable(TokenCursor& in, Where where);

}  // namespace gpuctl::ptx
