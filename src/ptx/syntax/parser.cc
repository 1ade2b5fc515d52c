#include "ptx/syntax/parser.h"

#include <utility>
#include <vector>

#include "ptx/syntax/parse_directive.h"
#include "ptx/syntax/parse_operand.h"
#include "ptx/syntax/parse_variable.h"
#include "ptx/syntax/token_cursor.h"

namespace gpuctl::ptx {
namespace {

Instruction instruction(TokenCursor& in) {
  Instruction result;
  result.line = in.peek().line;
  if (in.accept('@')) {
    Guard guard;
    guard.negated = in.accept('!');
    guard.reg = in.take(TokenKind::kIdentifier, "a predicate");
    result.guard = std::move(guard);
  }
  result.opcode = in.take(TokenKind::kIdentifier, "an instruction");
  while (in.peek().kind == TokenKind::kDotWord) result.modifiers.push_back(in.next().substr(1));
  if (in.accept(';')) return result;
  do {
    result.operands.push_back(parse_operand(in, 0));
  } while (in.accept(','));
  in.expect(';');
  return result;
}

std::vector<Statement> block(TokenCursor& in, int depth);

Statement statement(TokenCursor& in, int depth) {
  const Token& token = in.peek();
  if (token.is('{')) {
    Scope scope;
    scope.line = token.line;
    scope.body = block(in, depth + 1);
    return scope;
  }
  if (token.kind == TokenKind::kDotWord) {
    if (is_space(token) || token.is(".extern") || token.is(".visible") || token.is(".weak"))
      return parse_variable(in, Where::kStatement);
    return parse_directive(in);
  }
  if (token.kind == TokenKind::kIdentifier && in.peek(1).is(':')) {
    Label label{in.next(), token.line};
    in.expect(':');
    return label;
  }
  return instruction(in);
}

std::vector<Statement> block(TokenCursor& in, int depth) {
  if (depth > kMaxNesting) in.mistake(in.peek(), "nested too deeply");
  const Token& start = in.peek();
  in.expect('{');
  in.registers.open();
  std::vector<Statement> result;
  while (!in.accept('}')) {
    if (in.peek().kind == TokenKind::kEnd) in.mistake(start, "'{' is never closed");
    result.push_back(statement(in, depth));
  }
  in.registers.close();
  return result;
}

std::vector<Variable> parameters(TokenCursor& in) {
  std::vector<Variable> result;
  in.expect('(');
  if (in.accept(')')) return result;
  do {
    result.push_back(parse_variable(in, Where::kParameter));
  } while (in.accept(','));
  in.expect(')');
  return result;
}

/// A directive that stands between functions, not between the head of one and its body.
bool begins_item(const Token& token) {
  if (is_space(token)) return true;
  for (const char* word : {".entry", ".func", ".visible", ".extern", ".weak", ".common", ".file", ".section", ".alias",
                           ".callprototype"}) {
    if (token.is(word)) return true;
  }
  return false;
}

Function function(TokenCursor& in) {
  Function result;
  result.line = in.peek().line;
  while (!in.peek().is(".entry") && !in.peek().is(".func")) result.linkage.push_back(in.next());
  result.is_entry = in.next() == ".entry";
  while (in.peek().kind == TokenKind::kDotWord) {
    result.attributes.push_back(in.next());
    if (in.peek().is('(')) in.take_group(result.attributes);
  }
  in.registers.open();
  if (!result.is_entry && in.peek().is('(')) {
    result.has_returns = true;
    result.returns = parameters(in);
  }
  result.name = in.take(TokenKind::kIdentifier, "a function name");
  if (in.peek().is('(')) {
    result.has_params = true;
    result.params = parameters(in);
  }
  while (in.peek().kind == TokenKind::kDotWord && !begins_item(in.peek()))
    result.directives.push_back(parse_function_directive(in));
  // Old compilers end a prototype without `;`.
  const bool ended = !result.is_entry && (begins_item(in.peek()) || in.peek().kind == TokenKind::kEnd);
  if (!in.accept(';') && !ended) {
    if (!in.peek().is('{')) in.expected("'{' or ';'");
    result.body = block(in, 0);
  }
  in.registers.close();
  return result;
}

Item item(TokenCursor& in) {
  std::size_t ahead = 0;
  while (in.peek(ahead).is(".visible") || in.peek(ahead).is(".extern") || in.peek(ahead).is(".weak") ||
         in.peek(ahead).is(".common")) {
    ++ahead;
  }
  if (in.peek(ahead).is(".entry") || in.peek(ahead).is(".func")) return function(in);
  if (in.peek(ahead).kind != TokenKind::kDotWord) in.expected("a directive");
  if (ahead > 0 || is_space(in.peek())) return parse_variable(in, Where::kStatement);
  return parse_directive(in);
}

Module module(TokenCursor& in) {
  Module result;
  in.expect(".version");
  result.version = in.take(TokenKind::kNumber, "a version number");
  in.expect(".target");
  do {
    result.targets.push_back(in.take(TokenKind::kIdentifier, "a target name"));
  } while (in.accept(','));
  if (in.accept(".address_size")) result.address_size = in.take(TokenKind::kNumber, "32 or 64");
  in.registers.open();
  while (in.peek().kind != TokenKind::kEnd) result.items.push_back(item(in));
  return result;
}

}  // namespace

Result<Module> parse(std::string_view text) {
  Result<std::vector<Token>> tokens = lex(text);
  if (!tokens) return tokens.error();
  try {
    TokenCursor in(std::move(*tokens));
    return module(in);
  } catch (const Mistake& mistake) {
    return mistake.error;
  }
}

}  // namespace gpuctl::ptx
