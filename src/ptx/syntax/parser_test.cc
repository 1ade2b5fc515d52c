#include "ptx/syntax/parser.h"

#include <gtest/gtest.h>

namespace gpuctl::ptx {
namespace {

using Kind = Operand::Kind;

/// The body of an entry with a few registers declared.
Result<Module> parse_body(const std::string& body) {
  return parse(
      ".version 8.0\n.target sm_70\n.address_size 64\n.entry k(.param .u64 a)\n{.reg .b32 %r<4>;.reg .pred p, q;\n" +
      body + "}");
}

const Function& only_function(const Module& module) {
  return std::get<Function>(module.items.back());
}

/// The last statement of such a body.
template <class T>
T last(const std::string& body) {
  const auto module = parse_body(body);
  EXPECT_TRUE(module) << (module ? "" : module.error().message);
  if (!module) return {};
  const T* statement = std::get_if<T>(&only_function(*module).body->back());
  EXPECT_NE(statement, nullptr) << body;
  return statement != nullptr ? *statement : T{};
}

std::string error_of(std::string_view text) {
  const auto module = parse(text);
  return module ? "no error" : module.error().message;
}

TEST(Parser, ReadsTheHeader) {
  const auto module = parse(".version 7.8 .target sm_90a, debug .address_size 64");
  ASSERT_TRUE(module);
  EXPECT_EQ(module->version, "7.8");
  EXPECT_EQ(module->targets, (std::vector<std::string>{"sm_90a", "debug"}));
  EXPECT_EQ(module->address_size, "64");
}

TEST(Parser, ReadsAnInstruction) {
  const auto load = last<Instruction>("@!p ld.global.v2.u32 {%r0, _}, [a+-8];");
  EXPECT_EQ(load.guard->reg, "p");
  EXPECT_TRUE(load.guard->negated);
  EXPECT_EQ(load.opcode, "ld");
  EXPECT_EQ(load.modifiers, (std::vector<std::string>{"global", "v2", "u32"}));
  ASSERT_EQ(load.operands.size(), 2u);
  EXPECT_EQ(load.operands[0].items[0].kind, Kind::kRegister);
  EXPECT_EQ(load.operands[0].items[1].kind, Kind::kSink);
  EXPECT_EQ(load.operands[1].kind, Kind::kAddress);
  EXPECT_EQ(load.operands[1].items[0].kind, Kind::kSymbol);
  EXPECT_EQ(load.operands[1].offset, -8);
}

TEST(Parser, TellsRegistersFromSpecialsAndSymbols) {
  const auto move = last<Instruction>("{ .reg .b32 t; mov.b32 t, 1; } mov.b32 %r3, t;");
  EXPECT_EQ(move.operands[0].kind, Kind::kRegister);
  EXPECT_EQ(move.operands[1].kind, Kind::kSymbol);  // its scope is closed
  const auto outside = last<Instruction>("mov.u32 %r4, %ctaid.x;");
  EXPECT_EQ(outside.operands[0].kind, Kind::kSpecial);  // %r<4> ends at %r3
  EXPECT_EQ(outside.operands[1].kind, Kind::kSpecial);
  EXPECT_EQ(outside.operands[1].component, "x");
}

TEST(Parser, ReadsColoursAsTheAxesThatTheyAre) {
  for (const auto& [colour, axis] : {std::pair{"r", "x"}, {"g", "y"}, {"b", "z"}, {"a", "w"}, {"y", "y"}}) {
    const auto move = last<Instruction>(std::string("mov.u32 %r1, %ctaid.") + colour + ";");
    EXPECT_EQ(move.operands.at(1).component, axis);
  }
}

TEST(Parser, ReadsANumberThatIsAddedToARegister) {
  const auto store = last<Instruction>("st.global.u32 [%r2+4], %r1 + 1;");
  EXPECT_EQ(store.operands.at(0).offset, 4);
  EXPECT_EQ(store.operands.at(1).kind, Kind::kRegister);
  EXPECT_EQ(store.operands.at(1).offset, 1);
  EXPECT_EQ(store.operands.at(1).offset_text, "+1");
}

TEST(Parser, ReadsAPrototypeWithoutSemicolon) {
  for (const char* next : {".file 1 \"k.cu\"\n", ".visible .entry k() { ret; }", ".global .u32 v;", ""}) {
    const auto module =
        parse(std::string(".version 8.0 .target sm_70 .address_size 64 .visible .func f(.param .s32 a)\n") + next);
    ASSERT_TRUE(module) << module.error().message;
    EXPECT_EQ(std::get<Function>(module->items.at(0)).name, "f");
    EXPECT_FALSE(std::get<Function>(module->items.at(0)).body);
  }
}

TEST(Parser, ReadsPairsNegationsAndImmediates) {
  const auto test = last<Instruction>("setp.lt.and.s32 p|q, %r1, -5, !p;");
  EXPECT_EQ(test.operands[0].kind, Kind::kPredicatePair);
  EXPECT_EQ(test.operands[0].items[1].text, "q");
  EXPECT_EQ(test.operands[2].bits, static_cast<std::uint64_t>(-5));
  EXPECT_EQ(test.operands[2].text, "-5");
  EXPECT_EQ(test.operands[3].kind, Kind::kNegated);
  EXPECT_EQ(test.operands[3].items[0].kind, Kind::kRegister);
  EXPECT_EQ(last<Instruction>("mov.f32 %r1, 0f40000000;").operands[1].width, 32);
}

TEST(Parser, ReadsCalls) {
  const auto direct = last<Instruction>("call.uni (r), f, (b, 4);");
  EXPECT_EQ(direct.operands[0].kind, Kind::kList);
  EXPECT_EQ(direct.operands[1].kind, Kind::kSymbol);
  EXPECT_EQ(direct.operands[2].items.size(), 2u);
  const auto one = last<Instruction>("call f, (4);");
  ASSERT_EQ(one.operands.size(), 2u);
  EXPECT_EQ(one.operands[1].kind, Kind::kList);
  const auto indirect = last<Instruction>("call (r), %r1, (b), proto;");
  EXPECT_EQ(indirect.operands[1].kind, Kind::kRegister);
  EXPECT_EQ(indirect.operands[3].text, "proto");
}

TEST(Parser, ReadsTextureAddresses) {
  const auto fetch = last<Instruction>("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%r1, {%r2, %r3}];");
  EXPECT_EQ(fetch.operands[1].items.size(), 2u);
  EXPECT_EQ(fetch.operands[1].items[1].kind, Kind::kVector);
}

TEST(Parser, KeepsDirectivesOfABody) {
  EXPECT_EQ(last<Directive>(".loc 1 2 3, function_name $L, inlined_at 1 20 3").tokens.size(), 12u);
  EXPECT_EQ(last<Directive>(".pragma \"nounroll\";").name(), ".pragma");
  const auto table = last<Directive>("t: .branchtargets a, b;");
  EXPECT_EQ(table.tokens, (std::vector<std::string>{".branchtargets", "a", ",", "b", ";"}));
}

TEST(Parser, DecodesVariables) {
  const auto module = parse(
      ".version 8.0 .target sm_70 .visible .global .attribute(.managed) .align 16 .v2 .u64 g[4][2], h = 3;\n"
      ".const .align 8 .u64 t[] = {generic(g)+8, g, 0xff(h), -1};");
  ASSERT_TRUE(module) << module.error().message;
  const auto& global = std::get<Variable>(module->items[0]);
  EXPECT_EQ(global.space, "global");
  EXPECT_EQ(global.type, "u64");
  EXPECT_EQ(global.vector, 2u);
  EXPECT_EQ(global.align, 16u);
  EXPECT_EQ(variable_bytes(global, global.names[0]), 128u);
  EXPECT_EQ(global.names[1].init->bits, 3u);
  const auto& table = std::get<Variable>(module->items[1]);
  const auto& items = table.names[0].init->items;
  EXPECT_EQ(variable_bytes(table, table.names[0]), 32u);
  EXPECT_TRUE(items[0].generic);
  EXPECT_EQ(items[0].symbol, "g");
  EXPECT_EQ(items[0].offset, 8);
  EXPECT_EQ(items[2].mask, 255u);
  EXPECT_EQ(items[3].bits, ~std::uint64_t{0});
}

TEST(Parser, DecodesParameters) {
  const auto module = parse(
      ".version 8.0 .target sm_70 .visible .entry k(.param .u64 .ptr .global .align 16 p, .param .align 8 .b8 s[24]) "
      ".maxntid 256, 1, 1 .minnctapersm 2 .pragma \"x\"; { ret; }");
  ASSERT_TRUE(module) << module.error().message;
  const Function& function = only_function(*module);
  EXPECT_EQ(function.linkage, std::vector<std::string>{".visible"});
  EXPECT_EQ(function.params[0].space, "param");
  EXPECT_EQ(function.params[0].align, 0u);  // 16 is the pointee's
  EXPECT_EQ(variable_align(function.params[0]), 8u);
  EXPECT_EQ(variable_align(function.params[1]), 8u);
  EXPECT_EQ(function.directives.size(), 3u);
}

TEST(Parser, NamesTheErrorsPlace) {
  EXPECT_EQ(error_of("hello"), "1:1: expected '.version', found 'hello'");
  EXPECT_EQ(error_of(".version 8.0\n.target sm_70\n.entry k() { ret }"), "3:18: expected an operand, found '}'");
  EXPECT_EQ(error_of(".version 8.0\n.target sm_70\n.entry k() {\n ret;"), "3:12: '{' is never closed");
  EXPECT_EQ(error_of(".version 8.0 .target sm_70 .global .u32 a"), "1:42: expected ';', found the end of the text");
}

TEST(Parser, SurvivesHostileNesting) {
  EXPECT_NE(error_of(".version 8.0 .target sm_70 .entry k() " + std::string(100000, '{')).find("too deeply"),
            std::string::npos);
  const auto module = parse_body("mov.b32 %r0, " + std::string(100000, '['));
  ASSERT_FALSE(module);
  EXPECT_NE(module.error().message.find("too deeply"), std::string::npos);
}

}  // namespace
}  // namespace gpuctl::ptx
