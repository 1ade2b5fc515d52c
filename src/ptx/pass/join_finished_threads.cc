#include "ptx/pass/join_finished_threads.h"

#include "ptx/analysis/walk.h"
#include "ptx/syntax/opcode.h"
#include "ptx/syntax/parser.h"

namespace gpuctl::ptx::pass {
namespace {

constexpr std::string_view kHeader = ".version 6.0\n.target sm_70\n.address_size 64\n";

constexpr std::string_view kMeet = R"(
.func (.param .b32 gpuslice_count) gpuslice_meet(.param .b32 gpuslice_finished)
{
  .reg .pred %p;
  .reg .b32 %r<2>;
  ld.param.b32 %r0, [gpuslice_finished];
  setp.ne.u32 %p, %r0, 0;
  bar.warp.sync 0xffffffff;
  bar.red.popc.u32 %r1, 0, %p;
  st.param.b32 [gpuslice_count], %r1;
  ret;
}
)";

constexpr std::string_view kMeetLive = R"(
.func f()
{
  {
    .param .b32 gpuslice_finished;
    .param .b32 gpuslice_count;
    .reg .b32 %gpuslice_zero;
    mov.b32 %gpuslice_zero, 0;
    st.param.b32 [gpuslice_finished], %gpuslice_zero;
    call (gpuslice_count), gpuslice_meet, (gpuslice_finished);
  }
}
)";

/// The same, but plain while %gpuslice_plain is set. NUMBER makes the labels unique.
constexpr std::string_view kMeetLiveOrPlain = R"(
.func f()
{
  .reg .pred %gpuslice_plain;
  {
    @%gpuslice_plain bra.uni $gpuslice_plain_NUMBER;
    .param .b32 gpuslice_finished;
    .param .b32 gpuslice_count;
    .reg .b32 %gpuslice_zero;
    mov.b32 %gpuslice_zero, 0;
    st.param.b32 [gpuslice_finished], %gpuslice_zero;
    call (gpuslice_count), gpuslice_meet, (gpuslice_finished);
    ld.param.b32 %gpuslice_zero, [gpuslice_count];
    setp.eq.u32 %gpuslice_plain, %gpuslice_zero, 0;
    bra.uni $gpuslice_past_NUMBER;
$gpuslice_plain_NUMBER:
    bar.sync 0;
$gpuslice_past_NUMBER:
  }
}
)";

/// Parses a text that holds one function.
Function parse_function(std::string_view text) {
  const Result<Module> module = parse(std::string(kHeader) + std::string(text));
  return std::get<Function>(module.value().items.at(0));
}

void join_barriers(Function& function) {
  const Function live = parse_function(kMeetLive);
  replace_instructions(*function.body, [&](Instruction& instruction, std::vector<Statement>& out) {
    if (!is_block_barrier(instruction)) {
      out.emplace_back(std::move(instruction));
      return;
    }
    Scope call = std::get<Scope>(live.body->at(0));
    // Only the call takes the guard: PTX allows no guard on the arguments.
    std::get<Instruction>(call.body.back()).guard = instruction.guard;
    out.emplace_back(std::move(call));
  });
}

void replace_all(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size())
    text.replace(at, what.size(), with);
}

void join_or_skip_barriers(Function& function) {
  int number = 0;
  replace_instructions(*function.body, [&](Instruction& instruction, std::vector<Statement>& out) {
    if (!is_block_barrier(instruction)) {
      out.emplace_back(std::move(instruction));
      return;
    }
    std::string text(kMeetLiveOrPlain);
    const std::string digits = std::to_string(number++);
    replace_all(text, "NUMBER", digits);
    Scope meet = std::get<Scope>(parse_function(text).body->back());
    if (instruction.guard) {  // the guard is the same in all threads, or skips_joining() would be false
      Instruction skip;
      skip.guard = Guard{instruction.guard->reg, !instruction.guard->negated};
      skip.opcode = "bra";
      skip.operands = {symbol_operand("$gpuslice_past_" + digits)};
      meet.body.insert(meet.body.begin(), std::move(skip));
    }
    out.emplace_back(std::move(meet));
  });
}

}  // namespace

Refused join_finished_threads(Kernel& kernel) {
  if (!kernel.report.needs_finished_barrier) return {};
  if (skips_joining(kernel)) {
    join_or_skip_barriers(kernel.entry);
  } else {
    join_barriers(kernel.entry);
  }
  for (CopiedFunction& copy : kernel.functions) join_barriers(copy.function);
  Function meet = parse_function(kMeet);
  kernel.functions.push_back({meet.name, std::move(meet)});
  return {};
}

}  // namespace gpuctl::ptx::pass
