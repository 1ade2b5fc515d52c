// Runs a kernel of one block in which each lane stores a word.
#pragma once

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine {

/// A kernel `k(out)`. Its body leaves in %d what thread %t stores (%t is its linear index, which is also in %x within
/// the block).
inline std::shared_ptr<const Program> kernel(const std::string& body, const std::string& before = "") {
  return testing::compile(".version 8.5\n.target sm_90\n.address_size 64\n" + before + R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<8>;
  .reg .b32 %d, %t, %x, %r<32>;
  .reg .b64 %o, %rd<16>;
  .shared .align 4 .b8 s[4096];
  ld.param.u64 %o, [out];
  mov.u32 %x, %tid.x;
  mov.u32 %r30, %ctaid.x;
  mov.u32 %r31, %ntid.x;
  mad.lo.u32 %t, %r30, %r31, %x;
  mul.wide.u32 %rd15, %t, 4;
  add.u64 %o, %o, %rd15;
)" + body + "\n  st.global.u32 [%o], %d;\n  ret;\n}\n");
}

inline std::vector<std::uint32_t> run(const std::string& body, std::uint32_t threads, const std::string& before = "") {
  std::vector<std::uint32_t> out(threads, 0xdeadbeef);
  const auto program = kernel(body, before);
  if (program == nullptr) return out;
  testing::Shape shape;
  shape.block.x = threads;
  EXPECT_EQ("", testing::launch(*program, "k", shape, out.data()));
  return out;
}

}  // namespace gpuctl::softgpu::engine
