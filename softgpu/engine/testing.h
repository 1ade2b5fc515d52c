// For the tests of the engine: compiles a PTX text, runs its kernels, and reads the memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ptx/syntax/parser.h"
#include "softgpu/engine/engine.h"

namespace gpuctl::softgpu::engine::testing {

inline std::shared_ptr<const Program> compile(const std::string& text) {
  Result<ptx::Module> module = ptx::parse(text);
  if (!module) {
    ADD_FAILURE() << module.error().message;
    return nullptr;
  }
  Result<std::shared_ptr<const Program>> program = Program::compile(*module);
  if (!program) {
    ADD_FAILURE() << program.error().message;
    return nullptr;
  }
  return *program;
}

/// Arguments packed as the kernel's parameters say.
class Arguments {
 public:
  explicit Arguments(const Kernel& kernel) : kernel_(kernel), bytes_(kernel.param_bytes + 1) {}
  template <class T>
  Arguments& add(const T& value) {
    const Param& param = kernel_.params.at(next_++);
    EXPECT_EQ(sizeof(T), param.size);
    std::memcpy(bytes_.data() + param.offset, &value, sizeof(T));
    return *this;
  }
  const std::byte* data() const { return bytes_.data(); }

 private:
  const Kernel& kernel_;
  std::vector<std::byte> bytes_;
  std::size_t next_ = 0;
};

struct Shape {
  Dim3 grid{1, 1, 1};
  Dim3 block{32, 1, 1};
  std::uint32_t dynamic_shared = 0;
  const MemoryMap* memory = nullptr;
  PrintSink* print = nullptr;
  const std::atomic<bool>* abort = nullptr;
};

/// Runs all blocks one after the other. Returns the first error, or an empty string.
template <class... T>
std::string launch(const Program& program, const std::string& name, const Shape& shape, const T&... values) {
  const Result<const Kernel*> kernel = program.kernel(name);
  if (!kernel) return kernel.error().message;
  Arguments arguments(**kernel);
  (arguments.add(values), ...);
  BlockScratch scratch;
  BlockLaunch block;
  block.program = &program;
  block.kernel = *kernel;
  block.grid = shape.grid;
  block.block = shape.block;
  block.params = arguments.data();
  block.dynamic_shared = shape.dynamic_shared;
  block.memory = shape.memory;
  block.print = shape.print;
  block.abort = shape.abort;
  for (block.ctaid.z = 0; block.ctaid.z < shape.grid.z; ++block.ctaid.z)
    for (block.ctaid.y = 0; block.ctaid.y < shape.grid.y; ++block.ctaid.y)
      for (block.ctaid.x = 0; block.ctaid.x < shape.grid.x; ++block.ctaid.x)
        if (const Result<BlockStats> stats = run_block(block, scratch); !stats) return stats.error().message;
  return {};
}

/// A module with one kernel `k(out, a, b, c)` of pointers: each thread loads elements of `in_type` (with registers of
/// class `in_reg`) a, b and c at its linear index, runs `body`, which leaves %d, and stores it as `out_type`.
inline std::string elementwise(const std::string& in_type, const std::string& out_type, const std::string& body) {
  const auto reg = [](const std::string& type) {
    const std::string bits = type.substr(type.find_first_of("0123456789"));
    return bits == "8" ? std::string("b16") : bits == "16x2" ? std::string("b32") : "b" + bits;
  };
  const auto width = [](const std::string& type) {
    const std::string bits = type.substr(type.find_first_of("0123456789"));
    return bits == "16x2" ? 32 : std::stoi(bits);
  };
  const auto bits = [&](const std::string& type) { return "b" + std::to_string(width(type)); };
  const std::string in = bits(in_type), out = bits(out_type);
  std::string text =
      ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 o, .param .u64 pa, "
      ".param .u64 pb, .param .u64 pc)\n{\n.reg .pred %p, %q;\n.reg .b32 %t, %n, %x, %y, %z;\n"
      ".reg .b64 %po, %pa, %pb, %pc, %off, %w;\n.reg .b16 %h, %g;\n";
  text += ".reg ." + reg(in_type) + " %a, %b, %c;\n.reg ." + reg(out_type) + " %d, %e;\n";
  text +=
      "ld.param.u64 %po, [o];\nld.param.u64 %pa, [pa];\nld.param.u64 %pb, [pb];\nld.param.u64 %pc, [pc];\n"
      "mov.u32 %t, %ctaid.x;\nmov.u32 %n, %ntid.x;\nmov.u32 %x, %tid.x;\nmad.lo.u32 %t, %t, %n, %x;\n";
  const std::string in_bytes = std::to_string(width(in_type) / 8), out_bytes = std::to_string(width(out_type) / 8);
  text += "mul.wide.u32 %off, %t, " + in_bytes + ";\n";
  for (const std::string v : {"a", "b", "c"})
    text += "add.u64 %p" + v + ", %p" + v + ", %off;\nld.global." + in + " %" + v + ", [%p" + v + "];\n";
  text += "mul.wide.u32 %off, %t, " + out_bytes + ";\nadd.u64 %po, %po, %off;\n" + body + "\nst.global." + out +
          " [%po], %d;\nret;\n}\n";
  return text;
}

/// Runs `body` (see elementwise) over the vectors, whose size must be a multiple of 32.
template <class Out, class In>
std::vector<Out> run_elementwise(const std::string& in_type, const std::string& out_type, const std::string& body,
                                 const std::vector<In>& a, const std::vector<In>& b, const std::vector<In>& c) {
  std::vector<Out> out(a.size());
  const auto program = compile(elementwise(in_type, out_type, body));
  if (program == nullptr) return out;
  Shape shape;
  shape.grid.x = static_cast<std::uint32_t>(a.size() / 32);
  EXPECT_EQ("", launch(*program, "k", shape, out.data(), a.data(), b.data(), c.data())) << body;
  return out;
}

/// A kernel `k(out)`. Its body leaves in %d what thread %t stores (%t is its linear index, which is also in %x within
/// the block).
inline std::shared_ptr<const Program> kernel(const std::string& body, const std::string& before = "") {
  return compile(".version 8.5\n.target sm_90\n.address_size 64\n" + before + R"(
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
  Shape shape;
  shape.block.x = threads;
  EXPECT_EQ("", launch(*program, "k", shape, out.data()));
  return out;
}

}  // namespace gpuctl::softgpu::engine::testing
