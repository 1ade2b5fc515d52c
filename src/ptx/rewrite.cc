#include "ptx/rewrite.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ptx/analysis/distinct_registers.h"
#include "ptx/analysis/facts.h"
#include "ptx/pass/append_launch_args.h"
#include "ptx/pass/find_early_return.h"
#include "ptx/pass/join_finished_threads.h"
#include "ptx/pass/meet_late.h"
#include "ptx/pass/refuse_unsupported.h"
#include "ptx/pass/refuse_waiting_blocks.h"
#include "ptx/pass/replace_block_index.h"
#include "ptx/pass/replace_returns.h"
#include "ptx/pass/split_early_return.h"
#include "ptx/pass/words_behind.h"
#include "ptx/persistent_abi.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"
#include "ptx/worker/wrap_in_claim_loop.h"

namespace gpuctl::ptx {
namespace {

struct Pass {
  std::string_view name;
  pass::Refused (*run)(pass::Kernel&);
};

/// The pipeline. A pass that refuses the kernel ends it: the kernel stays opaque.
constexpr Pass kPasses[] = {
    // Lays out the parameters; refuses constructs that no persistent kernel may contain.
    {"refuse_unsupported", pass::refuse_unsupported},
    // Refuses kernels whose blocks may wait for each other.
    {"refuse_waiting_blocks", pass::refuse_waiting_blocks},
    // Decides whether finished threads must keep coming to barriers; refuses kernels whose warps could wait for
    // finished lanes.
    {"find_early_return", pass::find_early_return},
    // Block-tasks in which no thread returns early get a body of their own, with plain barriers.
    {"split_early_return", pass::split_early_return},
    // Threads that share something meet between two block-tasks, as late as possible.
    {"meet_late", pass::meet_late},
    // Adds the LaunchArgs parameter and renames the entry.
    {"append_launch_args", pass::append_launch_args},
    // ret and exit become jumps to the end of the block-task.
    {"replace_returns", pass::replace_returns},
    // %ctaid and %nctaid become registers, passed on to copies of called functions.
    {"replace_block_index", pass::replace_block_index},
    // Barriers count the finished threads, where that is needed.
    {"join_finished_threads", pass::join_finished_threads},
    // The loop that claims block-tasks is put around the body.
    {"wrap_in_claim_loop", pass::wrap_in_claim_loop},
};

std::string form_reason(const pass::Kernel& kernel) {
  std::string reason = "all constructs understood";
  if (kernel.report.needs_finished_barrier) reason += "; finished threads join its barriers";
  return reason;
}

/// Runs the passes over one entry.
pass::Kernel rewrite_entry(const ModuleFacts& facts, const Function& entry, const std::set<std::string>& names,
                           const DumpHook& dump) {
  pass::Kernel kernel{facts, entry, facts.closure(entry.name), entry, {}, {}};
  kernel.report.name = entry.name;
  pass::find_waiting_blocks(kernel);  // asked of kernels too that are refused for something else
  if (!kernel.closure.once.empty()) {
    kernel.report.reason = kernel.closure.once;
    return kernel;
  }
  for (const Pass& pass : kPasses) {
    const bool taken = names.count(entry.name + kPersistentSuffix) != 0 || names.count(pass::kMeetFunction) != 0;
    const pass::Refused refused = taken ? pass::Refused("the module was rewritten already") : pass.run(kernel);
    if (dump) {
      Module one{facts.module().version, facts.module().targets, facts.module().address_size, {}};
      for (const pass::CopiedFunction& copy : kernel.functions) one.items.emplace_back(copy.function);
      one.items.emplace_back(kernel.entry);
      if (kernel.plain_body) {
        Function plain = kernel.entry;
        plain.name += "__plain_body";
        plain.body = kernel.plain_body;
        one.items.emplace_back(std::move(plain));
      }
      dump(pass.name, print(one));
    }
    if (refused) {
      kernel.report.reason = *refused;
      return kernel;
    }
  }
  kernel.report.form = Form::kPersistent;
  kernel.report.reason = form_reason(kernel);
  return kernel;
}

/// The position of the added functions: behind the last function or variable, before the sections with debug
/// information.
std::size_t insertion_point(const Module& module) {
  for (std::size_t i = module.items.size(); i > 0; --i) {
    if (!std::holds_alternative<Directive>(module.items[i - 1])) return i;
  }
  return module.items.size();
}

}  // namespace

RewriteResult rewrite(const Module& module, const DumpHook& dump) {
  const std::optional<Module> renamed = with_distinct_registers(module);
  const Module& distinct = renamed ? *renamed : module;
  const ModuleFacts facts(distinct);
  RewriteResult result;
  std::set<std::string> names;
  for (const Item& item : module.items) {
    if (const auto* function = std::get_if<Function>(&item)) names.insert(function->name);
  }
  std::vector<Item> prototypes;
  std::vector<Item> added;
  std::set<std::string> copied;
  bool words_behind = false;
  for (const Item& item : distinct.items) {
    const auto* function = std::get_if<Function>(&item);
    if (function == nullptr || !function->is_entry || !function->body) continue;
    pass::Kernel kernel = rewrite_entry(facts, *function, names, dump);
    if (kernel.report.form != Form::kOpaque) {
      for (pass::CopiedFunction& copy : kernel.functions) {
        if (!copied.insert(copy.function.name).second) continue;  // another kernel has the same copy
        Function prototype = copy.function;
        prototype.body.reset();
        prototypes.emplace_back(std::move(prototype));
        added.emplace_back(std::move(copy.function));
      }
      added.emplace_back(std::move(kernel.entry));
      words_behind = words_behind || kernel.report.words_behind;
    }
    result.entries.push_back(std::move(kernel.report));
  }
  if (words_behind) prototypes.insert(prototypes.begin(), pass::dynamic_shared_variable());
  result.module = module;
  auto& items = result.module.items;
  auto at = items.begin() + static_cast<std::ptrdiff_t>(insertion_point(module));
  at = items.insert(at, std::make_move_iterator(prototypes.begin()), std::make_move_iterator(prototypes.end()));
  at += static_cast<std::ptrdiff_t>(prototypes.size());
  items.insert(at, std::make_move_iterator(added.begin()), std::make_move_iterator(added.end()));
  return result;
}

bool stands_alone(const Module& module) {
  const ModuleFacts facts(module);
  return std::all_of(module.items.begin(), module.items.end(), [&facts](const Item& item) {
    if (const auto* variable = std::get_if<Variable>(&item)) {
      return variable->space == "shared" ||
             std::all_of(variable->names.begin(), variable->names.end(),
                         [](const Declarator& name) { return name.name.starts_with("$str"); });
    }
    const auto* function = std::get_if<Function>(&item);
    const FunctionFacts* known = function && function->body ? facts.find(function->name) : nullptr;
    return !known || !known->calls_indirectly;
  });
}

Result<RewrittenText> rewrite_text(std::string_view text) {
  const Result<Module> module = parse(text);
  if (!module) return module.error();
  RewriteResult result = rewrite(*module);
  return RewrittenText{print(result.module), std::move(result.entries), stands_alone(*module)};
}

}  // namespace gpuctl::ptx
