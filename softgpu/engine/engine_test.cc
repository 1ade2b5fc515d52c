#include "softgpu/engine/engine.h"

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine::engine_test {
namespace {

using testing::compile;
using testing::launch;
using testing::Shape;

const char kHead[] = ".version 8.5\n.target sm_90\n.address_size 64\n";

TEST(Engine, AddsVectors) {
  const auto program = compile(std::string(kHead) + R"(
.visible .entry add(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [pa];
  ld.param.u64 %rd2, [pb];
  ld.param.u64 %rd3, [pc];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $END;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  add.s64 %rd8, %rd2, %rd5;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f2, %f1;
  add.s64 %rd10, %rd3, %rd5;
  st.global.f32 [%rd10], %f3;
$END:
  ret;
}
)");
  ASSERT_NE(nullptr, program);
  std::vector<float> a(1000), b(1000), c(1000, -1);
  for (int i = 0; i < 1000; ++i)
    a[static_cast<std::size_t>(i)] = static_cast<float>(i) / 3,
    b[static_cast<std::size_t>(i)] = static_cast<float>(i * i);
  Shape shape;
  shape.grid.x = 10;
  shape.block.x = 100;
  ASSERT_EQ("", launch(*program, "add", shape, a.data(), b.data(), c.data(), 990u));
  for (std::size_t i = 0; i < 1000; ++i) EXPECT_EQ(i < 990 ? a[i] + b[i] : -1.0f, c[i]) << i;
}

}  // namespace
}  // namespace gpuctl::softgpu::engine::engine_test
