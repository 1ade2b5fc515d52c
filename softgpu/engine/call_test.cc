// Functions: parameters of both styles, recursion, pointers, printf.
#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine::call_test {
namespace {

using testing::compile;
using testing::launch;
using testing::Shape;

const std::string kHead = ".version 8.5\n.target sm_90\n.address_size 64\n";

std::vector<std::uint32_t> run(const std::string& functions, const std::string& body, std::string* error = nullptr,
                               PrintSink* print = nullptr) {
  std::vector<std::uint32_t> out(64, 0xdeadbeef);
  const auto program = compile(kHead + functions + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %d, %x, %r<16>;
  .reg .b64 %o, %rd<8>;
  ld.param.u64 %o, [out];
  mov.u32 %x, %tid.x;
  mul.wide.u32 %rd7, %x, 4;
  add.u64 %o, %o, %rd7;
)" + body + "\n  st.global.u32 [%o], %d;\n  ret;\n}\n");
  if (program == nullptr) return out;
  Shape shape;
  shape.block.x = 64;
  shape.print = print;
  const std::string message = launch(*program, "k", shape, out.data());
  if (error != nullptr)
    *error = message;
  else
    EXPECT_EQ("", message);
  return out;
}

const char kFibonacci[] = R"(
.func (.param .b32 result) fib(.param .b32 n)
{
  .reg .pred %p;
  .reg .b32 %a, %b, %n;
  ld.param.u32 %n, [n];
  setp.lt.s32 %p, %n, 2;
  mov.u32 %a, %n;
  @%p bra $END;
  sub.u32 %a, %n, 1;
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], %a;
  call.uni (r), fib, (q);
  ld.param.b32 %b, [r+0];
  }
  sub.u32 %a, %n, 2;
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], %a;
  call.uni (r), fib, (q);
  ld.param.b32 %a, [r+0];
  }
  add.u32 %a, %a, %b;
$END:
  st.param.b32 [result+0], %a;
  ret;
}
)";

TEST(Call, RecursionOfAnotherDepthInEachLane) {
  const auto out = run(kFibonacci, R"(
  rem.u32 %r1, %x, 15;
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], %r1;
  call.uni (r), fib, (q);
  ld.param.b32 %d, [r+0];
  })");
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t a = 0, b = 1;
    for (std::uint32_t k = 0; k < i % 15; ++k) b += a, a = b - a;
    EXPECT_EQ(a, out[i]) << i;
  }
}

TEST(Call, ThroughPointersAndTables) {
  const auto out = run(R"(
.func (.param .b32 result) twice(.param .b32 n)
{
  .reg .b32 %n;
  ld.param.u32 %n, [n];
  shl.b32 %n, %n, 1;
  st.param.b32 [result], %n;
  ret;
}
.func (.param .b32 result) square(.param .b32 n)
{
  .reg .b32 %n;
  ld.param.u32 %n, [n];
  mul.lo.u32 %n, %n, %n;
  st.param.b32 [result], %n;
  ret;
}
.global .align 8 .u64 both[2] = {twice, square};
)",
                       R"(
  and.b32 %r1, %x, 1;
  mul.wide.u32 %rd1, %r1, 8;
  mov.u64 %rd2, both;
  add.u64 %rd1, %rd1, %rd2;
  ld.global.u64 %rd3, [%rd1];
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q], %x;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (r), %rd3, (q), proto;
  ld.param.b32 %d, [r];
  })");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(i % 2 == 0 ? 2 * i : i * i, out[i]);
}

TEST(Call, RegisterParametersAndStructs) {
  const auto out = run(R"(
.func (.reg .b32 %sum, .reg .pred %odd) old(.reg .b32 %a, .reg .b64 %b)
{
  .reg .b32 %t;
  cvt.u32.u64 %t, %b;
  add.u32 %sum, %a, %t;
  and.b32 %t, %sum, 1;
  setp.eq.u32 %odd, %t, 1;
  ret;
}
.func (.param .align 8 .b8 result[16]) swap(.param .align 8 .b8 s[16])
{
  .reg .b64 %a, %b;
  ld.param.u64 %a, [s];
  ld.param.u64 %b, [s+8];
  st.param.u64 [result], %b;
  st.param.u64 [result+8], %a;
  ret;
}
)",
                       R"(
  mov.u64 %rd1, 1000;
  call (%r1, %p1), old, (%x, %rd1);
  selp.u32 %r2, 7, 0, %p1;
  {
  .param .align 8 .b8 q[16];
  .param .align 8 .b8 r[16];
  cvt.u64.u32 %rd2, %r1;
  cvt.u64.u32 %rd3, %r2;
  st.param.v2.u64 [q], {%rd2, %rd3};
  call (r), swap, (q);
  ld.param.u64 %rd4, [r];
  ld.param.u64 %rd5, [r+8];
  }
  cvt.u32.u64 %r3, %rd4;
  cvt.u32.u64 %r4, %rd5;
  mad.lo.u32 %d, %r3, 100000, %r4;)");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ((i % 2 == 1 ? 700000u : 0u) + 1000 + i, out[i]);
}

TEST(Call, EndlessRecursionIsAnError) {
  std::string error;
  run(".func f()\n{\n  .local .b8 buffer[64];\n  call f, ();\n  ret;\n}\n", "  call f, ();\n  mov.u32 %d, 1;", &error);
  EXPECT_NE(std::string::npos, error.find("stack overflow")) << error;
}

TEST(Call, OfWhatIsNoFunction) {
  std::string error;
  run("", "  proto: .callprototype ();\n  call %o, (), proto;\n  mov.u32 %d, 1;", &error);
  EXPECT_NE(std::string::npos, error.find("no function")) << error;
}

class Collect : public PrintSink {
 public:
  void print(std::string_view text) override { all += text; }
  std::string all;
};

TEST(Call, PrintsInOrderOfThreads) {
  Collect collect;
  run(R"(
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 format[40] = {37, 100, 58, 37, 53, 46, 50, 102, 32, 37, 115, 32, 37, 108, 108, 117, 37, 37, 10};
.global .align 1 .b8 name[4] = {97, 98, 99};
)",
      R"(
  .local .align 8 .b8 depot[32];
  mov.u32 %d, 0;
  setp.ge.u32 %p1, %x, 2;
  @%p1 bra $END;
  mov.u64 %rd1, depot;
  st.local.u32 [%rd1], %x;
  mov.f64 %rd2, 0d3FF8000000000000;
  st.local.u64 [%rd1+8], %rd2;
  mov.u64 %rd2, name;
  st.local.u64 [%rd1+16], %rd2;
  mov.u64 %rd2, 12345678901;
  st.local.u64 [%rd1+24], %rd2;
  cvta.local.u64 %rd1, %rd1;
  mov.u64 %rd2, format;
  {
  .param .b64 p0;
  .param .b64 p1;
  .param .b32 r;
  st.param.b64 [p0], %rd2;
  st.param.b64 [p1], %rd1;
  call (r), vprintf, (p0, p1);
  ld.param.b32 %d, [r];
  }
$END:)",
      nullptr, &collect);
  EXPECT_EQ("0: 1.50 abc 12345678901%\n1: 1.50 abc 12345678901%\n", collect.all);
}

// Half the lanes meet the others inside a function that is called from another one.
const char kMeeting[] = R"(
.func (.param .b32 result) meet(.param .b32 n)
{
  .reg .pred %p;
  .reg .b32 %n;
  ld.param.u32 %n, [n];
  setp.ne.u32 %p, %n, 0;
  bar.warp.sync 0xffffffff;
  selp.b32 %n, 7, 5, %p;
  st.param.b32 [result+0], %n;
  ret;
}
.func (.param .b32 result) outer(.param .b32 n)
{
  .reg .b64 %wide<4>;
  .reg .b32 %a, %b<4>;
  ld.param.u32 %a, [n];
  cvt.u64.u32 %wide0, %a;
  mul.lo.u64 %wide1, %wide0, 2;
  mul.lo.u64 %wide2, %wide0, 3;
  add.u32 %b1, %a, 1000;
  add.u32 %b2, %a, 2000;
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], 0;
  call (r), meet, (q);
  ld.param.b32 %b0, [r+0];
  }
  add.u64 %wide3, %wide0, %wide1;
  add.u64 %wide3, %wide3, %wide2;
  cvt.u32.u64 %a, %wide3;
  add.u32 %a, %a, %b0;
  add.u32 %a, %a, %b1;
  add.u32 %a, %a, %b2;
  st.param.b32 [result+0], %a;
  ret;
}
)";

TEST(Call, LanesInDifferentFunctionsKeepTheirRegisters) {
  const auto out = run(kMeeting, R"(
  and.b32 %r0, %x, 1;
  setp.ne.u32 %p0, %r0, 0;
  @%p0 bra $MEET;
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], %x;
  call (r), outer, (q);
  ld.param.b32 %d, [r+0];
  }
  bra $END;
$MEET:
  {
  .param .b32 q;
  .param .b32 r;
  st.param.b32 [q+0], 1;
  call (r), meet, (q);
  ld.param.b32 %d, [r+0];
  }
$END:
)");
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i % 2 == 1 ? 7 : i * 8 + 3005) << i;
}

}  // namespace
}  // namespace gpuctl::softgpu::engine::call_test
