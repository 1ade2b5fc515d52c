#include "ptx/parser.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ptx/constant.h"
#include "ptx/lexer.h"

namespace gpuctl::ptx {
namespace {

constexpr int kMaxNesting = 200;  // of { } scopes and operands: keeps hostile text from exhausting the stack

constexpr std::uint64_t kMaxRange = 1u << 24;  // registers of one `%r<n>`; compilers stay far below

/// The registers declared in the scopes that are open, innermost last.
class RegisterScopes {
 public:
  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }

  /// `count`: of a range `%r<count>`; nothing for a single name.
  void declare(const std::string& name, std::optional<std::uint32_t> count) {
    if (count) {
      scopes_.back().ranges[name] = *count;
    } else {
      scopes_.back().names[name] = true;
    }
  }

  /// A variable hides a register of an outer scope that has its name.
  void hide(const std::string& name) { scopes_.back().names[name] = false; }

  bool contains(const std::string& name) const {
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const auto found = scope->names.find(name); found != scope->names.end()) return found->second;
      if (in_range(*scope, name, digits)) return true;
    }
    return false;
  }

 private:
  struct Names {
    std::unordered_map<std::string, bool> names;  // true: a register
    std::unordered_map<std::string, std::uint32_t> ranges;
  };

  /// The prefix of a range may itself end in digits, so each split of the trailing digits is tried.
  static bool in_range(const Names& scope, const std::string& name, std::size_t digits) {
    if (scope.ranges.empty()) return false;
    for (std::size_t split = digits; split < name.size(); ++split) {
      const bool leading_zero = name[split] == '0' && split + 1 < name.size();
      if (split == 0 || leading_zero || name.size() - split > 9) continue;
      const auto found = scope.ranges.find(name.substr(0, split));
      if (found != scope.ranges.end() && std::stoul(name.substr(split)) < found->second) return true;
    }
    return false;
  }

  std::vector<Names> scopes_;
};

/// Thrown inside this file only; parse() turns it into a Result.
struct Mistake {
  Error error;
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Module run() {
    Module module;
    expect(".version");
    module.version = take(TokenKind::kNumber, "a version number");
    expect(".target");
    do {
      module.targets.push_back(take(TokenKind::kIdentifier, "a target name"));
    } while (accept(','));
    if (accept(".address_size")) module.address_size = take(TokenKind::kNumber, "32 or 64");
    registers_.open();
    while (peek().kind != TokenKind::kEnd) module.items.push_back(item());
    return module;
  }

 private:
  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

  [[noreturn]] void mistake(const Token& token, const std::string& message) const {
    throw Mistake{error_at(token, message)};
  }
  [[noreturn]] void expected(const std::string& what) const {
    const Token& token = peek();
    const std::string found = token.kind == TokenKind::kEnd ? "the end of the text" : "'" + std::string(token.text) + "'";
    mistake(token, "expected " + what + ", found " + found);
  }

  std::string next() {
    if (peek().kind == TokenKind::kEnd) expected("more text");
    return std::string(tokens_[at_++].text);
  }
  bool accept(char punct) {
    if (!peek().is(punct)) return false;
    ++at_;
    return true;
  }
  bool accept(std::string_view word) {
    if (!peek().is(word)) return false;
    ++at_;
    return true;
  }
  void expect(char punct) {
    if (!accept(punct)) expected(std::string("'") + punct + "'");
  }
  void expect(std::string_view word) {
    if (!accept(word)) expected("'" + std::string(word) + "'");
  }
  std::string take(TokenKind kind, const std::string& what) {
    if (peek().kind != kind) expected(what);
    return next();
  }
  std::uint64_t take_integer(const std::string& what) {
    const std::optional<Constant> value = read_constant(tokens_, at_);
    if (!value || value->float_width != 0) expected(what);
    return value->bits;
  }

  /// Appends the tokens of a group that starts with `(` or `{`, nested ones included.
  void take_group(std::vector<std::string>& tokens) {
    const Token& start = peek();
    int depth = 0;
    do {
      if (peek().kind == TokenKind::kEnd) mistake(start, "group is never closed");
      if (peek().is('(') || peek().is('{')) ++depth;
      if (peek().is(')') || peek().is('}')) --depth;
      tokens.push_back(next());
    } while (depth > 0);
  }

  // Module scope.

  Item item() {
    std::size_t ahead = 0;
    while (peek(ahead).is(".visible") || peek(ahead).is(".extern") || peek(ahead).is(".weak") || peek(ahead).is(".common")) {
      ++ahead;
    }
    if (peek(ahead).is(".entry") || peek(ahead).is(".func")) return function();
    if (peek(ahead).kind != TokenKind::kDotWord) expected("a directive");
    if (ahead > 0 || is_space(peek())) return variable(Where::kStatement);
    return directive();
  }

  static bool is_space(const Token& token) {
    static constexpr std::string_view kSpaces[] = {".reg",    ".sreg", ".const", ".global",      ".local",
                                                   ".param", ".shared", ".tex", ".shared::cta"};
    return std::find(std::begin(kSpaces), std::end(kSpaces), token.text) != std::end(kSpaces);
  }

  /// `.loc` and `.file` end with their known operands, `.section` with its braces, all else with `;`.
  Directive directive() {
    Directive result;
    result.line = peek().line;
    const std::string name = next();
    result.tokens.push_back(name);
    if (name == ".loc") {
      for (int i = 0; i < 3; ++i) result.tokens.push_back(take(TokenKind::kNumber, "a number"));
      while (peek().is(',') && (peek(1).is("function_name") || peek(1).is("inlined_at"))) loc_attribute(result);
    } else if (name == ".file") {
      result.tokens.push_back(take(TokenKind::kNumber, "a number"));
      result.tokens.push_back(take(TokenKind::kString, "a file name"));
      while (peek().is(',')) {
        result.tokens.push_back(next());
        result.tokens.push_back(take(TokenKind::kNumber, "a number"));
      }
    } else if (name == ".section") {
      while (!peek().is('{')) result.tokens.push_back(next());
      take_group(result.tokens);
    } else {
      while (!peek().is(';')) {
        if (peek().is('(') || peek().is('{')) {
          take_group(result.tokens);
        } else if (peek().is('}')) {
          expected("';' after " + name);
        } else {
          result.tokens.push_back(next());
        }
      }
      result.tokens.push_back(next());
    }
    return result;
  }

  /// `, function_name $L__info_string0` with an optional `+offset`, or `, inlined_at 1 20 3`.
  void loc_attribute(Directive& loc) {
    loc.tokens.push_back(next());
    const bool inlined = peek().is("inlined_at");
    loc.tokens.push_back(next());
    if (inlined) {
      for (int i = 0; i < 3; ++i) loc.tokens.push_back(take(TokenKind::kNumber, "a number"));
      return;
    }
    loc.tokens.push_back(take(TokenKind::kIdentifier, "a label"));
    if (peek().is('+')) {
      loc.tokens.push_back(next());
      loc.tokens.push_back(take(TokenKind::kNumber, "a number"));
    }
  }

  Function function() {
    Function result;
    result.line = peek().line;
    while (!peek().is(".entry") && !peek().is(".func")) result.linkage.push_back(next());
    result.is_entry = next() == ".entry";
    while (peek().kind == TokenKind::kDotWord) {
      result.attributes.push_back(next());
      if (peek().is('(')) take_group(result.attributes);
    }
    registers_.open();
    if (!result.is_entry && peek().is('(')) {
      result.has_returns = true;
      result.returns = parameters();
    }
    result.name = take(TokenKind::kIdentifier, "a function name");
    if (peek().is('(')) {
      result.has_params = true;
      result.params = parameters();
    }
    while (peek().kind == TokenKind::kDotWord) result.directives.push_back(function_directive());
    if (!accept(';')) {
      if (!peek().is('{')) expected("'{' or ';'");
      result.body = block(0);
    }
    registers_.close();
    return result;
  }

  std::vector<Variable> parameters() {
    std::vector<Variable> result;
    expect('(');
    if (accept(')')) return result;
    do {
      result.push_back(variable(Where::kParameter));
    } while (accept(','));
    expect(')');
    return result;
  }

  /// `.maxntid 256, 1, 1`, `.noreturn`, or `.pragma "...";`
  Directive function_directive() {
    Directive result;
    result.line = peek().line;
    result.tokens.push_back(next());
    if (result.tokens[0] == ".pragma") {
      while (!peek().is(';')) result.tokens.push_back(next());
      result.tokens.push_back(next());
      return result;
    }
    while (peek().kind == TokenKind::kNumber || peek().kind == TokenKind::kIdentifier || peek().is(',') || peek().is('(')) {
      if (peek().is('(')) {
        take_group(result.tokens);
      } else {
        result.tokens.push_back(next());
      }
    }
    return result;
  }

  // Variables.

  enum class Where { kStatement, kParameter };

  Variable variable(Where where) {
    Variable result;
    result.line = peek().line;
    while (peek().kind == TokenKind::kDotWord) {
      const bool number = peek().is(".align");
      result.specifiers.push_back(next());
      if (number) result.specifiers.push_back(take(TokenKind::kNumber, "an alignment"));
      if (peek().is('(')) take_group(result.specifiers);
    }
    decode_specifiers(result);
    do {
      result.names.push_back(declarator(result));
    } while (where == Where::kStatement && accept(','));
    if (where == Where::kStatement) expect(';');
    return result;
  }

  Declarator declarator(const Variable& variable) {
    Declarator result;
    result.name = take(TokenKind::kIdentifier, "a name");
    if (accept('<')) {
      const Token& token = peek();  // not an expression: the `>` that follows would read as an operator
      const std::optional<Constant> count = read_number(take(TokenKind::kNumber, "a count"));
      if (!count || count->float_width != 0 || count->bits > kMaxRange) mistake(token, "register count out of range");
      result.range = static_cast<std::uint32_t>(count->bits);
      expect('>');
    }
    while (accept('[')) {
      result.dims.emplace_back();
      if (!peek().is(']')) result.dims.back() = take_integer("a size");
      expect(']');
    }
    if (accept('=')) result.init = initializer(0);
    if (variable.space == "reg") {
      registers_.declare(result.name, result.range);
    } else {
      registers_.hide(result.name);
    }
    return result;
  }

  Initializer initializer(int depth) {
    if (depth > kMaxNesting) mistake(peek(), "nested too deeply");
    Initializer result;
    if (accept('{')) {
      result.kind = Initializer::Kind::kList;
      if (accept('}')) return result;
      do {
        result.items.push_back(initializer(depth + 1));
      } while (accept(','));
      expect('}');
      return result;
    }
    const std::size_t start = at_;
    if (const std::optional<Constant> value = read_constant(tokens_, at_); value && at_initializer_end()) {
      result.kind = value->float_width != 0 ? Initializer::Kind::kFloat : Initializer::Kind::kNumber;
      result.bits = value->bits;
      result.width = value->float_width;
    } else {
      at_ = start;
      symbol_initializer(result);
    }
    for (std::size_t i = start; i < at_; ++i) result.tokens.emplace_back(tokens_[i].text);
    return result;
  }

  bool at_initializer_end() const { return peek().is(',') || peek().is('}') || peek().is(';'); }

  /// `s`, `s+4`, `generic(s)+4`, `0xff00(s)`, `"text"`; anything else (`addr_mode_0 = wrap`) is kept unread.
  void symbol_initializer(Initializer& result) {
    const std::size_t start = at_;
    if (peek().kind == TokenKind::kString) {
      result.kind = Initializer::Kind::kString;
      ++at_;
    } else if (peek().kind == TokenKind::kNumber && peek(1).is('(')) {
      if (const std::optional<Constant> mask = read_number(peek().text)) result.mask = mask->bits;
      at_ += 2;
      result.kind = Initializer::Kind::kSymbol;
      inner_symbol(result);
      if (!accept(')')) result.kind = Initializer::Kind::kOther;
    } else {
      result.kind = Initializer::Kind::kSymbol;
      inner_symbol(result);
    }
    if (result.kind != Initializer::Kind::kOther && at_initializer_end()) return;
    result.kind = Initializer::Kind::kOther;
    at_ = start;
    while (!at_initializer_end()) {
      if (peek().is('(')) {
        std::vector<std::string> group;
        take_group(group);
      } else {
        next();
      }
    }
  }

  void inner_symbol(Initializer& result) {
    if (peek().is("generic") && peek(1).is('(')) {
      result.generic = true;
      at_ += 2;
    }
    if (peek().kind != TokenKind::kIdentifier) {
      result.kind = Initializer::Kind::kOther;
      return;
    }
    result.symbol = next();
    if (result.generic && !accept(')')) result.kind = Initializer::Kind::kOther;
    if (peek().is('+') || peek().is('-')) {
      const std::optional<Constant> offset = read_constant(tokens_, at_);
      if (offset) result.offset = static_cast<std::int64_t>(offset->bits);
    }
  }

  // Statements.

  std::vector<Statement> block(int depth) {
    if (depth > kMaxNesting) mistake(peek(), "nested too deeply");
    const Token& start = peek();
    expect('{');
    registers_.open();
    std::vector<Statement> result;
    while (!accept('}')) {
      if (peek().kind == TokenKind::kEnd) mistake(start, "'{' is never closed");
      result.push_back(statement(depth));
    }
    registers_.close();
    return result;
  }

  Statement statement(int depth) {
    const Token& token = peek();
    if (token.is('{')) {
      Scope scope;
      scope.line = token.line;
      scope.body = block(depth + 1);
      return scope;
    }
    if (token.kind == TokenKind::kDotWord) {
      if (is_space(token) || token.is(".extern") || token.is(".visible") || token.is(".weak")) return variable(Where::kStatement);
      return directive();
    }
    if (token.kind == TokenKind::kIdentifier && peek(1).is(':')) {
      Label label{next(), token.line};
      expect(':');
      return label;
    }
    return instruction();
  }

  Instruction instruction() {
    Instruction result;
    result.line = peek().line;
    if (accept('@')) {
      Guard guard;
      guard.negated = accept('!');
      guard.reg = take(TokenKind::kIdentifier, "a predicate");
      result.guard = std::move(guard);
    }
    result.opcode = take(TokenKind::kIdentifier, "an instruction");
    while (peek().kind == TokenKind::kDotWord) result.modifiers.push_back(next().substr(1));
    if (accept(';')) return result;
    do {
      result.operands.push_back(operand(0));
    } while (accept(','));
    expect(';');
    return result;
  }

  // Operands.

  Operand operand(int depth) {
    if (depth > kMaxNesting) mistake(peek(), "nested too deeply");
    Operand first = simple_operand(depth);
    if (!accept('|')) return first;
    Operand pair;
    pair.kind = Operand::Kind::kPredicatePair;
    pair.items.push_back(std::move(first));
    pair.items.push_back(simple_operand(depth));
    return pair;
  }

  Operand simple_operand(int depth) {
    const Token& token = peek();
    if (token.is('[')) return address(depth);
    if (token.is('{')) return sequence(Operand::Kind::kVector, '}', depth);
    if (token.kind == TokenKind::kIdentifier) return name_operand();
    if (token.kind == TokenKind::kString) {
      Operand result;
      result.kind = Operand::Kind::kString;
      result.text = next();
      return result;
    }
    const bool sign = token.is('!') || token.is('-');
    if (sign && peek(1).kind == TokenKind::kIdentifier && !peek(1).is("WARP_SZ")) {
      Operand result;
      result.kind = Operand::Kind::kNegated;
      result.text = next();
      result.items.push_back(name_operand());
      return result;
    }
    const std::size_t start = at_;
    if (const std::optional<Constant> value = read_constant(tokens_, at_)) return constant_operand(*value, start);
    if (token.is('(')) return sequence(Operand::Kind::kList, ')', depth);
    expected("an operand");
  }

  Operand constant_operand(const Constant& value, std::size_t start) {
    // A call's one-argument list `(4)` reads as a constant in parentheses; lists are what calls have.
    if (tokens_[start].is('(') && tokens_[at_ - 1].is(')')) {
      at_ = start;
      return sequence(Operand::Kind::kList, ')', 0);
    }
    Operand result;
    result.kind = value.float_width != 0 ? Operand::Kind::kFloatImmediate : Operand::Kind::kImmediate;
    result.width = value.float_width;
    result.bits = value.bits;
    for (std::size_t i = start; i < at_; ++i) result.text += tokens_[i].text;
    return result;
  }

  Operand name_operand() {
    Operand result;
    result.text = next();
    if (result.text == "_") {
      result.text.clear();
      return result;
    }
    if (registers_.contains(result.text)) {
      result.kind = Operand::Kind::kRegister;
    } else if (result.text[0] == '%' || is_special_register(result.text)) {
      result.kind = Operand::Kind::kSpecial;
    } else {
      result.kind = Operand::Kind::kSymbol;
    }
    if (peek().kind == TokenKind::kDotWord) {
      result.component = next().substr(1);
    } else if (result.kind == Operand::Kind::kSymbol) {
      offset(result);
    }
    return result;
  }

  /// `+4`, `-4`, `+-4` or `[4]` after a name.
  void offset(Operand& result) {
    const std::size_t start = at_;
    const bool index = peek().is('[');
    if (!index && !peek().is('+') && !peek().is('-')) return;
    if (index) ++at_;
    result.offset = static_cast<std::int64_t>(take_integer("an offset"));
    if (index) expect(']');
    for (std::size_t i = start; i < at_; ++i) result.offset_text += tokens_[i].text;
  }

  Operand address(int depth) {
    Operand result;
    result.kind = Operand::Kind::kAddress;
    expect('[');
    Operand base = operand(depth + 1);
    if (base.kind == Operand::Kind::kSymbol) {
      result.offset = std::exchange(base.offset, 0);
      result.offset_text = std::exchange(base.offset_text, {});
    } else if (base.kind == Operand::Kind::kRegister || base.kind == Operand::Kind::kSpecial) {
      offset(result);
    }
    result.items.push_back(std::move(base));
    while (accept(',')) result.items.push_back(operand(depth + 1));
    expect(']');
    return result;
  }

  Operand sequence(Operand::Kind kind, char close, int depth) {
    Operand result;
    result.kind = kind;
    ++at_;
    if (accept(close)) return result;
    do {
      result.items.push_back(operand(depth + 1));
    } while (accept(','));
    expect(close);
    return result;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  RegisterScopes registers_;
};

}  // namespace

Result<Module> parse(std::string_view text) {
  Result<std::vector<Token>> tokens = lex(text);
  if (!tokens) return tokens.error();
  try {
    return Parser(std::move(*tokens)).run();
  } catch (const Mistake& mistake) {
    return mistake.error;
  }
}

}  // namespace gpuctl::ptx
