// Mutations for the PTX target that know tokens and statements: most changes of bytes end at the first error of the
// parser, and the rewriter's passes see only what parses.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "fuzz.h"
#include "ptx/lexical/lexer.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using gpuctl::ptx::Token;
using gpuctl::ptx::TokenKind;
using Random = std::minstd_rand;

// What the passes look for, with registers that compilers are likely to have declared.
constexpr std::string_view kStatements[] = {
    "ret;",
    "exit;",
    "@%p1 ret;",
    "@!%p1 bra $L__BB0_2;",
    "bra.uni $L__BB0_2;",
    "$L__BB0_2:",
    "bar.sync 0;",
    "bar.sync 1, 64;",
    "barrier.sync.aligned 0;",
    "bar.red.popc.u32 %r1, 0, %p1;",
    "bar.warp.sync -1;",
    "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;",
    "vote.sync.ballot.b32 %r1, %p1, -1;",
    "activemask.b32 %r1;",
    "mov.u32 %r1, %ctaid.x;",
    "mov.u32 %r2, %ctaid.y;",
    "mov.v4.u32 {%r1, %r2, %r3, %r4}, %nctaid;",
    "mov.u32 %r1, %tid.x;",
    "mov.u32 %r3, %laneid;",
    "mov.u64 %rd1, f;",
    "setp.ge.u32 %p1, %r1, %r2;",
    "setp.ne.s32 %p1, %r1, 0;",
    "mad.lo.s32 %r1, %r2, %r3, %r4;",
    "ld.param.u64 %rd1, [k_param_0];",
    "ld.global.u32 %r1, [%rd1];",
    "ld.volatile.global.u32 %r1, [%rd1];",
    "st.global.u32 [%rd1], %r1;",
    "st.shared.u32 [%r1], %r2;",
    "atom.global.add.u32 %r1, [%rd1], 1;",
    "red.shared.add.u32 [%r1], %r2;",
    "cvta.to.global.u64 %rd2, %rd1;",
    "cp.async.ca.shared.global [%r1], [%rd1], 16;",
    "call (%r1), f, (%r2);",
    "call %rd1, (%r2), p;",
    "brx.idx %r1, t;",
    "t: .branchtargets $L__BB0_2, $L__BB0_3;",
    "{ .reg .b32 %r<4>; mov.u32 %r1, %r2; }",
    ".reg .pred %p<3>;",
    ".shared .align 4 .b8 s[64];",
    ".maxntid 128, 1, 1",
};

std::size_t below(Random& random, std::size_t count) {
  return count == 0 ? 0 : random() % count;
}

/// Where statements begin: a place behind each `;`, brace or colon; the start and the end of the text.
std::vector<std::size_t> boundaries(std::string_view text, const std::vector<Token>& tokens) {
  std::vector<std::size_t> places = {0};
  for (const Token& token : tokens) {
    if (!token.is(';') && !token.is('{') && !token.is('}') && !token.is(':')) continue;
    places.push_back(static_cast<std::size_t>(token.text.data() - text.data()) + 1);
  }
  places.push_back(text.size());
  return places;
}

/// Some statements in a row.
std::string_view some_statements(std::string_view text, const std::vector<std::size_t>& places, Random& random) {
  const std::size_t first = below(random, places.size() - 1);
  const std::size_t last = std::min(first + 1 + below(random, 4), places.size() - 1);
  return text.substr(places[first], places[last] - places[first]);
}

/// One token becomes another one of its kind.
std::string with_other_token(std::string_view text, const std::vector<Token>& tokens, Random& random) {
  const Token& old = tokens[below(random, tokens.size() - 1)];  // not the end
  std::vector<std::string_view> others;
  for (const Token& token : tokens) {
    if (token.kind == old.kind && token.text != old.text) others.push_back(token.text);
  }
  std::string result(text);
  if (others.empty()) return result;
  return result.replace(static_cast<std::size_t>(old.text.data() - text.data()), old.text.size(),
                        others[below(random, others.size())]);
}

std::string mutated(std::string_view text, const std::vector<Token>& tokens, Random& random) {
  const std::vector<std::size_t> places = boundaries(text, tokens);
  const std::string_view some = some_statements(text, places, random);
  std::string result(text);
  switch (below(random, 5)) {
    case 0:
      return result.erase(static_cast<std::size_t>(some.data() - text.data()), some.size());
    case 1:
      return result.insert(places[below(random, places.size())], some);
    case 2:
      return result.insert(places[below(random, places.size())], kStatements[below(random, std::size(kStatements))]);
    default:
      return with_other_token(text, tokens, random);
  }
}

std::size_t hand_over(std::string_view text, std::uint8_t* out, std::size_t max_size) {
  const std::size_t size = std::min(text.size(), max_size);
  std::memcpy(out, text.data(), size);
  return size;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed);
  const std::string_view text = gpuctl::fuzz::as_text(data, size);
  const auto tokens = gpuctl::ptx::lex(text);
  if (!tokens || tokens->size() == 1 || below(random, 4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  return hand_over(mutated(text, *tokens, random), data, max_size);
}

/// Statements of the second text get into the first.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* data1, std::size_t size1,
                                                 const std::uint8_t* data2, std::size_t size2, std::uint8_t* out,
                                                 std::size_t max_size, unsigned seed) {
  Random random(seed);
  const std::string_view text = gpuctl::fuzz::as_text(data1, size1);
  const std::string_view other = gpuctl::fuzz::as_text(data2, size2);
  const auto tokens = gpuctl::ptx::lex(text);
  const auto other_tokens = gpuctl::ptx::lex(other);
  if (!tokens || !other_tokens) return hand_over(text, out, max_size);
  const std::vector<std::size_t> places = boundaries(text, *tokens);
  std::string result(text);
  result.insert(places[below(random, places.size())], some_statements(other, boundaries(other, *other_tokens), random));
  return hand_over(result, out, max_size);
}
