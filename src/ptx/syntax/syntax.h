// The tree of a PTX module. Every node owns its strings, so a tree may outlive the text and be copied freely.
// Fields marked "printed" decide what a node prints as. The parser decodes the other fields from them, for readers.
// print() of a parsed module gives the same tokens again (comments and white space are not kept).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gpuctl::ptx {

struct Operand {
  enum class Kind : std::uint8_t {
    kRegister,        ///< text: name of a register declared with .reg in scope (or a .reg parameter); component
    kSpecial,         ///< text: `%tid`, `%ctaid`, `%laneid`, ...; component. Any %name that no .reg declares
    kImmediate,       ///< text: as written, signs and constant expressions included; bits: its 64-bit value
    kFloatImmediate,  ///< text; bits: of a float (width 32) or a double (width 64)
    kSymbol,          ///< text: a label, variable, parameter or function; offset for `sym+4`
    kAddress,         ///< `[base+offset]`: items[0] = base (register, symbol or immediate). More items: `[tex, {x,y}]`
    kVector,          ///< `{a, b}`: items
    kPredicatePair,   ///< `p|q`: items[0], items[1]; either may be a sink, the first may be a vector
    kNegated,         ///< `!p` or `-a`: text is the sign, items[0] the operand
    kSink,            ///< `_`
    kList,            ///< `(a, b)` of a call: items
    kString,          ///< text with its quotes
  };
  Kind kind = Kind::kSink;
  std::uint8_t width = 0;      ///< kFloatImmediate: 32 or 64
  std::string text;            ///< printed
  std::string component;       ///< printed, without the dot: `x` of `%tid.x`; also for `%tid.r`
  std::uint64_t bits = 0;      ///< decoded from text
  std::int64_t offset = 0;     ///< decoded from offset_text
  std::string offset_text;     ///< printed: `+4`, `-8`, `+-8`, or `[2]` of `sym[2]`; kSymbol, kAddress, kRegister
  std::vector<Operand> items;  ///< printed
};

struct Guard {
  std::string reg;
  bool negated = false;
};

/// `@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+8];`
struct Instruction {
  std::optional<Guard> guard;
  std::string opcode;                  ///< `ld`
  std::vector<std::string> modifiers;  ///< `global`, `v2`, `u32`
  std::vector<Operand> operands;
  std::uint32_t line = 0;  ///< in the text it came from; 0 when made by a pass

  bool has(std::string_view modifier) const {
    for (const std::string& m : modifiers) {
      if (m == modifier) return true;
    }
    return false;
  }
};

struct Label {
  std::string name;
  std::uint32_t line = 0;
};

/// A directive kept as its tokens: `.loc 1 2 3`, `.pragma "nounroll";`, `.branchtargets a, b;`, `.callprototype ...;`,
/// `.file`, `.section name { ... }`, `.maxntid 256, 1, 1`. tokens[0] is its name with the dot; a closing `;` is a
/// token.
struct Directive {
  std::vector<std::string> tokens;
  std::uint32_t line = 0;

  std::string_view name() const { return tokens.front(); }
};

/// One value of an initializer: a list, or a scalar kept as written.
struct Initializer {
  enum class Kind : std::uint8_t { kNumber, kFloat, kSymbol, kString, kList, kOther };
  Kind kind = Kind::kOther;
  bool generic = false;             ///< `generic(symbol)`
  std::uint8_t width = 0;           ///< kFloat: 32 or 64
  std::uint64_t bits = 0;           ///< kNumber, kFloat
  std::int64_t offset = 0;          ///< kSymbol: `symbol+offset`
  std::uint64_t mask = 0;           ///< kSymbol: of `0xff00(symbol)`; 0 = whole address
  std::string symbol;               ///< kSymbol
  std::vector<std::string> tokens;  ///< printed, unless kList
  std::vector<Initializer> items;   ///< kList
};

struct Declarator {
  std::string name;
  std::optional<std::uint32_t> range;              ///< `%r<36>`: registers %r0 to %r35
  std::vector<std::optional<std::uint64_t>> dims;  ///< `[4][]`: 4, nothing
  std::string shape_text;                          ///< range and dims as written; empty: printed as numbers
  std::optional<Initializer> init;
};

/// `.visible .global .align 8 .u64 a[2] = {1, 2}, b;`; also .reg, .local, .shared, .const, .param, parameters, and
/// .tex.
struct Variable {
  std::vector<std::string> specifiers;  ///< printed: every token before the first name
  std::vector<Declarator> names;        ///< printed; one for a parameter
  // Decoded from specifiers by decode_specifiers():
  std::string space;         ///< `global`, `reg`, ... without the dot
  std::string type;          ///< `u32`, `b8`, `pred`, `texref`, ... without the dot
  std::uint32_t vector = 1;  ///< 2, 4, 8 for .v2, .v4, .v8
  std::uint32_t align = 0;   ///< bytes, of .align; 0 when not given
  bool is_extern = false;
  std::uint32_t line = 0;
};

struct Scope;
using Statement = std::variant<Label, Instruction, Variable, Scope, Directive>;

/// `{ ... }`: names declared inside are not known outside.
struct Scope {
  std::vector<Statement> body;
  std::uint32_t line = 0;
};

struct Function {
  std::vector<std::string> linkage;  ///< printed before .entry/.func: `.visible`, `.weak`, `.extern`
  bool is_entry = false;
  std::vector<std::string> attributes;  ///< printed after .func: `.attribute`, `(`, ..., `)`
  std::string name;
  bool has_returns = false;  ///< a (possibly empty) list of return parameters is written
  std::vector<Variable> returns;
  bool has_params = false;  ///< a (possibly empty) parameter list is written
  std::vector<Variable> params;
  std::vector<Directive> directives;           ///< .maxntid, .minnctapersm, .noreturn, .pragma, ...
  std::optional<std::vector<Statement>> body;  ///< none: a prototype
  std::uint32_t line = 0;
};

using Item = std::variant<Variable, Function, Directive>;

struct Module {
  std::string version;               ///< `9.0`
  std::vector<std::string> targets;  ///< `sm_90a`, `debug`, `texmode_independent`
  std::string address_size;          ///< `64`; empty when not written
  std::vector<Item> items;           ///< in order
};

/// Size in bytes of one element of a type without its dot (`u32` -> 4, `f16x2` -> 4, `b128` -> 16); `pred`, `texref`
/// and unknown types: 0.
std::uint32_t type_bytes(std::string_view type);

/// Bytes of one declared variable (its vector width and dimensions included); nothing when a dimension is open.
std::optional<std::uint64_t> variable_bytes(const Variable& variable, const Declarator& name);

/// The alignment in bytes of a variable: what is written, else that of its type and vector width.
std::uint32_t variable_align(const Variable& variable);

/// Fills the decoded fields of `variable` from its specifiers.
void decode_specifiers(Variable& variable);

/// True for `%tid`, `%ctaid` and the other predefined registers, `%envreg3` and `%pm0` included.
bool is_special_register(std::string_view name);

}  // namespace gpuctl::ptx
