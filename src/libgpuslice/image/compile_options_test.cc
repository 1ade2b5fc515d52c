#include "libgpuslice/image/compile_options.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpuslice {
namespace {

TEST(FatbinOptions, RegisterLimit) {
  EXPECT_EQ(fatbin_register_limit(""), 0);
  EXPECT_EQ(fatbin_register_limit("-O3  -v --generate-line-info"), 0);
  EXPECT_EQ(fatbin_register_limit("-maxrregcount=32 -O3"), 32);
  EXPECT_FALSE(fatbin_register_limit("-fmad=false"));
  EXPECT_FALSE(fatbin_register_limit("-maxrregcount=32 -O0"));
}

std::optional<int> nvrtc(std::vector<const char*> options) {
  return nvrtc_register_limit(options);
}

TEST(NvrtcOptions, RegisterLimit) {
  EXPECT_EQ(nvrtc({}), 0);
  EXPECT_EQ(nvrtc({"-arch=sm_90", "--std=c++17", "-fmad=false", "-I/include", "-DG=1", "--use_fast_math"}), 0);
  EXPECT_EQ(nvrtc({"--maxrregcount=64"}), 64);
  EXPECT_EQ(nvrtc({"-maxrregcount", "40", "-w"}), 40);
  EXPECT_FALSE(nvrtc({"-w", "-maxrregcount"}));
}

TEST(NvrtcOptions, ThoseForPtxasMatter) {
  EXPECT_FALSE(nvrtc({"-G"}));
  EXPECT_FALSE(nvrtc({"--device-debug"}));
  EXPECT_FALSE(nvrtc({"-w", "--ptxas-options=-O1"}));
  EXPECT_FALSE(nvrtc({"-Xptxas", "-O1"}));
  EXPECT_FALSE(nvrtc({"-Xptxas=-O1"}));
}

std::optional<PtxasRun> ptxas(std::vector<std::string> words) {
  words.insert(words.begin(), "/usr/bin/ptxas");
  return read_ptxas_command(words);
}

TEST(PtxasCommand, OneInputOneOutput) {
  const auto run = ptxas({"-lineinfo", "-v", "--gpu-name=sm_90a", "/tmp/x.ptx", "-o", "/tmp/x.ptx.o"});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->input, "/tmp/x.ptx");
  EXPECT_EQ(run->output, "/tmp/x.ptx.o");
  EXPECT_EQ(run->max_registers, 0);
  EXPECT_EQ(ptxas({"x.ptx"})->output, "elf.o");
  EXPECT_FALSE(ptxas({"x.ptx", "y.ptx", "-o", "z"}));
  EXPECT_FALSE(ptxas({"-v"}));
  EXPECT_FALSE(ptxas({"--version"}));
  EXPECT_FALSE(ptxas({"x.ptx", "-o"}));
}

TEST(PtxasCommand, OptionsInAllSpellings) {
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--maxrregcount=24", "-arch=sm_90", "--output-file=o"},
        {"--maxrregcount", "24", "-arch", "sm_90", "-o=o"},
        {"-maxrregcount=24", "--machine=64", "--output-file", "o"},
        {"-maxrregcount", "24", "-m", "64", "-O3", "-o", "o"}}) {
    std::vector<std::string> words = options;
    words.push_back("x.ptx");
    const auto run = ptxas(words);
    ASSERT_TRUE(run) << options[0] << ' ' << options[1];
    EXPECT_EQ(run->input, "x.ptx");
    EXPECT_EQ(run->output, "o");
    EXPECT_EQ(run->max_registers, 24);
  }
  EXPECT_TRUE(ptxas({"x.ptx", "--fmad=true", "--opt-level", "3", "-w"}));
}

TEST(PtxasCommand, OptionsThatChangeWhatIsComputedOrMade) {
  for (const char* option :
       {"--fmad=false", "-O0", "-O1", "--opt-level=2", "-c", "--compile-only", "-g", "--device-debug",
        "--maxrregcount=archmax", "--input-as-string", "--options-file=f", "@f", "--some-new-option"}) {
    EXPECT_FALSE(ptxas({option, "x.ptx", "-o", "o"})) << option;
  }
  EXPECT_FALSE(ptxas({"x.ptx", "-o", "o", "-fmad", "false"}));
}

}  // namespace
}  // namespace gpuslice
