// Measures the speed of the engine in thread-instructions per second of CPU time, for the kinds of instructions that
// programs use. Prints one line each: name, millions of thread-instructions per second, nanoseconds per
// warp-instruction.
#include <time.h>

#include <cstdio>
#include <string>
#include <vector>

#include "ptx/syntax/parser.h"
#include "softgpu/engine/engine.h"

namespace {

using namespace gpuctl::softgpu::engine;  // a program of one file

constexpr int kUnroll = 16;

std::string text(const std::string& body) {
  std::string t = R"(.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 memory)
{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  .shared .align 16 .b8 s[4096];
  ld.param.u64 %rd1, [memory];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  shl.b32 %r3, %r1, 2;
  mov.u32 %r4, s;
  add.u32 %r3, %r3, %r4;
  mov.u32 %r2, 0;
  mov.f32 %f1, 0f3F800000;
  mov.f32 %f2, 0f3F000000;
$LOOP:
)";
  for (int i = 0; i < kUnroll; ++i) {
    std::string part = body;
    for (std::size_t at; (at = part.find('#')) != std::string::npos;) part.replace(at, 1, std::to_string(i));
    t += part + "\n";
  }
  return t + "  add.u32 %r2, %r2, 1;\n  setp.lt.u32 %p1, %r2, 2000;\n  @%p1 bra $LOOP;\n  ret;\n}\n";
}

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  const std::pair<const char*, const char*> kernels[] = {
      {"fma.f32", "  fma.rn.f32 %f1, %f1, %f2, %f2;"},
      {"add.s32", "  add.s32 %r5, %r5, %r1;"},
      {"mad.wide.u32", "  mad.wide.u32 %rd3, %r5, %r1, %rd3;"},
      {"setp + selp", "  setp.lt.s32 %p2, %r5, %r2;\n  selp.b32 %r5, %r1, %r2, %p2;"},
      {"ld.global.f32", "  ld.global.f32 %f3, [%rd1+4];"},
      {"st.global.f32", "  st.global.f32 [%rd1], %f1;"},
      {"ld + fma + st", "  ld.global.f32 %f3, [%rd1];\n  fma.rn.f32 %f3, %f3, %f2, %f1;\n  st.global.f32 [%rd1], %f3;"},
      {"ld.shared.f32", "  ld.shared.f32 %f3, [%r3];"},
      {"shfl.sync", "  shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;"},
      {"bar.sync", "  bar.sync 0;"},
      {"atom.shared.add", "  atom.shared.add.u32 %r5, [%r3], 1;"},
      {"red.global.add", "  red.global.add.u32 [%rd1], 1;"},
      {"divergent add",
       "  and.b32 %r6, %r1, 1;\n  setp.eq.u32 %p3, %r6, 0;\n  @%p3 bra $A#;\n  add.s32 %r5, %r5, 3;\n  bra.uni "
       "$B#;\n$A#:\n  add.s32 %r5, %r5, 1;\n$B#:"},
      {"div.f32 + sqrt", "  div.rn.f32 %f4, %f1, %f2;\n  sqrt.rn.f32 %f4, %f4;"},
      {"fma.f64", "  fma.rn.f64 %rd4, %rd4, %rd5, %rd4;"},
  };
  std::vector<float> memory(4096, 1.0f);
  for (const auto& [name, body] : kernels) {
    const auto module = gpuctl::ptx::parse(text(body));
    const auto program = Program::compile(*module);
    const auto kernel = (*program)->kernel("k");
    if (!kernel) {
      std::printf("%s: %s\n", name, kernel.error().message.c_str());
      return 1;
    }
    const float* pointer = memory.data();
    BlockScratch scratch;
    BlockLaunch launch;
    launch.program = program->get();
    launch.kernel = *kernel;
    launch.block.x = 256;
    launch.params = reinterpret_cast<const std::byte*>(&pointer);
    const double start = cpu_ns();
    const auto stats = run_block(launch, scratch);
    const double time = cpu_ns() - start;
    std::printf("%-16s %8.0f M thread-instructions/s %8.1f ns/warp-instruction\n", name,
                static_cast<double>(stats->thread_instructions) * 1e3 / time,
                time / static_cast<double>(stats->warp_instructions));
  }
}
