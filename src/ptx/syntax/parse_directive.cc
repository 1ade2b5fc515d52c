#include "ptx/syntax/parse_directive.h"

namespace gpuctl::ptx {
namespace {

/// `, function_name $L__info_string0` with an optional `+offset`, or `, inlined_at 1 20 3`.
void loc_attribute(TokenCursor& in, Directive& loc) {
  loc.tokens.push_back(in.next());
  const bool inlined = in.peek().is("inlined_at");
  loc.tokens.push_back(in.next());
  if (inlined) {
    for (int i = 0; i < 3; ++i) loc.tokens.push_back(in.take(TokenKind::kNumber, "a number"));
    return;
  }
  loc.tokens.push_back(in.take(TokenKind::kIdentifier, "a label"));
  if (in.peek().is('+')) {
    loc.tokens.push_back(in.next());
    loc.tokens.push_back(in.take(TokenKind::kNumber, "a number"));
  }
}

}  // namespace

Directive parse_directive(TokenCursor& in) {
  Directive result;
  result.line = in.peek().line;
  const std::string name = in.next();
  result.tokens.push_back(name);
  if (name == ".loc") {
    for (int i = 0; i < 3; ++i) result.tokens.push_back(in.take(TokenKind::kNumber, "a number"));
    while (in.peek().is(',') && (in.peek(1).is("function_name") || in.peek(1).is("inlined_at")))
      loc_attribute(in, result);
  } else if (name == ".file") {
    result.tokens.push_back(in.take(TokenKind::kNumber, "a number"));
    result.tokens.push_back(in.take(TokenKind::kString, "a file name"));
    while (in.peek().is(',')) {
      result.tokens.push_back(in.next());
      result.tokens.push_back(in.take(TokenKind::kNumber, "a number"));
    }
  } else if (name == ".section") {
    while (!in.peek().is('{')) result.tokens.push_back(in.next());
    in.take_group(result.tokens);
  } else {
    while (!in.peek().is(';')) {
      if (in.peek().is('(') || in.peek().is('{')) {
        in.take_group(result.tokens);
      } else if (in.peek().is('}')) {
        in.expected("';' after " + name);
      } else {
        result.tokens.push_back(in.next());
      }
    }
    result.tokens.push_back(in.next());
  }
  return result;
}

Directive parse_function_directive(TokenCursor& in) {
  Directive result;
  result.line = in.peek().line;
  result.tokens.push_back(in.next());
  if (result.tokens[0] == ".pragma") {
    while (!in.peek().is(';')) result.tokens.push_back(in.next());
    result.tokens.push_back(in.next());
    return result;
  }
  while (in.peek().kind == TokenKind::kNumber || in.peek().kind == TokenKind::kIdentifier || in.peek().is(',') ||
         in.peek().is('(')) {
    if (in.peek().is('(')) {
      in.take_group(result.tokens);
    } else {
      result.tokens.push_back(in.next());
    }
  }
  return result;
}

}  // namespace gpuctl::ptx
