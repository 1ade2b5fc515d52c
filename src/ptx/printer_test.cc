#include "ptx/printer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptx/lexer.h"
#include "ptx/parser.h"

namespace gpuctl::ptx {
namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Fails, with the place in the input, unless parse and print give the same tokens.
void expect_round_trip(const std::string& text, const std::string& what) {
  const auto module = parse(text);
  ASSERT_TRUE(module) << what << ":" << module.error().message;
  const std::string printed = print(*module);
  const auto before = lex(text);
  const auto after = lex(printed);
  ASSERT_TRUE(after) << what << ": printed text does not lex: " << after.error().message;
  for (std::size_t i = 0; i < std::min(before->size(), after->size()); ++i) {
    ASSERT_EQ((*before)[i].text, (*after)[i].text) << what << ":" << (*before)[i].line;
  }
  ASSERT_EQ(before->size(), after->size()) << what;
}

TEST(Printer, GivesBackTheTokensOfCompilers) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(PTX_GOLDEN_DIR) + "/round_trip")) {
    if (entry.path().extension() != ".ptx") continue;
    expect_round_trip(read_file(entry.path()), entry.path().filename());
    ++files;
  }
  EXPECT_GE(files, 10);
}

TEST(Printer, GivesBackRareConstructs) {
  const std::string head = ".version 8.5\n.target sm_90a, debug\n.address_size 64\n";
  const char* const kItems[] = {
      ".weak .func (.reg .b32 r) f (.reg .b32 a, .param .align 8 .b8 s[16]) .noreturn;",
      ".common .global .u32 c; .extern .shared .align 16 .b8 dyn[];",
      ".alias f, g;",
      ".func .attribute(.unified(1, 2)) f () { ret; }",
      ".global .samplerref s = {addr_mode_0 = clamp_to_border, filter_mode = nearest};",
      ".global .u8 bytes[] = {0xff(x), 0xff00(x), \"text\", 1+2, generic(x)-4};",
      ".entry k .maxntid 16, 16 .reqnctapercluster 2, 1, 1 .explicitcluster .maxclusterrank 8 { exit; }",
      ".entry k() { t: .branchtargets a, b; brx.idx.uni %r1, t; a: b: ret; }",
      ".entry k() { p: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[16]) .noreturn; ret; }",
      ".entry k() { t: .calltargets f, g; call.uni (r), %rd1, (a, b), t; call f; call (r), f, (); ret; }",
      ".entry k() { { .reg .pred %p<2>; @!%p1 bra.uni L; { .reg .b32 t; } } L: ret; }",
      ".entry k() { vadd.s32.u32.s32.sat %r1.b0, -%r2.h1, %r3, %r4; mov.b64 {%r1, _}, %rd2; }",
      ".entry k() { tex.3d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [t, s, {%f5, %f6, %f7, %f7}], %r1; }",
      ".entry k() { mov.u64 %rd1, sym+4; ld.param.u32 %r1, [k_param_0+4]; st.v2.b8 [%rd1+-2], {1, -1}; ld.u32 %r1, "
      "[16]; }",
      ".entry k() { cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [a], [m, {%r1, %r2}], "
      "[b]; }",
      ".entry k() { shfl.sync.bfly.b32 %r1|%p1, %r2, 0x10, 31, -1; mov.u32 %r1, WARP_SZ; mov.f64 %fd1, 1.5e3; }",
      ".global .b8 a[0x10][2*4], b[0b11]; .entry k() { .reg .b32 %r<0x5>; ret; }",
      ".global .b8 words[] = {0, a b .c : : d 1 .5 % e 2 / / 3 / * 4, \"s\" \"t\"};",
      ".file 1 \"a.cu\", 1234, 5 .section .debug_info { .b32 4, 5 L: .b8 1 .b64 L+3 }",
  };
  for (const char* item : kItems) expect_round_trip(head + item, item);
}

TEST(Printer, ReadsWell) {
  const auto module =
      parse(".version 8.0 .target sm_70 .address_size 64 .visible .entry k(.param .u64 a){@!%p1 ret;L:{exit;}}");
  ASSERT_TRUE(module);
  EXPECT_EQ(
      print(*module),
      ".version 8.0\n.target sm_70\n.address_size 64\n\n\n.visible .entry k(\n\t.param .u64 a\n)\n{\n\t@!%p1 ret;\nL:\n"
      "\t{\n\t\texit;\n\t}\n}\n");
}

}  // namespace
}  // namespace gpuctl::ptx
