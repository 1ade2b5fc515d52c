#include "gpuslice-compile/make_forms.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "gpuslice-compile/compiler.h"
#include "ptx/persistent_abi.h"

namespace gpuctl::compile {
namespace {

using gpuslice::Forms;

constexpr char kPtx[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 one_0)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [one_0];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
.visible .entry none()
{
  .reg .b32 %r<4>;
  mov.u32 %r1, %clusterid.x;
  ret;
}
)";

Forms make(const std::string& ptx, const std::string& compiler = "") {
  return make_forms({.ptx = ptx, .key = {}, .sm = 90, .max_registers = 0, .by_driver = false, .linker = {}}, compiler);
}

std::string only_opaque() {
  const std::string text = kPtx;
  const std::size_t begin = text.find(".visible .entry one"), end = text.find(".visible .entry none");
  return text.substr(0, begin) + text.substr(end);
}

TEST(MakeFormsTest, MakesMachineCodeWithBothEntries) {
  for (const char* compiler : {"nvjitlink", "ptxas"}) {
    const Forms forms = make(kPtx, compiler);
    if (forms.reason.find("there is no") != std::string::npos) {
      std::cerr << "not tried: " << forms.reason << '\n';
      continue;
    }
    EXPECT_EQ(forms.reason, "") << compiler;
    EXPECT_TRUE(
        forms.code.starts_with("\x7f"
                               "ELF"))
        << compiler;
    EXPECT_NE(forms.code.find(std::string("one") + ptx::kPersistentSuffix), std::string::npos) << compiler;
    ASSERT_EQ(forms.kernels.size(), 2u);
    EXPECT_TRUE(forms.kernels[0].persistent);
    EXPECT_FALSE(forms.kernels[1].persistent);
    EXPECT_TRUE(forms.stands_alone);
  }
}

TEST(MakeFormsTest, AWholeProgramIsCompiledWhereThatCanBe) {
  const Forms whole = make(kPtx, "ptxas");
  if (!whole.reason.empty()) GTEST_SKIP() << whole.reason;
  EXPECT_EQ(make(kPtx).code, whole.code);
}

TEST(MakeFormsTest, FindsTheCompilersOfAPythonEnvironment) {
  namespace fs = std::filesystem;
  std::string pattern = testing::TempDir() + "site-packages-XXXXXX";
  const fs::path site = ::mkdtemp(pattern.data());
  const fs::path triton = site / "triton/backends/nvidia/bin/ptxas", wheel = site / "nvidia/cuda_nvcc/bin/ptxas";
  for (const fs::path& program : {triton, wheel}) {
    fs::create_directories(program.parent_path());
    std::ofstream(program).put('\n');
    fs::permissions(program, fs::perms::owner_all);
  }
  const auto found = ptxas_programs(site / "nvidia/nvjitlink/lib/libnvJitLink.so.12");
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(found[0], wheel.string()) << "before those of the machine, which may be too new for the driver";
  EXPECT_EQ(found[1], triton.string());
  EXPECT_EQ(std::ranges::count(ptxas_programs(""), triton.string()), 0);
  fs::remove_all(site);
}

TEST(MakeFormsTest, SaysWhatItDoesNotUnderstand) {
  const Forms forms = make(".version 8.0\n.target sm_80\n.visible .entry x( {");
  EXPECT_TRUE(forms.reason.starts_with("PTX not understood: ")) << forms.reason;
  EXPECT_EQ(forms.code, "");
}

TEST(MakeFormsTest, CompilesNothingWhereNoKernelHasAnotherForm) {
  const Forms forms = make(only_opaque(), "no such compiler");
  EXPECT_EQ(forms.reason, "");
  EXPECT_EQ(forms.code, "");
  ASSERT_EQ(forms.kernels.size(), 1u);
  EXPECT_FALSE(forms.kernels[0].reason.empty());
}

TEST(MakeFormsTest, SaysWhyItDidNotCompile) {
  const Forms forms = make(kPtx, "no such compiler");
  EXPECT_EQ(forms.reason, "its rewritten PTX was not compiled: there is no compiler 'no such compiler'");
  EXPECT_EQ(forms.kernels.size(), 2u);
}

TEST(MakeFormsTest, ArchitecturesHaveTheirSuffix) {
  EXPECT_EQ(target_suffix(".version 8.0\n.target sm_90a\n"), 'a');
  EXPECT_EQ(target_suffix(".version 8.0\n.target sm_100f, debug\n"), 'f');
  EXPECT_EQ(target_suffix(".version 8.0\n.target sm_90\n"), '\0');
  EXPECT_EQ(target_suffix("no target"), '\0');
  EXPECT_EQ(architecture({.text = {}, .sm = 90, .suffix = 'a'}), "sm_90a");
}

}  // namespace
}  // namespace gpuctl::compile
