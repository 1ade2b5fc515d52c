#include "ptx/analysis/any_thread.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "ptx/analysis/walk.h"
#include "ptx/syntax/parser.h"

namespace gpuctl::ptx::pass {
namespace {

struct Thread {
  std::array<std::uint32_t, 3> tid{}, ntid{}, ctaid{};
};

/// Executes straight-line integer code of one thread.
class Machine {
 public:
  Machine(const Thread& thread, std::map<std::string, std::uint32_t> params)
      : thread_(thread), params_(std::move(params)) {}

  void run(const std::vector<Statement>& body) {
    for_each_instruction(body, [&](const Instruction& i) { step(i); });
  }
  std::uint32_t operator[](const std::string& name) const { return registers_.at(name); }

 private:
  std::uint32_t read(const Operand& operand) const {
    if (operand.kind == Operand::Kind::kImmediate) return static_cast<std::uint32_t>(operand.bits);
    if (operand.kind == Operand::Kind::kAddress) return params_.at(operand.items[0].text);
    if (operand.kind == Operand::Kind::kRegister) return registers_.at(operand.text);
    const std::size_t component = operand.component[0] - 'x';
    return (operand.text == "%tid"    ? thread_.tid
            : operand.text == "%ntid" ? thread_.ntid
                                      : thread_.ctaid)
        .at(component);
  }

  static bool compare(const std::string& how, bool is_signed, std::uint32_t a, std::uint32_t b) {
    const std::int64_t x = is_signed ? static_cast<std::int32_t>(a) : std::int64_t{a};
    const std::int64_t y = is_signed ? static_cast<std::int32_t>(b) : std::int64_t{b};
    if (how == "lt" || how == "lo") return x < y;
    if (how == "le" || how == "ls") return x <= y;
    if (how == "gt" || how == "hi") return x > y;
    if (how == "ge" || how == "hs") return x >= y;
    ADD_FAILURE() << how;
    return false;
  }

  void step(const Instruction& i) {
    const auto in = [&](std::size_t n) { return read(i.operands[n]); };
    std::uint32_t& out = registers_[i.operands[0].text];
    if (i.opcode == "mov" || i.opcode == "ld") {
      out = in(1);
    } else if (i.opcode == "add") {
      out = in(1) + in(2);
    } else if (i.opcode == "sub") {
      out = in(1) - in(2);
    } else if (i.opcode == "mul") {
      out = in(1) * in(2);
    } else if (i.opcode == "mad") {
      out = in(1) * in(2) + in(3);
    } else if (i.opcode == "or") {
      out = in(1) | in(2);
    } else if (i.opcode == "and") {
      out = in(1) & in(2);
    } else if (i.opcode == "not") {
      out = in(1) == 0;
    } else if (i.opcode == "setp") {
      out = compare(i.modifiers[0], i.has("s32"), in(1), in(2));
      if (i.has("or")) out |= in(3);
      if (i.has("and")) out &= in(3);
    } else {
      ADD_FAILURE() << i.opcode;
    }
  }

  Thread thread_;
  std::map<std::string, std::uint32_t> params_, registers_;
};

constexpr char kIndex[] =
    "ld.param.u32 %n, [n]; ld.param.u32 %m, [m]; mov.u32 %x, %tid.x; mov.u32 %nx, %ntid.x; mov.u32 %cx, %ctaid.x; "
    "mad.lo.s32 %i, %cx, %nx, %x; mov.u32 %y, %tid.y; mov.u32 %ny, %ntid.y; mov.u32 %cy, %ctaid.y; mad.lo.s32 %j, %cy, "
    "%ny, %y; "
    "mov.u32 %z, %tid.z; mad.lo.u32 %zy, %z, %ny, %y; mad.lo.u32 %flat, %zy, %nx, %x; ";

Function function_of(const std::string& condition) {
  const auto module = parse(
      ".version 7.8\n.target sm_75\n.address_size 64\n.entry k(.param .u32 n, .param .u32 m)\n{\n.reg .pred %p, %q, "
      "%r; "
      ".reg .b32 %n, %m, %x, %y, %z, %nx, %ny, %cx, %cy, %i, %j, %zy, %flat, %a, %b;\n" +
      std::string(kIndex) + condition + "\nret;\n}\n");
  EXPECT_TRUE(module) << condition;
  return std::get<Function>(module->items[0]);
}

/// How often the answer was yes although the condition held for no thread.
int check(const std::string& condition, bool negated) {
  const Function function = function_of(condition);
  const auto decide = any_thread(function, {"%p", negated}, "%some");
  EXPECT_TRUE(decide) << condition;
  if (!decide) return 0;
  std::vector<Statement> body(function.body->begin(), function.body->end() - 1);
  int too_often = 0;
  constexpr std::uint32_t kValues[] = {0, 1, 7, 31, 32, 33, 64, 100, 0x7fffffff, 0x80000000, 0xffffffe0, 0xffffffff};
  for (const auto& size : {std::array<std::uint32_t, 3>{1, 1, 1}, {33, 1, 1}, {4, 3, 2}}) {
    for (const std::uint32_t ctaid : {0u, 1u, 3u, 0x7fffffffu / 33, 0xffffffffu / 33}) {
      for (const std::uint32_t n : kValues) {
        for (const std::uint32_t m : {5u, 0xfffffff0u}) {
          bool some = false;
          std::optional<bool> answer;
          for (std::uint32_t t = 0; t < size[0] * size[1] * size[2]; ++t) {
            const Thread thread{{t % size[0], t / size[0] % size[1], t / size[0] / size[1]}, size, {ctaid, ctaid, 0}};
            Machine machine(thread, {{"n", n}, {"m", m}});
            machine.run(body);
            some |= (machine["%p"] != 0) != negated;
            machine.run(*decide);
            const bool found = machine["%some"] != 0;
            EXPECT_EQ(answer.value_or(found), found) << condition << ": threads disagree";
            answer = found;
          }
          EXPECT_TRUE(*answer || !some) << condition << " size " << size[0] << " ctaid " << ctaid << " n " << n << " m "
                                        << m;
          too_often += *answer && !some;
        }
      }
    }
  }
  return too_often;
}

TEST(AnyThread, FindsTheThreadOfABoundsCheck) {
  for (const bool negated : {false, true}) {
    for (const char* how : {"lt", "le", "gt", "ge"}) {
      for (const char* type : {"u32", "s32"}) {
        const std::string compare = "setp." + std::string(how) + "." + type + " %p, ";
        EXPECT_EQ(check(compare + "%x, %n;", negated), 0) << compare;
        EXPECT_EQ(check(compare + "%n, %y;", negated), 0) << compare;
        EXPECT_EQ(check(compare + "%flat, %n;", negated), 0) << compare;
        // Blocks in which the number wraps around are rare, so a wrong yes is accepted there.
        check(compare + "%i, %n;", negated);
        check(compare + "%j, %n;", negated);
      }
    }
    check("add.u32 %a, %i, 5; sub.s32 %b, %a, %m; setp.hs.u32 %p, %b, %n;", negated);
    check("mul.lo.s32 %a, %x, 12; add.s32 %b, %a, %m; setp.gt.s32 %p, %b, %n;", negated);
    check("setp.ge.s32 %p, %i, %j;", negated);
  }
}

TEST(AnyThread, JoinsConditions) {
  for (const bool negated : {false, true}) {
    check("setp.ge.s32 %q, %i, %n; setp.ge.s32 %r, %j, %m; or.pred %p, %q, %r;", negated);
    check("setp.ge.s32 %q, %i, %n; setp.lt.s32 %r, %j, %m; and.pred %p, %q, %r;", negated);
    check("setp.ge.u32 %q, %i, %n; not.pred %p, %q;", negated);
    check("setp.ge.u32 %q, %i, %n; setp.lt.or.s32 %p, %j, %m, %q;", negated);
    check("setp.gt.u32 %q, %cx, %n; setp.lt.and.s32 %p, %j, %m, %q;", negated);
  }
}

TEST(AnyThread, GivesUpOnTheRest) {
  for (const char* condition : {
           "setp.eq.u32 %p, %x, %n;",                          // nothing between the ends is known
           "mul.lo.u32 %a, %x, %n; setp.ge.u32 %p, %a, %m;",   // by a factor of any size
           "and.b32 %a, %x, 7; setp.ge.u32 %p, %a, %m;",       // does not rise
           "ld.global.u32 %a, [%n]; setp.ge.u32 %p, %a, %m;",  // from memory
           "setp.lt.u32 %q, %x, %n; mov.u32 %a, %x; @%q mov.u32 %a, 1; setp.ge.u32 %p, %a, %m;",  // two values
           "l: add.u32 %b, %x, %n; setp.ge.u32 %p, %b, %m; @%q bra l;",                           // in a loop
           "setp.ge.u32 %q, %x, %n; setp.lt.xor.u32 %p, %x, %m, %q;",
           "or.b32 %a, %x, %x; add.u32 %b, %b, %a; setp.ge.u32 %p, %b, %m;",  // from itself
           "setp.ge.u32 %q, %x, %n; and.pred %p, %p, %q;",
           "mul.lo.u32 %a, %x, 4194304; setp.ge.u32 %p, %a, %m;",  // may wrap around more than once
       }) {
    EXPECT_FALSE(any_thread(function_of(condition), {"%p", false}, "%some")) << condition;
  }
}

TEST(AnyThread, ComputesAValueOnceThatManyOthersUse) {
  std::string condition = ".reg .b32 %t<33>; mov.u32 %t0, %x;";
  for (int i = 1; i <= 32; ++i) {
    const std::string before = "%t" + std::to_string(i - 1);
    condition += "add.u32 %t" + std::to_string(i) + ", " + before + ", " + before + ";";
  }
  EXPECT_FALSE(any_thread(function_of(condition + "setp.ge.u32 %p, %t32, %m;"), {"%p", false}, "%some"));
}

}  // namespace
}  // namespace gpuctl::ptx::pass
