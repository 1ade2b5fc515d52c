#include "ptx/analysis/memory_use.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

bool has_one(const Instruction& instruction, std::initializer_list<std::string_view> modifiers) {
  return std::any_of(modifiers.begin(), modifiers.end(), [&](std::string_view m) { return instruction.has(m); });
}

bool in_block(const Instruction& instruction) {
  return has_one(instruction, {"shared", "shared::cta", "shared::cluster", "local"});
}

/// Its modifiers say first where to, then where from.
std::uint16_t use_of_copy(const Instruction& copy) {
  if (address_of(copy) == nullptr) return 0;
  const auto& all = copy.modifiers;
  const auto to_global = std::find(all.begin(), all.end(), "global");
  const bool from_block =
      std::any_of(to_global, all.end(), [](const std::string& m) { return m.starts_with("shared"); });
  if (from_block) return kStores | kStoresGlobal;
  return kStores | (to_global != all.end() ? kReadsPlain : 0);
}

std::uint16_t use_of_load(const Instruction& load) {
  if (has_one(load, {"shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func",
                     "const", "nc"}))
    return 0;
  if (has_one(load, {"volatile", "relaxed", "acquire", "mmio", "cv"})) return kReadsMarked;
  return has_one(load, {"cg", "cs", "lu", "L1::no_allocate"}) ? kReadsHinted : kReadsPlain;
}

std::uint16_t use_of_atomic(const Instruction& atomic) {
  if (has_one(atomic, {"shared", "shared::cta"})) return kStores;
  const bool adds = has_one(atomic, {"add", "inc", "dec"}) && atomic.operands.size() > 2;
  const bool counts = adds && atomic.operands[2].kind == Operand::Kind::kImmediate && atomic.operands[2].bits != 0;
  return kStores | kStoresGlobal | (counts ? kCounts : kSwaps);
}

}  // namespace

std::uint16_t memory_use(const Instruction& instruction) {
  const std::string& opcode = instruction.opcode;
  if (opcode == "ld") return use_of_load(instruction);
  if (opcode == "atom") return use_of_atomic(instruction);
  if (opcode == "ldu" || opcode == "suld") return kReadsPlain;
  if (opcode == "cp") return use_of_copy(instruction);
  if (opcode == "st" && has_one(instruction, {"param", "param::func"})) return 0;
  if (opcode == "st" || opcode == "red" || opcode == "sust" || opcode == "sured" || opcode == "stmatrix")
    return kStores | (in_block(instruction) || opcode == "stmatrix" ? 0 : kStoresGlobal);
  if (opcode == "nanosleep") return kFences;
  if (opcode == "fence" || opcode == "membar")
    return kFences | (has_one(instruction, {"cta", "proxy"}) ? 0 : kFencesGrid);
  return opcode_kind(opcode) == OpcodeKind::kUnknown && !refusal(instruction).once ? kUnreadable : 0;
}

const Operand* address_of(const Instruction& instruction) {
  const Operand* found = nullptr;
  for (const Operand& operand : instruction.operands) {
    if (operand.kind != Operand::Kind::kAddress) continue;
    found = &operand;
    if (instruction.opcode != "cp") break;
  }
  return found;
}

}  // namespace gpuctl::ptx
