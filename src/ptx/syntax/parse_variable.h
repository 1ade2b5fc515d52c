// Declarations of registers, parameters and variables in memory, with their initial values.
#pragma once

#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {

/// Whether this is a state space, with which a declaration may begin.
bool is_space(const Token& token);

/// A statement ends with `;` and may declare several names.
enum class Where { kStatement, kParameter };

/// The declaration here, whose names are known to `in.registers` from then on. Throws Mistake.
Variable parse_variable(TokenCursor& in, Where where);

}  // namespace gpuctl::ptx
