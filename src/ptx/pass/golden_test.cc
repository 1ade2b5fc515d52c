// Golden tests of the passes. tests/ptx/PASS/CASE.ptx is a module with one entry; CASE.out.ptx is that entry, with the
// functions copied for it, after PASS. If GPUCTL_UPDATE_GOLDEN is set in the environment, the .out.ptx files are
// written instead of compared.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

namespace fs = std::filesystem;

class PassGolden : public testing::TestWithParam<std::string> {};

/// The entry of `input` after the pass called `pass`.
std::string after_pass(const std::string& input, const std::string& pass) {
  const auto module = parse(input);
  if (!module) return "error: " + module.error().message;
  std::string result = "the pass did not run";
  const RewriteResult rewritten = rewrite(*module, [&](std::string_view name, std::string_view entry) {
    if (name == pass) result = entry;
  });
  EXPECT_EQ(rewritten.entries.size(), 1u);
  EXPECT_EQ(rewritten.entries[0].form, Form::kPersistent) << rewritten.entries[0].reason;
  return result;
}

TEST_P(PassGolden, GivesTheExpectedText) {
  int cases = 0;
  for (const auto& file : fs::directory_iterator(fs::path(PTX_GOLDEN_DIR) / GetParam())) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".ptx") || name.ends_with(".out.ptx")) continue;
    const std::string expected = GetParam() + "/" + file.path().stem().string() + ".out.ptx";
    const std::string actual = after_pass(golden_text(GetParam() + "/" + name), GetParam());
    if (std::getenv("GPUCTL_UPDATE_GOLDEN") != nullptr) std::ofstream(fs::path(PTX_GOLDEN_DIR) / expected) << actual;
    EXPECT_EQ(actual, golden_text(expected)) << GetParam() << "/" << name;
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

INSTANTIATE_TEST_SUITE_P(Passes, PassGolden,
                         testing::Values("split_early_return", "meet_late", "append_launch_args", "replace_returns",
                                         "replace_block_index", "join_finished_threads", "wrap_in_claim_loop"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace gpuctl::ptx
