// Operands of the decoder: the sources of values, the destinations of results, and addresses.
#include <optional>

#include "softgpu/decode/decoder.h"

namespace gpuctl::softgpu::engine {

OperandRef Decoder::scratch(unsigned bytes) {
  const bool wide = bytes == 8;
  auto& slots = wide ? scratch64_ : scratch32_;
  std::size_t& used = wide ? used64_ : used32_;
  if (used == slots.size()) {
    register_end_ = round_up(register_end_, kRegisterAlign);
    slots.push_back(operand_ref(Base::kFrame, register_end_));
    register_end_ += wide ? kSlot64 : kSlot32;
  }
  return slots[used++];
}

OperandRef Decoder::source(const Operand& operand, Type type) {
  if (type == Type::kPred) return predicate(operand);
  const unsigned bytes = size_of(type);
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Name& name = register_of(operand);
      if ((name.size == 8) == (bytes == 8)) return name.offset;
      require(name.size == 8, "register is narrower than the type");
      const OperandRef narrow = scratch(4);
      emit_copy(Op::kNarrow, Type::kB32, narrow, name.offset);
      return narrow;
    }
    case Operand::Kind::kImmediate:
    case Operand::Kind::kFloatImmediate:
      return immediate(operand, type);
    case Operand::Kind::kSpecial:
      return special(operand, type);
    case Operand::Kind::kSymbol:
      return symbol_value(operand, type);
    case Operand::Kind::kNegated: {
      require(operand.text == "-", "a negated predicate where a value is needed");
      const OperandRef value = source(operand.items.front(), type);
      const OperandRef result = scratch(bytes);
      emit_copy(Op::kNeg, type, result, value);
      return result;
    }
    default:
      reject("operand of a kind that is not supported here");
  }
}

OperandRef Decoder::immediate(const Operand& operand, Type type) {
  std::uint64_t bits = operand.bits;
  if (operand.kind == Operand::Kind::kFloatImmediate && operand.width != 0) {
    if (type == Type::kF32 && operand.width == 64)
      bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(__builtin_bit_cast(double, bits)));
    else if (type == Type::kF64 && operand.width == 32)
      bits = __builtin_bit_cast(std::uint64_t,
                                static_cast<double>(__builtin_bit_cast(float, static_cast<std::uint32_t>(bits))));
  }
  return size_of(type) == 8 ? pool_.word64(bits) : pool_.word32(static_cast<std::uint32_t>(bits));
}

OperandRef Decoder::special(const Operand& operand, Type type) {
  const std::string& name = operand.text;
  const bool wide = size_of(type) == 8;
  const auto clock = [&](Op op, Type width) {
    const OperandRef result = scratch(size_of(width));
    Instruction& in = emit(Selector{.op = op, .type = width});
    in.op[0] = result;
    return result;
  };
  const auto fit = [&](OperandRef value, bool value_wide) {
    if (wide == value_wide) return value;
    const OperandRef result = scratch(wide ? 8 : 4);
    emit_copy(wide ? Op::kWiden : Op::kNarrow, wide ? Type::kB64 : Type::kB32, result, value);
    return result;
  };
  if (name == "%clock64" || name == "%globaltimer") return fit(clock(Op::kClock, Type::kB64), true);
  if (name == "%clock" || name == "%globaltimer_lo") return fit(clock(Op::kClock, Type::kB32), false);
  if (name == "%clock_hi" || name == "%globaltimer_hi") return fit(clock(Op::kClockHigh, Type::kB32), false);
  if (name == "%gridid") return fit(operand_ref(Base::kSpecial, kGridIdOffset), true);
  if (name == "WARP_SZ") return wide ? pool_.word64(kLanes) : pool_.word32(kLanes);
  if (name.starts_with("%envreg") || name.starts_with("%pm") || name == "%is_explicit_cluster")
    return wide ? pool_.word64(0) : pool_.word32(0);

  static const auto& kVectors = *new std::unordered_map<std::string_view, Special>{
      {"%tid", kTidX}, {"%ntid", kNtidX}, {"%ctaid", kCtaidX}, {"%nctaid", kNctaidX}};
  static const auto& kScalars =
      *new std::unordered_map<std::string_view, Special>{{"%laneid", kLaneId},
                                                         {"%warpid", kWarpId},
                                                         {"%nwarpid", kNwarpId},
                                                         {"%smid", kSmId},
                                                         {"%nsmid", kNsmId},
                                                         {"%lanemask_eq", kLanemaskEq},
                                                         {"%lanemask_lt", kLanemaskLt},
                                                         {"%lanemask_le", kLanemaskLe},
                                                         {"%lanemask_gt", kLanemaskGt},
                                                         {"%lanemask_ge", kLanemaskGe},
                                                         {"%dynamic_smem_size", kDynamicSmemSize},
                                                         {"%total_smem_size", kTotalSmemSize},
                                                         {"%aggr_smem_size", kTotalSmemSize}};
  std::uint32_t index = 0;
  if (const auto vector = kVectors.find(name); vector != kVectors.end() && operand.component.size() == 1) {
    const std::size_t axis = std::string_view("xyzw").find(operand.component);
    require(axis != std::string_view::npos, "no such component");
    if (axis == 3) return wide ? pool_.word64(0) : pool_.word32(0);
    index = vector->second + static_cast<std::uint32_t>(axis);
  } else if (const auto scalar = kScalars.find(name); scalar != kScalars.end() && operand.component.empty()) {
    index = scalar->second;
  } else {
    reject("special register " + name + " is not supported");
  }
  return fit(operand_ref(Base::kSpecial, index * kSlot32), false);
}

OperandRef Decoder::symbol_value(const Operand& operand, Type type) {
  const bool wide = size_of(type) == 8;
  const auto constant = [&](std::uint64_t value) {
    value += static_cast<std::uint64_t>(operand.offset);
    return wide ? pool_.word64(value) : pool_.word32(static_cast<std::uint32_t>(value));
  };
  const auto dynamic = [&] {
    OperandRef base = operand_ref(Base::kSpecial, kDynamicSmemOffset * kSlot32);
    if (operand.offset != 0) {
      const OperandRef sum = scratch(4);
      Instruction& in = emit(Selector{.op = Op::kAdd, .type = Type::kU32});
      in.op[0] = sum, in.op[1] = base, in.op[2] = pool_.word32(static_cast<std::uint32_t>(operand.offset));
      base = sum;
    }
    if (!wide) return base;
    const OperandRef result = scratch(8);
    emit_copy(Op::kWiden, Type::kB64, result, base);
    return result;
  };
  const auto computed = [&](Op op, std::int64_t offset) {
    const OperandRef result = scratch(8);
    Instruction& in = emit(Selector{.op = op, .type = Type::kB64});
    in.op[0] = result;
    in.imm = offset + operand.offset;
    if (wide) return result;
    const OperandRef narrow = scratch(4);
    emit_copy(Op::kNarrow, Type::kB32, narrow, result);
    return narrow;
  };
  if (const Name* name = find(operand.text)) {
    switch (name->kind) {
      case Name::Kind::kShared:
        return constant(name->offset);
      case Name::Kind::kDynamicShared:
        return dynamic();
      case Name::Kind::kFrame:
        return computed(Op::kFrameOffset, name->offset);
      case Name::Kind::kFrameParam:
        return computed(Op::kFrameAddress, name->offset);
      case Name::Kind::kKernelParam:
        return computed(Op::kParamAddress, name->offset);
      default:
        reject(operand.text + " has no value");
    }
  }
  if (const Symbol* symbol = symbols_.variable(operand.text)) return constant(symbol->address);
  if (const std::optional<SharedVariable> shared = symbols_.shared(operand.text, function_.name)) {
    function_.uses_shared = true;
    return shared->dynamic ? dynamic() : constant(shared->offset);
  }
  if (Function* function = symbols_.function(operand.text)) {
    function->address_taken = true;
    return constant(ModuleSymbols::address_of(*function));
  }
  reject("unknown symbol " + operand.text);
}

OperandRef Decoder::predicate(const Operand& operand) {
  if (operand.kind == Operand::Kind::kImmediate) return pool_.predicate(operand.bits != 0);
  if (operand.kind == Operand::Kind::kNegated) {
    const OperandRef result = scratch(4);
    emit_copy(Op::kNot, Type::kPred, result, predicate(operand.items.front()));
    return result;
  }
  require(operand.kind == Operand::Kind::kRegister, "a predicate is needed");
  const Name* name = find(operand.text);
  require(name != nullptr && name->kind == Name::Kind::kRegister && name->type == Type::kPred, "a predicate is needed");
  return name->offset;
}

OperandRef Decoder::destination(const Operand& operand, Type type) {
  if (type == Type::kPred) return predicate_destination(&operand);
  const bool wide = size_of(type) == 8;
  if (operand.kind == Operand::Kind::kSink) return scratch(wide ? 8 : 4);
  require(operand.kind == Operand::Kind::kRegister, "the result needs a register");
  const Name& name = register_of(operand);
  if ((name.size == 8) == wide) return name.offset;
  require(name.size == 8, "register is narrower than the type");
  const OperandRef narrow = scratch(4);
  pending_.push_back({name.offset, narrow, is_signed(type)});
  return narrow;
}

const Decoder::Name& Decoder::register_of(const Operand& operand) const {
  require(operand.offset_text.empty(), "a register with a number added to it");
  const Name* name = find(operand.component.empty() ? operand.text : operand.text + "." + operand.component);
  require(name != nullptr && name->kind == Name::Kind::kRegister, "unknown register");
  require(name->type != Type::kPred, "a predicate where a value is needed");
  return *name;
}

std::vector<ptx::Operand> Decoder::elements(const Operand& operand, std::size_t count) const {
  std::vector<Operand> result = operand.items;
  if (operand.kind != Operand::Kind::kVector) {
    const bool whole = operand.kind == Operand::Kind::kRegister || operand.kind == Operand::Kind::kSpecial;
    require(whole && operand.component.empty(), "a vector is needed");
    result.assign(count, operand);
    for (std::size_t k = 0; k < count; ++k) result[k].component = kComponents[k];
  }
  require(result.size() == count, "wrong number of vector elements");
  return result;
}

const ptx::Operand* Decoder::paired(const Operand& operand, std::size_t index) const {
  if (operand.kind == Operand::Kind::kPredicatePair) return &operand.items[index];
  return index == 0 ? &operand : nullptr;
}

OperandRef Decoder::predicate_destination(const Operand* operand) {
  if (operand == nullptr || operand->kind == Operand::Kind::kSink) return kNoOperand;
  require(operand->kind == Operand::Kind::kRegister, "a predicate is needed");
  return predicate(*operand);
}

void Decoder::address(const Operand& operand, Instruction& in, int at, std::string_view space) {
  require(operand.kind == Operand::Kind::kAddress && operand.items.size() == 1, "an address is needed");
  const Operand& base = operand.items.front();
  in.imm = operand.offset + base.offset;
  const bool shared = space.starts_with("shared"), local = space == "local";
  in.space = shared ? Space::kShared : local ? Space::kLocal : Space::kGlobal;
  if (base.kind == Operand::Kind::kSymbol) {
    Operand plain = base;
    plain.offset = 0;
    const Name* name = find(base.text);
    const bool frame = name != nullptr && (name->kind == Name::Kind::kFrame || name->kind == Name::Kind::kFrameParam);
    const bool param = name != nullptr && name->kind == Name::Kind::kKernelParam;
    if (frame || param) {
      require(space.starts_with("param") || (local && frame), "the variable is not in that state space");
      in.space = frame ? Space::kFrame : Space::kParam;
      in.imm += name->offset;
      variable_begin_ = name->offset;
      variable_end_ = variable_begin_ + name->size;
      return;
    }
    const bool in_shared =
        (name != nullptr && (name->kind == Name::Kind::kShared || name->kind == Name::Kind::kDynamicShared)) ||
        (name == nullptr && symbols_.shared(base.text, function_.name).has_value());
    require(in_shared == shared, "the variable is not in that state space");
    in.op[at] = source(plain, shared ? Type::kB32 : Type::kB64);
    if (shared) in.flags |= kAddress32;
    return;
  }
  if (base.kind == Operand::Kind::kRegister) {
    const Name* name = find(base.text);
    require(name != nullptr && name->kind == Name::Kind::kRegister && name->type != Type::kPred, "unknown register");
    in.op[at] = name->offset;
    if (name->size != 8) in.flags |= kAddress32;
    return;
  }
  in.op[at] = source(base, Type::kB64);
}

}  // namespace gpuctl::softgpu::engine
