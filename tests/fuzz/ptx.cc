// PTX: any bytes give an error or a module; a module prints to the tokens it came from, and its rewriting keeps these
// and can be read again, and rewritten again.
#include <algorithm>
#include <iterator>

#include "fuzz.h"
#include "ptx/lexical/lexer.h"
#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"

using gpuctl::fuzz::require;
using gpuctl::fuzz::require_line;
using namespace gpuctl::ptx;

namespace {

/// Colours of vectors are read as axes.
std::string_view as_axis(std::string_view token) {
  constexpr std::string_view kColours[] = {".r", ".g", ".b", ".a"}, kAxes[] = {".x", ".y", ".z", ".w"};
  const auto colour = std::ranges::find(kColours, token);
  return colour == std::end(kColours) ? token : kAxes[colour - kColours];
}

void require_same_tokens(const std::vector<Token>& read, std::string_view printed) {
  const auto again = lex(printed);
  require(again.has_value(), "a printed module lexes");
  require(again->size() == read.size(), "a printed module has the tokens that were read");
  for (std::size_t i = 0; i < read.size(); ++i) {
    require(as_axis((*again)[i].text) == as_axis(read[i].text), "printed token '" + std::string((*again)[i].text) +
                                                                    "' is '" + std::string(read[i].text) +
                                                                    "' where it was read");
  }
}

/// What is added stands between items of the original, so its tokens remain in their order.
void require_kept_tokens(const std::vector<Token>& original, std::string_view rewritten) {
  const auto tokens = lex(rewritten);
  require(tokens.has_value(), "a rewritten module lexes");
  std::size_t kept = 0;
  for (const Token& token : *tokens)
    kept += kept < original.size() && as_axis(token.text) == as_axis(original[kept].text) ? 1 : 0;
  require(kept == original.size(), "a rewritten module holds the original");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gpuctl::fuzz::as_text(data, size);
  const auto tokens = lex(text);
  const auto module = parse(text);
  if (!module) {
    require_line(module.error().message);
    return 0;
  }
  require(tokens.has_value(), "what parses lexes");
  require_same_tokens(*tokens, print(*module));

  const RewriteResult rewritten = rewrite(*module);
  for (const EntryReport& entry : rewritten.entries) require_line(entry.reason);
  const std::string rewritten_text = print(rewritten.module);
  require_kept_tokens(*tokens, rewritten_text);
  const auto again = parse(rewritten_text);
  require(again.has_value(), "a rewritten module parses: " + (again ? "" : again.error().message));
  rewrite(*again);
  return 0;
}
