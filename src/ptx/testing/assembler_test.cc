// What ptxas and the control flow say of the rewritten golden files.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "ptx/analysis/flow.h"
#include "ptx/lexical/lexer.h"
#include "ptx/persistent_abi.h"
#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"
#include "ptx/testing/test_files.h"

namespace gpuctl::ptx {
namespace {

namespace fs = std::filesystem;

/// Runs ptxas over `text` and returns its exit status.
int assemble(const std::string& text, const std::string& arch) {
  const fs::path file = fs::temp_directory_path() / ("gpuctl-ptx-" + std::to_string(getpid()) + ".ptx");
  std::ofstream(file) << text;
  const std::string command = std::string(PTXAS) + " -c -arch=" + arch + " " + file.string() + " -o /dev/null";
  const int status = std::system(command.c_str());
  fs::remove(file);
  return status;
}

/// The golden files that are modules for today's architectures, by file name.
std::map<std::string, std::string> golden_modules() {
  std::map<std::string, std::string> modules;
  for (const char* folder : {"split_early_return", "append_launch_args", "replace_returns", "replace_block_index",
                             "join_finished_threads", "wrap_in_claim_loop", "defects", "round_trip"}) {
    for (const auto& file : fs::directory_iterator(fs::path(PTX_GOLDEN_DIR) / folder)) {
      const std::string name = file.path().filename();
      if (!name.ends_with(".ptx") || name.ends_with(".out.ptx") || name.find("sm_35") != name.npos) continue;
      modules[name] = golden_text(std::string(folder) + "/" + name);
    }
  }
  return modules;
}

TEST(Rewrite, GivesWhatThePtxAssemblerAccepts) {
  if (std::string(PTXAS).empty()) GTEST_SKIP() << "no ptxas in the toolkit";
  int persistent = 0;
  for (const auto& [name, text] : golden_modules()) {
    const auto rewritten = rewrite_text(text);
    ASSERT_TRUE(rewritten) << name;
    for (const EntryReport& report : rewritten->entries) persistent += report.form == Form::kPersistent;
    const bool only_90 = name.find("sm_90") != name.npos;
    if (!only_90 && name != "shared_and_async_copy.ptx" && name != "mbarrier.ptx") {
      EXPECT_EQ(assemble(rewritten->text, "sm_75"), 0) << name;
    }
    EXPECT_EQ(assemble(rewritten->text, name.find("sm_90a") != name.npos ? "sm_90a" : "sm_90"), 0) << name;
  }
  EXPECT_GT(persistent, 60);
}

// ptxas compiles branches inside a loop with several entries wrongly (wrap_in_claim_loop.cc).
TEST(Rewrite, GivesEveryLoopOneEntry) {
  int persistent = 0;
  for (const auto& [name, text] : golden_modules()) {
    const auto module = parse(text);
    ASSERT_TRUE(module) << name;
    for (const Item& item : rewrite(*module).module.items) {
      const auto* function = std::get_if<Function>(&item);
      if (function == nullptr || !function->body || !function->name.ends_with(kPersistentSuffix)) continue;
      const auto flow = build_flow(*function);
      ASSERT_TRUE(flow) << name << " " << function->name;
      EXPECT_FALSE(flow->irreducible) << name << " " << function->name;
      ++persistent;
    }
  }
  EXPECT_GT(persistent, 60);
}

}  // namespace
}  // namespace gpuctl::ptx
