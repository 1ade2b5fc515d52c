// PTX text to tokens. Comments and white space are dropped; so are NULs at the end (fatbins pad with them).
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "ptx/lexical/token.h"

namespace gpuctl::ptx {

/// The tokens of `text`, the last one kEnd. They point into `text`. Errors: "line:column: message".
Result<std::vector<Token>> lex(std::string_view text);

/// Whether two tokens, written without a space between them, would be read as different tokens.
bool must_stand_apart(std::string_view left, std::string_view right);

/// "line:column: message" for an error found at `token`.
Error error_at(const Token& token, std::string_view message);

}  // namespace gpuctl::ptx
