// Directives that declare nothing. They are kept as they are written.
#pragma once

#include "ptx/syntax/syntax.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {

/// `.loc` and `.file` end with their known operands, `.section` with its braces, all else with `;`. Throws Mistake.
Directive parse_directive(TokenCursor& in);

/// Between the head of a function and its body: `.maxntid 256, 1, 1`, `.noreturn`, or `.pragma "...";` Throws Mistake.
Directive parse_function_directive(TokenCursor& in);

}  // namespace gpuctl::ptx
