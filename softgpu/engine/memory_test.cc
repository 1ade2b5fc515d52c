// State spaces, vectors, atomics, variables, and the faults of wrong accesses.
#include <cmath>
#include <thread>

#include "softgpu/engine/testing.h"

namespace gpuctl::softgpu::engine::memory_test {
namespace {

using testing::compile;
using testing::launch;
using testing::Shape;

const std::string kHead = ".version 8.5\n.target sm_90\n.address_size 64\n";

std::shared_ptr<const Program> kernel(const std::string& body, const std::string& before = "") {
  return compile(kHead + before + R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %d, %x, %r<32>;
  .reg .f32 %f<8>;
  .reg .b64 %o, %i, %rd<32>;
  ld.param.u64 %o, [out];
  ld.param.u64 %i, [in];
  mov.u32 %x, %tid.x;
)" + body + "\n  ret;\n}\n");
}

TEST(Memory, WidthsSignsAndVectors) {
  const auto program = kernel(R"(
  ld.global.s8 %r1, [%i];
  ld.global.u8 %r2, [%i];
  ld.global.s16 %rd1, [%i];
  ld.global.u8 %h1, [%i+1];
  st.global.v2.u32 [%o], {%r1, %r2};
  st.global.u64 [%o+8], %rd1;
  st.global.u8 [%o+16], %h1;
  ld.global.v4.u16 {%h1, %h2, %h3, %h4}, [%i];
  st.global.v4.b16 [%o+24], {%h4, %h3, %h2, %h1};
  ld.global.nc.v2.u64 {%rd2, _}, [%i];
  st.global.u64 [%o+32], %rd2;)");
  ASSERT_NE(nullptr, program);
  alignas(16) const std::uint8_t in[16] = {0x85, 0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  alignas(16) std::uint8_t out[40] = {};
  Shape shape;
  shape.block.x = 1;
  ASSERT_EQ("", launch(*program, "k", shape, &out[0], &in[0]));
  const auto at = [&out](std::size_t offset, auto type) {
    std::memcpy(&type, out + offset, sizeof type);
    return type;
  };
  EXPECT_EQ(-123, at(0, std::int32_t{}));
  EXPECT_EQ(0x85, at(4, std::int32_t{}));
  EXPECT_EQ(std::int16_t(0xfe85), at(8, std::int64_t{}));
  EXPECT_EQ(0xfe, out[16]);
  EXPECT_EQ(0xfe85020104030605u,
            at(24, std::uint64_t{}) == 0
                ? 0
                : (std::uint64_t{at(30, std::uint16_t{})} << 48 | std::uint64_t{at(28, std::uint16_t{})} << 32 |
                   std::uint64_t{at(26, std::uint16_t{})} << 16 | at(24, std::uint16_t{})));
  EXPECT_EQ(0x060504030201fe85u, at(32, std::uint64_t{}));
}

TEST(Memory, VariablesAreInitialised) {
  const std::string variables = R"(
.global .align 4 .b32 table[4] = {1, 2, 3};
.const .align 8 .b64 pointer[2] = {table, generic(table)+8};
.global .align 1 .b8 text[4] = {65, 66, 67};
.visible .global .align 4 .f32 number = 0f40490FDB;
)";
  const auto program = kernel(R"(
  mov.u64 %rd1, pointer;
  ld.const.u64 %rd2, [%rd1];
  ld.const.u64 %rd3, [pointer+8];
  ld.global.u32 %r1, [%rd2+4];
  ld.u32 %r2, [%rd3];
  ld.global.u8 %r3, [text+2];
  ld.global.f32 %f1, [number];
  st.global.v2.u32 [%o], {%r1, %r2};
  st.global.u32 [%o+8], %r3;
  st.global.f32 [%o+12], %f1;)",
                              variables);
  ASSERT_NE(nullptr, program);
  alignas(16) std::uint32_t out[4] = {};
  Shape shape;
  shape.block.x = 1;
  ASSERT_EQ("", launch(*program, "k", shape, &out[0], nullptr));
  EXPECT_EQ(2u, out[0]);
  EXPECT_EQ(3u, out[1]);
  EXPECT_EQ(67u, out[2]);
  EXPECT_EQ(0x40490fdbu, out[3]);
  const Symbol* table = program->symbol("table");
  ASSERT_NE(nullptr, table);
  EXPECT_EQ(16u, table->size);
  EXPECT_EQ(0u, table->address % 256);
  EXPECT_FALSE(table->constant);
  EXPECT_TRUE(program->symbol("pointer")->constant);
  EXPECT_EQ(nullptr, program->symbol("nothing"));
  EXPECT_EQ(16u, (*program->kernel("k"))->const_bytes);
}

TEST(Memory, SharedStaticDynamicAndGeneric) {
  const auto program = kernel(R"(
  .shared .align 8 .b8 own[20];
  mov.u32 %r1, own;
  mov.u32 %r2, dyn;
  st.shared.u32 [own+16], 5;
  st.shared.u32 [dyn], 6;
  st.shared.u32 [%r2+4], 7;
  cvt.u64.u32 %rd1, %r2;
  cvta.shared.u64 %rd2, %rd1;
  ld.u32 %r3, [%rd2+4];
  isspacep.shared %p1, %rd2;
  isspacep.global %p2, %rd2;
  isspacep.global %p3, %o;
  cvta.to.shared.u64 %rd3, %rd2;
  ld.shared.u32 %r4, [%rd3];
  ld.shared.u32 %r5, [%r1+16];
  mov.u32 %r6, %dynamic_smem_size;
  sub.u32 %r7, %r2, %r1;
  selp.u32 %r8, 1, 0, %p1;
  @%p2 add.u32 %r8, %r8, 2;
  @%p3 add.u32 %r8, %r8, 4;
  st.global.v4.u32 [%o], {%r3, %r4, %r5, %r6};
  st.global.v2.u32 [%o+16], {%r7, %r8};)",
                              ".extern .shared .align 16 .b8 dyn[];\n");
  ASSERT_NE(nullptr, program);
  alignas(16) std::uint32_t out[6] = {};
  Shape shape;
  shape.block.x = 1;
  shape.dynamic_shared = 8;
  ASSERT_EQ("", launch(*program, "k", shape, &out[0], nullptr));
  EXPECT_EQ(20u, (*program->kernel("k"))->static_shared);
  const std::uint32_t want[] = {7, 6, 5, 8, 32, 5};
  for (int i = 0; i < 6; ++i) EXPECT_EQ(want[i], out[i]) << i;
  EXPECT_NE(std::string::npos, launch(*program, "k", Shape{}, &out[0], nullptr).find("outside"));
}

TEST(Memory, ModuleSharedVariablesCostOnlyTheirUsers) {
  const auto program = compile(kHead + R"(
.shared .align 4 .b8 a[1000];
.shared .align 4 .b8 b[3000];
.visible .entry ka() { .reg .b32 %r; mov.u32 %r, 1; st.shared.u32 [a], %r; ret; }
.visible .entry kb() { .reg .b32 %r; mov.u32 %r, 1; st.shared.u32 [b+2996], %r; ret; }
.visible .entry kc() { ret; }
)");
  ASSERT_NE(nullptr, program);
  EXPECT_EQ(1000u, (*program->kernel("ka"))->static_shared);
  EXPECT_EQ(3000u, (*program->kernel("kb"))->static_shared);
  EXPECT_EQ(0u, (*program->kernel("kc"))->static_shared);
  EXPECT_EQ("", launch(*program, "kb", Shape{}));
}

TEST(Memory, LocalIsPrivateToEachThread) {
  const auto program = kernel(R"(
  .local .align 16 .b8 depot[64];
  .reg .b64 %SP, %SPL;
  mov.u64 %SPL, depot;
  cvta.local.u64 %SP, %SPL;
  add.u64 %rd1, %SP, 8;
  st.u32 [%rd1], %x;
  bar.sync 0;
  ld.local.u32 %r1, [%SPL+8];
  ld.local.u32 %r2, [depot+8];
  add.u32 %r1, %r1, %r2;
  isspacep.local %p1, %rd1;
  @%p1 add.u32 %r1, %r1, 1;
  mul.wide.u32 %rd2, %x, 4;
  add.u64 %rd2, %o, %rd2;
  st.global.u32 [%rd2], %r1;)");
  ASSERT_NE(nullptr, program);
  std::vector<std::uint32_t> out(100);
  Shape shape;
  shape.block.x = 100;
  ASSERT_EQ("", launch(*program, "k", shape, out.data(), nullptr));
  for (std::uint32_t i = 0; i < 100; ++i) EXPECT_EQ(2 * i + 1, out[i]);
}

TEST(Memory, ParametersByAddressAndInStructs) {
  struct Big {
    std::uint32_t word[6];
    std::uint64_t wide;
  };
  const auto program = compile(kHead + R"(
.visible .entry k(.param .u8 small, .param .align 8 .b8 big[32], .param .u64 out)
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  mov.b64 %rd1, big;
  ld.param.u32 %r1, [%rd1+8];
  ld.param.v2.u32 {%r2, %r3}, [big+16];
  ld.param.u64 %rd2, [big+24];
  ld.param.s8 %r4, [small];
  ld.param.u64 %rd3, [out];
  st.global.v4.u32 [%rd3], {%r1, %r2, %r3, %r4};
  st.global.u64 [%rd3+16], %rd2;
  ret;
}
)");
  ASSERT_NE(nullptr, program);
  const Kernel& k = **program->kernel("k");
  ASSERT_EQ(3u, k.params.size());
  EXPECT_EQ(8u, k.params[1].offset);
  EXPECT_EQ(48u, k.param_bytes);
  alignas(16) std::uint32_t out[6] = {};
  Shape shape;
  shape.block.x = 1;
  ASSERT_EQ("", launch(*program, "k", shape, std::int8_t{-2}, Big{{1, 2, 3, 4, 5, 6}, 7}, &out[0]));
  EXPECT_EQ(3u, out[0]);
  EXPECT_EQ(5u, out[1]);
  EXPECT_EQ(6u, out[2]);
  EXPECT_EQ(-2, static_cast<std::int32_t>(out[3]));
  EXPECT_EQ(7u, out[4]);
}

TEST(Atomics, EveryOperation) {
  const auto program = kernel(R"(
  atom.global.add.u32 %r1, [%o], 3;
  atom.global.min.s32 %r1, [%o+4], -5;
  atom.global.max.u32 %r1, [%o+8], -5;
  red.global.inc.u32 [%o+12], 20;
  atom.global.dec.u32 %r1, [%o+16], 20;
  red.global.or.b32 [%o+20], 1;
  atom.global.xor.b32 %r1, [%o+24], -1;
  atom.global.and.b32 %r1, [%o+28], 6;
  mov.f32 %f1, 0f3F000000;
  red.global.add.f32 [%o+32], %f1;
  atom.global.exch.b32 %r2, [%o+36], %x;
  mov.u64 %rd1, 10000000000;
  red.relaxed.gpu.global.add.u64 [%o+40], %rd1;
  mov.u32 %r3, 0x3c004000;
  red.global.add.noftz.f16x2 [%o+48], %r3;)");
  ASSERT_NE(nullptr, program);
  alignas(8) std::uint32_t out[13] = {0, 0, 0, 0, 5, 6, 0, 7, 0, 99, 0, 0, 0};
  ASSERT_EQ("", launch(*program, "k", Shape{}, &out[0], nullptr));
  EXPECT_EQ(96u, out[0]);
  EXPECT_EQ(-5, static_cast<std::int32_t>(out[1]));
  EXPECT_EQ(static_cast<std::uint32_t>(-5), out[2]);
  EXPECT_EQ(32u % 21, out[3]);
  EXPECT_EQ((5u + 21 * 2 - 32) % 21, out[4]);
  EXPECT_EQ(7u, out[5]);
  EXPECT_EQ(0u, out[6]);
  EXPECT_EQ(6u, out[7]);
  EXPECT_EQ(16.0f, __builtin_bit_cast(float, out[8]));
  EXPECT_LT(out[9], 32u);
  std::uint64_t wide;
  std::memcpy(&wide, &out[10], 8);
  EXPECT_EQ(320000000000u, wide);
  EXPECT_EQ(0x50005400u, out[12]);  // 32 and 64 in halves
}

TEST(Atomics, BlocksOnSeveralThreads) {
  // Additions, and increments under a lock in memory, from blocks on four OS threads.
  const auto program = kernel(R"(
  mov.u32 %r1, 0;
$AGAIN:
  red.global.add.u32 [%o], 1;
  mov.f32 %f1, 0f3F800000;
  red.global.add.f32 [%o+4], %f1;
$TRY:
  atom.global.acquire.gpu.cas.b32 %r2, [%o+8], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra $TRY;
  ld.global.u32 %r3, [%o+12];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%o+12], %r3;
  st.release.gpu.global.u32 [%o+8], 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p2, %r1, 50;
  @%p2 bra $AGAIN;)");
  ASSERT_NE(nullptr, program);
  alignas(16) std::uint32_t out[4] = {};
  std::vector<std::thread> threads;
  std::string errors[4];
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Shape shape;
      shape.block.x = 64;
      errors[t] = launch(*program, "k", shape, &out[0], nullptr);
    });
  for (auto& thread : threads) thread.join();
  for (const std::string& error : errors) EXPECT_EQ("", error);
  EXPECT_EQ(4u * 64 * 50, out[0]);
  EXPECT_EQ(12800.0f, __builtin_bit_cast(float, out[1]));
  EXPECT_EQ(12800u, out[3]);
}

TEST(Memory, CopiesAsynchronously) {
  const auto program = kernel(R"(
  .shared .align 16 .b8 buffer[512];
  mov.u32 %r1, buffer;
  shl.b32 %r2, %x, 4;
  add.u32 %r1, %r1, %r2;
  cvt.u64.u32 %rd1, %r2;
  add.u64 %rd2, %i, %rd1;
  add.u64 %rd3, %o, %rd1;
  cp.async.ca.shared.global [%r1], [%rd2], 16, 12;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, [%r1];
  st.global.v4.u32 [%rd3], {%r3, %r4, %r5, %r6};)");
  ASSERT_NE(nullptr, program);
  struct alignas(16) Row {
    std::uint32_t v[4];
  };
  std::vector<Row> in(32), out(32);
  for (std::uint32_t i = 0; i < 32; ++i) in[i] = {{i, i + 1, i + 2, i + 3}};
  ASSERT_EQ("", launch(*program, "k", Shape{}, out.data(), in.data()));
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(i + 2, out[i].v[2]);
    EXPECT_EQ(0u, out[i].v[3]);
  }
}

std::string fault(const std::string& body, const MemoryMap* memory = nullptr) {
  const auto program = kernel(body);
  if (program == nullptr) return {};
  alignas(16) std::uint32_t out[64] = {};
  Shape shape;
  shape.memory = memory;
  return launch(*program, "k", shape, &out[0], &out[0]);
}

void expect_fault(const std::string& body, const std::string& what) {
  const std::string message = fault(body);
  EXPECT_NE(std::string::npos, message.find(what)) << message;
  EXPECT_NE(std::string::npos, message.find("kernel k, PTX line 17")) << message;
}

TEST(Faults, NameTheLine) {
  expect_fault("\n\n  ld.global.u32 %r1, [%o+2];", "misaligned");
  expect_fault("  mov.u64 %rd1, 16;\n\n  st.global.u32 [%rd1], %r1;", "null");
  expect_fault("  .shared .b8 small[16];\n  mov.u32 %r1, small;\n  ld.shared.u32 %r2, [%r1+16];", "outside");
  expect_fault("  setp.eq.u32 %p1, %x, 9;\n\n  @%p1 trap;", "trap");
}

class OneRange : public MemoryMap {
 public:
  explicit OneRange(Range range) : range_(range) {}
  Range find(std::uint64_t address) const override {
    ++asked;
    return address >= range_.begin && address < range_.end ? range_ : Range{};
  }
  mutable int asked = 0;

 private:
  Range range_;
};

TEST(Faults, TheMemoryMapDecides) {
  const auto program = kernel("  mul.wide.u32 %rd1, %x, 4;\n  add.u64 %rd1, %o, %rd1;\n  st.global.u32 [%rd1], %x;");
  ASSERT_NE(nullptr, program);
  std::vector<std::uint32_t> out(64);
  const auto begin = reinterpret_cast<std::uint64_t>(out.data());
  Shape shape;
  shape.block.x = 64;
  const OneRange all({begin, begin + 256}), some({begin, begin + 252});
  shape.memory = &all;
  EXPECT_EQ("", launch(*program, "k", shape, out.data(), nullptr));
  EXPECT_EQ(1, all.asked);
  shape.memory = &some;
  EXPECT_NE(std::string::npos, launch(*program, "k", shape, out.data(), nullptr).find("invalid address"));
}

TEST(Faults, AnUnsupportedInstructionSpoilsItsKernelsOnly) {
  const auto program = compile(kHead + R"(
.func helper() { .reg .b64 %rd; mbarrier.init.shared.b64 [%rd], 1; ret; }
.visible .entry bad() { call helper, (); ret; }
.visible .entry good() { ret; }
)");
  ASSERT_NE(nullptr, program);
  const auto bad = program->kernel("bad");
  ASSERT_FALSE(bad);
  EXPECT_NE(std::string::npos, bad.error().message.find("line 5: `mbarrier.init.shared.b64`")) << bad.error().message;
  EXPECT_TRUE(program->kernel("good").has_value());
  EXPECT_FALSE(program->kernel("none").has_value());
}

}  // namespace
}  // namespace gpuctl::softgpu::engine::memory_test
