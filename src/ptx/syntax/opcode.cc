#include "ptx/syntax/opcode.h"

#include <algorithm>
#include <unordered_map>

namespace gpuctl::ptx {
namespace {

const std::unordered_map<std::string_view, OpcodeKind>& table() {
  static const auto* const kTable = [] {
    auto* result = new std::unordered_map<std::string_view, OpcodeKind>;
    struct Row {
      OpcodeKind kind;
      std::string_view names;
    };
    static constexpr Row kRows[] = {
        {OpcodeKind::kCompute,
         "abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos createpolicy cvt cvta div dp2a dp4a ex2 fma "
         "fns "
         "isspacep lg2 lop3 mad mad24 madc max min mov mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp "
         "shf "
         "shl shr sin slct sqrt sub subc szext tanh testp vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 "
         "vmad "
         "vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 vsub4 xor suq txq"},
        {OpcodeKind::kLoad, "ld ldu ldmatrix suld tex tld4"},
        {OpcodeKind::kAtomic, "atom"},
        {OpcodeKind::kWarp, "activemask elect match mma movmatrix redux shfl vote wmma"},
        {OpcodeKind::kEffect,
         "applypriority brkpt cp discard fence membar nanosleep pmevent prefetch prefetchu red st stmatrix sured sust"},
        {OpcodeKind::kBarrier, "bar barrier"},
        {OpcodeKind::kBranch, "bra brx"},
        {OpcodeKind::kCall, "call"},
        {OpcodeKind::kReturn, "ret exit"},
        {OpcodeKind::kTrap, "trap"},
    };
    for (const Row& row : kRows) {
      std::string_view names = row.names;
      while (!names.empty()) {
        const std::size_t end = std::min(names.find(' '), names.size());
        (*result)[names.substr(0, end)] = row.kind;
        names.remove_prefix(std::min(end + 1, names.size()));
      }
    }
    return result;
  }();
  return *kTable;
}

/// Instructions that are refused for a reason of their own. An empty `modifier` matches any modifiers. `once`: the
/// instruction leaves something behind, in shared memory, barriers or the registers of a warp, that would disturb
/// another block-task; one block-task alone may use it.
struct Row {
  std::string_view opcode;
  std::string_view modifier;
  std::string_view reason;
  bool once = false;
};
constexpr Row kRefusals[] = {
    {"mbarrier", "", "uses mbarrier", true},
    {"cp", "multicast::cluster", "uses thread block clusters"},
    {"cp", "bulk", "uses bulk copies (cp.async.bulk)", true},
    {"cp", "reduce", "uses bulk copies (cp.reduce.async.bulk)", true},
    {"cp", "mbarrier", "uses mbarrier", true},
    {"setmaxnreg", "", "uses setmaxnreg", true},
    {"griddepcontrol", "", "uses griddepcontrol (programmatic dependent launch)"},
    {"wgmma", "", "uses wgmma", true},
    {"barrier", "cluster", "uses thread block clusters"},
    {"mapa", "", "uses thread block clusters"},
    {"getctarank", "", "uses thread block clusters"},
    {"alloca", "", "allocates stack at run time (alloca)", true},
    {"stacksave", "", "allocates stack at run time (stacksave)", true},
    {"stackrestore", "", "allocates stack at run time (stackrestore)", true},
    {"bar", "arrive", "arrives at a barrier without waiting (bar.arrive)", true},
    {"barrier", "arrive", "arrives at a barrier without waiting (barrier.arrive)", true},
};

/// The least number of operands of the instructions whose operands the passes look at. ptxas refuses fewer, but the
/// text comes here before ptxas sees it.
struct Operands {
  std::string_view opcode;
  std::size_t least;
};
constexpr Operands kOperands[] = {{"bra", 1}, {"ld", 2}, {"mov", 2},  {"not", 2}, {"add", 3}, {"and", 3}, {"div", 3},
                                  {"mul", 3}, {"or", 3}, {"setp", 3}, {"shr", 3}, {"sub", 3}, {"mad", 4}};

bool is_literal_zero(const Operand& operand) {
  return operand.kind == Operand::Kind::kImmediate && operand.bits == 0;
}

}  // namespace

OpcodeKind opcode_kind(std::string_view opcode) {
  const auto found = table().find(opcode);
  return found == table().end() ? OpcodeKind::kUnknown : found->second;
}

bool writes_first_operand(const Instruction& instruction) {
  switch (opcode_kind(instruction.opcode)) {
    case OpcodeKind::kCompute:
    case OpcodeKind::kLoad:
    case OpcodeKind::kAtomic:
      return true;
    case OpcodeKind::kWarp:
      return !(instruction.opcode == "wmma" && instruction.has("store"));
    case OpcodeKind::kBarrier:
      return instruction.has("red");
    default:
      return false;
  }
}

Refusal refusal(const Instruction& instruction) {
  for (const Row& row : kRefusals) {
    if (row.opcode == instruction.opcode && (row.modifier.empty() || instruction.has(row.modifier))) {
      return {std::string(row.reason), row.once};
    }
  }
  if (opcode_kind(instruction.opcode) == OpcodeKind::kUnknown)
    return {"instruction '" + instruction.opcode + "' is not known"};
  for (const Operands& row : kOperands) {
    if (row.opcode == instruction.opcode && instruction.operands.size() < row.least)
      return {"'" + instruction.opcode + "' has too few operands"};
  }
  // A fence of cluster scope asks only that its own block sees what it did.
  for (const std::string& modifier : instruction.modifiers) {
    if ((modifier == "cluster" && instruction.opcode != "fence") || modifier.find("::cluster") != modifier.npos) {
      return {"uses thread block clusters"};
    }
  }
  // Every thread of the block must meet on resource 0, or the loop around the block-tasks would meet the wrong
  // barriers.
  if (is_barrier(instruction) && !is_block_barrier(instruction)) {
    const std::size_t id = instruction.has("red") ? 1 : 0;
    const bool literal = id < instruction.operands.size() && instruction.operands[id].kind == Operand::Kind::kImmediate;
    if (!literal) return {"uses a barrier whose number is not a constant", true};
    if (instruction.operands[id].bits == 0) return {"uses barrier 0 with a thread count", true};
  }
  return {};
}

bool is_barrier(const Instruction& instruction) {
  return opcode_kind(instruction.opcode) == OpcodeKind::kBarrier && !instruction.has("warp");
}

bool is_block_barrier(const Instruction& instruction) {
  if (!is_barrier(instruction)) return false;
  const auto& operands = instruction.operands;
  if (instruction.has("red")) return operands.size() == 3 && is_literal_zero(operands[1]);
  return operands.size() == 1 && is_literal_zero(operands[0]);
}

bool is_warp_sync(const Instruction& instruction) {
  const OpcodeKind kind = opcode_kind(instruction.opcode);
  if (kind == OpcodeKind::kBarrier) return instruction.has("warp");
  return instruction.has("sync") &&
         (kind == OpcodeKind::kWarp || kind == OpcodeKind::kLoad || kind == OpcodeKind::kEffect);
}

std::string_view call_target(const Instruction& call) {
  for (const Operand& operand : call.operands) {
    if (operand.kind == Operand::Kind::kList) continue;
    return operand.kind == Operand::Kind::kSymbol ? std::string_view(operand.text) : std::string_view();
  }
  return {};
}

}  // namespace gpuctl::ptx
