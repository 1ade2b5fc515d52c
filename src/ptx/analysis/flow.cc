#include "ptx/analysis/flow.h"

#include <algorithm>
#include <utility>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"

namespace gpuctl::ptx {
namespace {

/// Immediate dominators of a graph given by its reverse post-order from the root and the predecessors of each node
/// (Cooper, Harvey and Kennedy's iteration). -1 for the root and nodes not in the order.
std::vector<int> immediate_dominators(const std::vector<int>& order,
                                      const std::vector<std::vector<int>>& predecessors) {
  std::vector<int> position(predecessors.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  std::vector<int> result(predecessors.size(), -1);
  if (order.empty()) return result;
  result[order[0]] = order[0];
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
      int best = -1;
      for (int p : predecessors[order[i]]) {
        if (position[p] < 0 || result[p] < 0) continue;
        int a = p;
        int b = best < 0 ? p : best;
        while (a != b) {
          while (position[a] > position[b]) a = result[a];
          while (position[b] > position[a]) b = result[b];
        }
        best = a;
      }
      if (best != result[order[i]]) {
        result[order[i]] = best;
        changed = true;
      }
    }
  }
  result[order[0]] = -1;
  return result;
}

std::vector<int> reverse_post_order(int root, const std::vector<std::vector<int>>& successors) {
  std::vector<int> order;
  std::vector<char> seen(successors.size(), 0);
  std::vector<std::pair<int, std::size_t>> stack{{root, 0}};
  seen[root] = 1;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == successors[node].size()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const int to = successors[node][next++];
    if (!seen[to]) {
      seen[to] = 1;
      stack.emplace_back(to, 0);
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

class Builder {
 public:
  explicit Builder(const Function& function) : function_(function) {}

  Result<Flow> run() {
    flow_.blocks.emplace_back();
    collect(*function_.body);
    flow_.blocks.emplace_back();  // the exit
    if (!problem_.empty()) return fail(problem_);
    connect();
    if (!problem_.empty()) return fail(problem_);
    dominators();
    find_loops();
    return std::move(flow_);
  }

 private:
  static bool ends_block(const Instruction& instruction) {
    const OpcodeKind kind = opcode_kind(instruction.opcode);
    return kind == OpcodeKind::kBranch || kind == OpcodeKind::kReturn || kind == OpcodeKind::kTrap;
  }

  void collect(const std::vector<Statement>& body) {
    std::string label;
    for (const Statement& statement : body) {
      if (const auto* named = std::get_if<Label>(&statement)) {
        label = named->name;
        if (!flow_.blocks.back().instructions.empty()) flow_.blocks.emplace_back();
        labels_[label] = static_cast<int>(flow_.blocks.size()) - 1;
      } else if (const auto* directive = std::get_if<Directive>(&statement)) {
        if (directive->name() == ".branchtargets" && !label.empty()) tables_[label] = directive;
      } else if (const auto* scope = std::get_if<Scope>(&statement)) {
        collect(scope->body);
      } else if (const auto* instruction = std::get_if<Instruction>(&statement)) {
        flow_.blocks.back().instructions.push_back(registers_of(*instruction));
        if (ends_block(*instruction)) flow_.blocks.emplace_back();
      }
    }
  }

  int number(const std::string& name) {
    return flow_.registers.try_emplace(name, static_cast<int>(flow_.registers.size())).first->second;
  }

  FlowInstruction registers_of(const Instruction& instruction) {
    FlowInstruction result{&instruction, {}, {}};
    if (instruction.guard) result.reads.push_back(number(instruction.guard->reg));
    const OpcodeKind kind = opcode_kind(instruction.opcode);
    for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
      const bool results = kind == OpcodeKind::kCall && instruction.operands.size() > 1 &&
                           instruction.operands[0].kind == Operand::Kind::kList;
      const bool written = i == 0 && (results || writes_first_operand(instruction));
      for_each_operand(instruction.operands[i], [&](const Operand& operand) {
        if (operand.kind != Operand::Kind::kRegister) return;
        const int reg = number(operand.text);
        if (written || kind == OpcodeKind::kUnknown || kind == OpcodeKind::kCall) result.writes.push_back(reg);
        if (!written) result.reads.push_back(reg);
      });
    }
    if (instruction.has("cc")) result.writes.push_back(number("carry flag"));
    if (instruction.opcode == "addc" || instruction.opcode == "subc" || instruction.opcode == "madc") {
      result.reads.push_back(number("carry flag"));
    }
    return result;
  }

  void edge(int from, int to) {
    auto& successors = flow_.blocks[from].successors;
    if (std::find(successors.begin(), successors.end(), to) != successors.end()) return;
    successors.push_back(to);
    flow_.blocks[to].predecessors.push_back(from);
  }

  void edge_to_label(int from, const std::string& label) {
    const auto found = labels_.find(label);
    if (found == labels_.end()) {
      problem_ = "branches to '" + label + "', which is no label of the function";
    } else {
      edge(from, found->second);
    }
  }

  void connect() {
    for (int i = 0; i < flow_.exit(); ++i) {
      const auto& instructions = flow_.blocks[i].instructions;
      const Instruction* last = instructions.empty() ? nullptr : instructions.back().instruction;
      if (last == nullptr || !ends_block(*last) || last->guard) edge(i, i + 1);
      if (last == nullptr || !ends_block(*last)) continue;
      if (last->opcode == "bra" && last->operands.size() == 1) {
        edge_to_label(i, last->operands[0].text);
      } else if (last->opcode == "brx") {
        const auto table = last->operands.size() == 2 ? tables_.find(last->operands[1].text) : tables_.end();
        if (table == tables_.end()) {
          problem_ = "jumps through a table (brx) that is not in sight";
          return;
        }
        for (const std::string& token : table->second->tokens) {
          if (token != ".branchtargets" && token != "," && token != ";") edge_to_label(i, token);
        }
      } else if (last->opcode == "trap") {
        if (!last->guard) doomed_.push_back(i);
      } else {
        edge(i, flow_.exit());
      }
    }
    prune_doomed();
  }

  /// A thread that traps ends the whole grid, so paths to a trap are removed: nothing needs to be correct after it.
  void prune_doomed() {
    while (!doomed_.empty()) {
      const int block = doomed_.back();
      doomed_.pop_back();
      for (int before : std::exchange(flow_.blocks[block].predecessors, {})) {
        auto& successors = flow_.blocks[before].successors;
        successors.erase(std::find(successors.begin(), successors.end(), block));
        if (successors.empty()) doomed_.push_back(before);
      }
    }
  }

  void dominators() {
    const std::size_t count = flow_.blocks.size();
    std::vector<std::vector<int>> forward(count), backward(count);
    for (std::size_t i = 0; i < count; ++i) {
      forward[i] = flow_.blocks[i].successors;
      backward[i] = flow_.blocks[i].predecessors;
    }
    order_ = reverse_post_order(0, forward);
    flow_.dominator = immediate_dominators(order_, backward);
    // A cycle without an exit gets an edge to the exit, in this calculation only.
    std::vector<int> reversed = reverse_post_order(flow_.exit(), backward);
    std::vector<char> reaches(count, 0);
    for (int block : reversed) reaches[block] = 1;
    for (int i = static_cast<int>(count) - 1; i >= 0; --i) {
      if (reaches[i]) continue;
      forward[i].push_back(flow_.exit());
      backward[flow_.exit()].push_back(i);
    }
    flow_.post_dominator = immediate_dominators(reverse_post_order(flow_.exit(), backward), forward);
  }

  bool dominates(int a, int b) const {
    while (b != -1 && b != a) b = flow_.dominator[b];
    return b == a;
  }

  void find_loops() {
    std::vector<int> position(flow_.blocks.size(), -1);
    for (std::size_t i = 0; i < order_.size(); ++i) position[order_[i]] = static_cast<int>(i);
    std::unordered_map<int, std::vector<int>> latches;
    for (int from : order_) {
      for (int to : flow_.blocks[from].successors) {
        if (position[to] > position[from]) continue;
        if (dominates(to, from)) {
          latches[to].push_back(from);
        } else {
          flow_.irreducible = true;
        }
      }
    }
    for (const auto& [header, sources] : latches) {
      for (int latch : sources) flow_.loops.push_back(natural_loop(header, {latch}, position));
      if (sources.size() > 1) flow_.loops.push_back(natural_loop(header, sources, position));
    }
  }

  FlowLoop natural_loop(int header, std::vector<int> work, const std::vector<int>& position) const {
    FlowLoop loop{header, std::vector<char>(flow_.blocks.size(), 0)};
    loop.contains[header] = 1;
    while (!work.empty()) {
      const int block = work.back();
      work.pop_back();
      if (loop.contains[block] || position[block] < 0) continue;
      loop.contains[block] = 1;
      for (int before : flow_.blocks[block].predecessors) work.push_back(before);
    }
    return loop;
  }

  const Function& function_;
  Flow flow_;
  std::string problem_;
  std::unordered_map<std::string, int> labels_;
  std::unordered_map<std::string, const Directive*> tables_;
  std::vector<int> doomed_;
  std::vector<int> order_;
};

}  // namespace

std::vector<char> Flow::region(int block) const {
  std::vector<char> result(blocks.size(), 0);
  const int end = post_dominator[block];
  std::vector<int> work = blocks[block].successors;
  while (!work.empty()) {
    const int next = work.back();
    work.pop_back();
    if (next == end || result[next]) continue;
    result[next] = 1;
    for (int successor : blocks[next].successors) work.push_back(successor);
  }
  return result;
}

Result<Flow> build_flow(const Function& function) {
  return Builder(function).run();
}

}  // namespace gpuctl::ptx
