#include "softgpu/decode/decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

namespace gpuctl::softgpu::engine {
namespace {

constexpr std::uint32_t kUnplaced = 0xffffffff;

/// Converts "u32" to kU32. Nothing if the engine does not know the type.
std::optional<Type> type_from(std::string_view name) {
  static constexpr std::pair<std::string_view, Type> kTypes[] = {
      {"pred", Type::kPred},   {"u8", Type::kU8},       {"u16", Type::kU16},       {"u32", Type::kU32},
      {"u64", Type::kU64},     {"s8", Type::kS8},       {"s16", Type::kS16},       {"s32", Type::kS32},
      {"s64", Type::kS64},     {"b8", Type::kB8},       {"b16", Type::kB16},       {"b32", Type::kB32},
      {"b64", Type::kB64},     {"f16", Type::kF16},     {"bf16", Type::kBf16},     {"f32", Type::kF32},
      {"f64", Type::kF64},     {"f16x2", Type::kF16x2}, {"bf16x2", Type::kBf16x2}, {"u16x2", Type::kU16x2},
      {"s16x2", Type::kS16x2},
  };
  for (const auto& [text, type] : kTypes)
    if (text == name) return type;
  return std::nullopt;
}

Type register_type(const std::string& type) {
  if (type == "pred") return Type::kPred;
  switch (ptx::type_bytes(type)) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    case 8:
      return Type::kB64;
    default:
      return Type::kNone;
  }
}

std::string text_of(const ptx::Instruction& s) {
  std::string text = s.opcode;
  for (const std::string& m : s.modifiers) text += "." + m;
  return text;
}

}  // namespace

bool Modifiers::take(std::string_view word) {
  const auto found = std::find(words_.begin(), words_.end(), word);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}
int Modifiers::take_one(std::initializer_list<std::string_view> words) {
  int index = 0;
  for (const std::string_view word : words) {
    if (take(word)) return index;
    ++index;
  }
  return -1;
}
void Modifiers::take_starting(std::string_view prefix) {
  std::erase_if(words_, [&](std::string_view word) { return word.starts_with(prefix); });
}
Type Modifiers::take_type() {
  for (auto word = words_.begin(); word != words_.end(); ++word) {
    if (const std::optional<Type> type = type_from(*word)) {
      words_.erase(word);
      return *type;
    }
  }
  return Type::kNone;
}

Decoder::Decoder(const ptx::Function& source, Function& function, const ModuleSymbols& symbols, ConstantPool& pool,
                 Program::Impl& program)
    : source_(source), function_(function), symbols_(symbols), pool_(pool), program_(program) {}

std::vector<Instruction> Decoder::run() {
  const std::uint32_t own = symbols_.own_end(function_.name);
  shared_end_ = own != 0 ? own : symbols_.common_end();
  scopes_.emplace_back();
  declare_formals();
  decode_body(*source_.body);
  guard_ = kNoOperand;
  Instruction& last = emit(Handler{});
  last.kind = function_.entry ? Kind::kExit : Kind::kReturn;
  for (Instruction& in : code_) {
    if (in.kind != Kind::kBranch) continue;
    if (labels_[in.target] == kUnplaced) throw DecodeError{in.line, "branch to a label that is not there"};
    in.target = labels_[in.target];
  }
  for (const std::uint32_t table : tables_)
    for (std::uint32_t& entry : program_.branch_tables[table]) entry = labels_[entry];
  function_.register_bytes = round_up(register_end_, kRegisterAlign);
  function_.local_bytes = round_up(local_end_, kLocalAlign);
  return std::move(code_);
}

// Names.

void Decoder::declare_formals() {
  if (function_.entry) {
    std::uint32_t offset = 0;
    for (const ptx::Variable& variable : source_.params) {
      const ptx::Declarator& name = variable.names.front();
      const std::optional<std::uint64_t> size = ptx::variable_bytes(variable, name);
      if (!size) throw DecodeError{variable.line, "parameter " + name.name + " has no size"};
      offset = round_up(offset, ptx::variable_align(variable));
      scopes_.back()[name.name] = {Name::Kind::kKernelParam, Type::kNone, offset, static_cast<std::uint32_t>(*size),
                                   nullptr};
      offset += static_cast<std::uint32_t>(*size);
    }
    return;
  }
  for (const ptx::Variable& variable : source_.returns) function_.results.push_back(formal_place(variable));
  for (const ptx::Variable& variable : source_.params) function_.parameters.push_back(formal_place(variable));
}

Place Decoder::formal_place(const ptx::Variable& variable) {
  const ptx::Declarator& name = variable.names.front();
  Place place;
  if (variable.space == "reg") {
    const Type type = register_type(variable.type);
    if (type == Type::kNone) throw DecodeError{variable.line, "register type " + variable.type + " is not supported"};
    declare_register(name.name, type);
    place.in_register = true;
    place.reg = scopes_.back()[name.name].offset;
    place.size = size_of(type);
    return place;
  }
  const std::optional<std::uint64_t> size = ptx::variable_bytes(variable, name);
  if (!size) throw DecodeError{variable.line, "parameter " + name.name + " has no size"};
  place.offset = place_in_frame(*size, ptx::variable_align(variable));
  place.size = static_cast<std::uint32_t>(*size);
  scopes_.back()[name.name] = {Name::Kind::kFrameParam, Type::kNone, place.offset, place.size, nullptr};
  return place;
}

std::uint32_t Decoder::place_in_frame(std::uint64_t size, std::uint32_t align) {
  // Frames are kLocalAlign aligned; a greater alignment would have to be kept across calls.
  local_end_ = round_up(local_end_, std::min(align, kLocalAlign));
  const std::uint32_t offset = local_end_;
  if (size > (1u << 24))
    throw DecodeError{source_.line, "a local variable of " + std::to_string(size) + " bytes is too large"};
  local_end_ += static_cast<std::uint32_t>(size);
  return offset;
}

void Decoder::declare_register(const std::string& name, Type type) {
  const std::uint32_t bytes = type == Type::kPred ? 4 : type == Type::kB64 ? kSlot64 : kSlot32;
  if (bytes > 4) register_end_ = round_up(register_end_, kRegisterAlign);
  if (register_end_ > (1u << 29)) throw DecodeError{source_.line, "too many registers"};
  scopes_.back()[name] = {Name::Kind::kRegister, type, operand_ref(Base::kFrame, register_end_), size_of(type),
                          nullptr};
  register_end_ += bytes;
  if (type != Type::kPred) registers_.push_back({scopes_.back()[name].offset, type == Type::kB64 ? 2u : 1u});
}

void Decoder::declare(const ptx::Variable& variable) {
  for (const ptx::Declarator& name : variable.names) {
    if (variable.space == "reg") {
      const Type type = register_type(variable.type);
      if (type == Type::kNone || variable.vector > 4)
        throw DecodeError{variable.line, "register " + name.name + " has a type that is not supported"};
      const auto declare_one = [&](const std::string& one) {
        if (variable.vector == 1) declare_register(one, type);
        for (std::uint32_t k = 0; variable.vector > 1 && k < variable.vector; ++k)
          declare_register(one + "." + kComponents[k], type);
      };
      if (!name.range) declare_one(name.name);
      for (std::uint32_t i = 0; name.range && i < *name.range; ++i) declare_one(name.name + std::to_string(i));
      continue;
    }
    const std::optional<std::uint64_t> size = ptx::variable_bytes(variable, name);
    Name entry;
    if (variable.space == "shared" && (variable.is_extern || !size)) {
      entry.kind = Name::Kind::kDynamicShared;
    } else if (!size) {
      throw DecodeError{variable.line, "variable " + name.name + " has no size"};
    } else if (variable.space == "shared") {
      entry = {Name::Kind::kShared, Type::kNone, round_up(shared_end_, ptx::variable_align(variable)),
               static_cast<std::uint32_t>(*size), nullptr};
      shared_end_ = entry.offset + entry.size;
    } else if (variable.space == "local" || variable.space == "param") {
      entry = {variable.space == "local" ? Name::Kind::kFrame : Name::Kind::kFrameParam, Type::kNone,
               place_in_frame(*size, ptx::variable_align(variable)), static_cast<std::uint32_t>(*size), nullptr};
    } else {
      throw DecodeError{variable.line, "variable " + name.name + " in a space that is not supported here"};
    }
    scopes_.back()[name.name] = entry;
  }
}

void Decoder::declare_labels(const std::vector<ptx::Statement>& body) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const auto* label = std::get_if<ptx::Label>(&body[i]);
    if (label == nullptr) continue;
    Name entry;
    entry.kind = Name::Kind::kLabel;
    const auto* directive = i + 1 < body.size() ? std::get_if<ptx::Directive>(&body[i + 1]) : nullptr;
    if (directive != nullptr && directive->name() == ".branchtargets") {
      entry.kind = Name::Kind::kBranchTargets;
      entry.tokens = &directive->tokens;
    } else if (directive != nullptr && (directive->name() == ".callprototype" || directive->name() == ".calltargets")) {
      entry.kind = Name::Kind::kOther;
    } else {
      entry.offset = static_cast<std::uint32_t>(labels_.size());
      labels_.push_back(kUnplaced);
    }
    scopes_.back()[label->name] = entry;
  }
}

void Decoder::decode_body(const std::vector<ptx::Statement>& body) {
  declare_labels(body);
  for (const ptx::Statement& statement : body) {
    if (const auto* label = std::get_if<ptx::Label>(&statement)) {
      const Name* name = find(label->name);
      if (name->kind == Name::Kind::kLabel) labels_[name->offset] = static_cast<std::uint32_t>(code_.size());
    } else if (const auto* instruction = std::get_if<ptx::Instruction>(&statement)) {
      decode(*instruction);
    } else if (const auto* variable = std::get_if<ptx::Variable>(&statement)) {
      declare(*variable);
    } else if (const auto* scope = std::get_if<ptx::Scope>(&statement)) {
      scopes_.emplace_back();
      decode_body(scope->body);
      scopes_.pop_back();
    }
  }
}

const Decoder::Name* Decoder::find(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return &found->second;
  return nullptr;
}

std::uint32_t Decoder::label(const Operand& operand) const {
  const Name* name = find(operand.text);
  if (name == nullptr || name->kind != Name::Kind::kLabel) reject("no label " + operand.text);
  return name->offset;
}

// One instruction.

void Decoder::reject(const std::string& why) const {
  throw DecodeError{current_->line, "`" + text_of(*current_) + "`: " + why};
}

void Decoder::expect_operands(const Statement& s, std::size_t least, std::size_t most) const {
  require(s.operands.size() >= least && s.operands.size() <= most, "wrong number of operands");
}

void Decoder::finish(const Modifiers& m) const {
  if (!m.empty()) reject("modifier ." + std::string(m.first()) + " is not supported");
}

void Decoder::decode(const Statement& s) {
  current_ = &s;
  used32_ = used64_ = 0;
  pending_.clear();
  guard_ = kNoOperand;
  if (s.guard) {
    const Name* name = find(s.guard->reg);
    require(name != nullptr && name->kind == Name::Kind::kRegister && name->type == Type::kPred,
            "the guard is no predicate");
    guard_ = name->offset;
    guard_negated_ = s.guard->negated;
  }
  const auto found = table().find(s.opcode);
  if (found == table().end()) unsupported();
  (this->*found->second)(s);
  for (const Widening& w : pending_) emit_copy(w.sign ? Op::kWidenSigned : Op::kWiden, Type::kB64, w.to, w.from);
}

Instruction& Decoder::emit(Handler handler) {
  Instruction in;
  in.handler = handler;
  in.line = current_ == nullptr ? source_.line : current_->line;
  in.guard = guard_;
  if (guard_ != kNoOperand && guard_negated_) in.flags |= kNegateGuard;
  code_.push_back(in);
  return code_.back();
}

Instruction& Decoder::emit(const Selector& selector) {
  const Handler handler = select_handler(selector);
  if (handler == nullptr) unsupported();
  Instruction& in = emit(handler);
  in.round = selector.round;
  in.compare = selector.compare;
  return in;
}

void Decoder::emit_copy(Op op, Type type, OperandRef to, OperandRef from) {
  Instruction& in = emit(Selector{.op = op, .type = type});
  in.op[0] = to;
  in.op[1] = from;
}

}  // namespace gpuctl::softgpu::engine
