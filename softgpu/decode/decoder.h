// Turns the statements of one PTX function into Instructions.
//
// decoder.cc has names, labels and emission; decode_operands.cc has the operands. The members for instructions are in
// decode_*.cc by family; decode_table.cc says which member reads which opcode. All of them throw DecodeError.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/decode/live_registers.h"
#include "softgpu/decode/module_symbols.h"
#include "softgpu/engine/isa/select.h"

namespace gpuctl::softgpu::engine {

/// The components of vector registers and of %tid.
inline constexpr char kComponents[] = "xyzw";

/// The words after an opcode, taken one after the other. A word that no decoder takes is not supported.
class Modifiers {
 public:
  explicit Modifiers(const ptx::Instruction& s) : words_(s.modifiers.begin(), s.modifiers.end()) {}
  bool take(std::string_view word);
  /// Takes the first of `words` that is present and returns its index, or -1.
  int take_one(std::initializer_list<std::string_view> words);
  void take_starting(std::string_view prefix);
  /// The next type in order, or kNone.
  Type take_type();
  bool empty() const { return words_.empty(); }
  std::string_view first() const { return words_.front(); }

 private:
  std::vector<std::string_view> words_;
};

class Decoder {
 public:
  Decoder(const ptx::Function& source, Function& function, const ModuleSymbols& symbols, ConstantPool& pool,
          Program::Impl& program);

  /// The instructions, with targets relative to the first one. Fills the Function, except its place in the program.
  std::vector<Instruction> run();

  /// End of the shared memory of the function's own variables, which begins at `shared_start`.
  std::uint32_t shared_end() const { return shared_end_; }
  /// An estimate of the 32-bit registers that a thread needs at once: see live_registers().
  std::uint32_t live_words(const std::vector<Instruction>& code) const { return live_registers(code, registers_); }
  /// Branch tables added to the program, whose entries are still relative.
  const std::vector<std::uint32_t>& tables() const { return tables_; }

 private:
  using Operand = ptx::Operand;
  using Statement = ptx::Instruction;
  using Member = void (Decoder::*)(const Statement&);

  struct Name {
    enum class Kind {
      kRegister,
      kShared,
      kDynamicShared,
      kFrame,
      kFrameParam,
      kKernelParam,
      kLabel,
      kBranchTargets,
      kOther
    };
    Kind kind = Kind::kOther;
    Type type = Type::kNone;   // of a register: kPred, or the untyped type of its size
    std::uint32_t offset = 0;  // register: its OperandRef; label: its number; else its offset in its space
    std::uint32_t size = 0;    // bytes
    const std::vector<std::string>* tokens = nullptr;  // kBranchTargets
  };
  using Names = std::unordered_map<std::string, Name>;

  static const std::unordered_map<std::string_view, Member>& table();

  // decoder.cc
  void declare_formals();
  Place formal_place(const ptx::Variable& variable);
  void declare(const ptx::Variable& variable);
  void declare_register(const std::string& name, Type type);
  std::uint32_t place_in_frame(std::uint64_t size, std::uint32_t align);
  void declare_labels(const std::vector<ptx::Statement>& body);
  void decode_body(const std::vector<ptx::Statement>& body);
  void decode(const Statement& s);
  const Name* find(const std::string& name) const;
  std::uint32_t label(const Operand& operand) const;

  [[noreturn]] void reject(const std::string& why) const;
  [[noreturn]] void unsupported() const { reject("not supported"); }
  void require(bool condition, const char* why) const {
    if (!condition) reject(why);
  }
  void expect_operands(const Statement& s, std::size_t least, std::size_t most) const;
  void finish(const Modifiers& m) const;

  /// A reference to the operand's value, in a register as wide as the type needs. May emit instructions.
  OperandRef source(const Operand& operand, Type type);
  OperandRef symbol_value(const Operand& operand, Type type);
  OperandRef special(const Operand& operand, Type type);
  OperandRef immediate(const Operand& operand, Type type);
  OperandRef predicate(const Operand& operand);
  /// The destination of a result of that type. The result is extended after the instruction if the register is wider.
  /// `_` is allowed too.
  OperandRef destination(const Operand& operand, Type type);
  /// `p`, `p|q`, `r|p`: the first or second of the pair; kNoOperand for a sink or none.
  const Operand* paired(const Operand& operand, std::size_t index) const;
  OperandRef predicate_destination(const Operand* operand);
  /// The elements of `{a, b}`, of a vector register, or of `%tid`.
  std::vector<Operand> elements(const Operand& operand, std::size_t count) const;
  const Name& register_of(const Operand& operand) const;
  OperandRef scratch(unsigned bytes);
  /// Fills op[at], imm, space and flags from `[base+offset]`. An absent space is generic.
  void address(const Operand& operand, Instruction& in, int at, std::string_view space);

  Instruction& emit(Handler handler);
  Instruction& emit(const Selector& selector);
  void emit_copy(Op op, Type type, OperandRef to, OperandRef from);

  // decode_arithmetic.cc
  void arithmetic(const Statement& s);
  void arithmetic_integer(const Statement& s, Modifiers& m, Type type);
  void arithmetic_float(const Statement& s, Modifiers& m, Type type);
  void carry_chain(const Statement& s);
  void logic(const Statement& s);
  void shift(const Statement& s);
  void funnel_shift(const Statement& s);
  void lop3(const Statement& s);
  void prmt(const Statement& s);
  void bit_field(const Statement& s);
  void bit_count(const Statement& s);
  void dot_product(const Statement& s);
  void approximate(const Statement& s);
  void simple(const Selector& selector, const Statement& s, std::initializer_list<Type> types);

  // decode_compare.cc
  void setp(const Statement& s);
  void set(const Statement& s);
  void comparison(const Statement& s, Modifiers& m, Instruction& in, Selector& selector);
  void selp(const Statement& s);
  void slct(const Statement& s);
  void testp(const Statement& s);
  void cvt(const Statement& s);

  // decode_memory.cc
  void mov(const Statement& s);
  void load_store(const Statement& s);
  void atom(const Statement& s);
  void cvta(const Statement& s);
  void isspacep(const Statement& s);
  void fence(const Statement& s);
  void ignore(const Statement& s);
  void create_policy(const Statement& s);
  void copy_async(const Statement& s);

  // decode_control.cc
  void branch(const Statement& s);
  void branch_indexed(const Statement& s);
  void leave(const Statement& s);
  void call(const Statement& s);
  void arguments(const Operand& list, std::vector<Place>& places, const std::vector<Place>* formals, bool results);
  void trap(const Statement& s);
  void nanosleep(const Statement& s);
  void barrier(const Statement& s);
  void warp_sync(const Statement& s);
  void shuffle(const Statement& s);
  void vote(const Statement& s);
  void match(const Statement& s);
  void redux(const Statement& s);
  void elect(const Statement& s);
  void activemask(const Statement& s);

  const ptx::Function& source_;
  Function& function_;
  const ModuleSymbols& symbols_;
  ConstantPool& pool_;
  Program::Impl& program_;
  std::vector<Instruction> code_;
  std::vector<Names> scopes_;
  std::vector<std::uint32_t> labels_;  // instruction index by label number
  std::vector<std::uint32_t> tables_;
  std::uint32_t register_end_ = 0;
  std::uint32_t local_end_ = 0;
  std::uint32_t shared_end_ = 0;
  std::vector<RegisterUse> registers_;

  struct Widening {
    OperandRef to, from;
    bool sign;
  };
  const Statement* current_ = nullptr;
  OperandRef guard_ = kNoOperand;
  bool guard_negated_ = false;
  std::int64_t variable_begin_ = 0, variable_end_ = 0;  // of the variable the last address() named
  std::vector<Widening> pending_;
  std::vector<OperandRef> scratch32_, scratch64_;
  std::size_t used32_ = 0, used64_ = 0;
};

}  // namespace gpuctl::softgpu::engine
