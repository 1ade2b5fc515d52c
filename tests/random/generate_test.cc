#include "generate.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "polling.h"
#include "ptx/rewrite.h"
#include "ptx/syntax/parser.h"
#include "ptx/syntax/printer.h"

namespace gpuctl::random_kernels {
namespace {

constexpr std::uint64_t kSeeds = 300;

TEST(Generate, SeedNamesTheModule) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const RandomModule one = generate(seed), other = generate(seed);
    EXPECT_EQ(one.ptx, other.ptx);
    ASSERT_EQ(one.kernels.size(), other.kernels.size());
    for (std::size_t i = 0; i < one.kernels.size(); ++i) EXPECT_EQ(one.kernels[i].grid, other.kernels[i].grid);
    texts.insert(one.ptx);
  }
  EXPECT_EQ(texts.size(), 50u);
}

TEST(Generate, ShapesAreWithinTheirBounds) {
  std::set<unsigned> grid_dimensions, block_dimensions, remainders, kernels;
  const auto dimensions = [](const std::array<std::uint32_t, 3>& shape) {
    return unsigned{shape[0] > 1} + unsigned{shape[1] > 1} + unsigned{shape[2] > 1};
  };
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomModule module = generate(seed);
    kernels.insert(static_cast<unsigned>(module.kernels.size()));
    for (const KernelShape& shape : module.kernels) {
      EXPECT_GE(shape.threads_per_block(), 1u);
      EXPECT_LE(shape.threads_per_block(), 256u);
      EXPECT_GE(shape.blocks(), 50u);
      EXPECT_LE(shape.blocks(), 1500u);
      EXPECT_LE(shape.threads() * kCellsPerThread, 900'000u);
      grid_dimensions.insert(dimensions(shape.grid));
      block_dimensions.insert(dimensions(shape.block));
      remainders.insert(shape.threads_per_block() % 32);
    }
  }
  EXPECT_EQ(kernels, (std::set<unsigned>{1, 2, 3}));
  EXPECT_EQ(grid_dimensions, (std::set<unsigned>{1, 2, 3}));
  EXPECT_EQ(block_dimensions, (std::set<unsigned>{0, 1, 2, 3}));
  EXPECT_GT(remainders.size(), 20u);
}

/// A branch that not all threads take, and a function, are where calls would be made by some threads only.
TEST(Generate, CallsTogetherAreFewer) {
  const auto calls = [](const std::string& text) {
    unsigned count = 0;
    for (std::size_t at = text.find("_function"); at != text.npos; at = text.find("_function", at + 1)) {
      count += text.compare(text.rfind('\n', at) + 1, 11, "  call.uni ") == 0;
    }
    return count;
  };
  unsigned anywhere = 0, together = 0, in_functions = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    anywhere += calls(generate(seed).ptx);
    const std::string text = generate(seed, Calls::kTogether).ptx;
    together += calls(text);
    in_functions += calls(text.substr(0, text.find(".visible .entry")));
  }
  EXPECT_GT(together, kSeeds / 10);
  EXPECT_GT(anywhere, together + together / 2);
  EXPECT_EQ(in_functions, 0u);
}

/// Everything the kernels are for occurs, and often enough.
TEST(Generate, TextHasEveryConstruct) {
  std::map<std::string, unsigned> modules;
  const std::string constructs[] = {"bar.sync 0",     "barrier.sync 0", "bar.red.popc",     "bar.red.or",
                                    "bar.arrive 1",   " ret;",          " exit;",           "bra.uni",
                                    "call.uni",       "%ctaid.z",       "%nctaid.y",        "%tid.z",
                                    "cvt.u64.u32",    "st.shared.u32",  "red.shared.add",   "red.global.add",
                                    "red.global.min", "red.global.max", "red.global.and",   "red.global.or",
                                    "red.global.xor", "atom.global.",   "st.local.u32",     "ld.const.u32",
                                    "ld.global.nc",   "shfl.sync.bfly", "vote.sync",        "module_cells;",
                                    "dynamic_cells;", "meeting_cells;", ".maxntid",         "ld.param.u8",
                                    "ld.param.u16",   ".func",          "ld.global.v2.u32", ".reg .pred %p0, %p1;"};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string text = generate(seed).ptx;
    for (const std::string& construct : constructs) modules[construct] += text.find(construct) != text.npos;
  }
  for (const std::string& construct : constructs) EXPECT_GE(modules[construct], kSeeds / 50) << construct;
}

/// They are of use only if the rewriter takes them, in all the ways it has.
TEST(Generate, MostKernelsCanBePersistent) {
  unsigned all = 0, persistent = 0, joining = 0, joining_shortly = 0, plain_with_barrier = 0, reading_grid = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const RandomModule module = generate(seed);
    const auto parsed = ptx::parse(module.ptx);
    ASSERT_TRUE(parsed.has_value()) << seed << ": " << parsed.error().message;
    EXPECT_TRUE(ptx::parse(ptx::print(*parsed)).has_value());
    const ptx::RewriteResult rewritten = ptx::rewrite(*parsed);
    ASSERT_EQ(rewritten.entries.size(), module.kernels.size());
    for (const ptx::EntryReport& entry : rewritten.entries) {
      ++all;
      if (entry.form != ptx::Form::kPersistent) continue;
      ++persistent;
      joining += entry.needs_finished_barrier && !entry.returns_only_first;
      joining_shortly += entry.needs_finished_barrier && entry.returns_only_first;
      plain_with_barrier += entry.uses_barrier && !entry.needs_finished_barrier;
      reading_grid += entry.reads_block_index == (ptx::kReadsX | ptx::kReadsY | ptx::kReadsZ);
    }
  }
  EXPECT_GE(persistent * 100, all * 90);
  EXPECT_GE(joining, all / 10);
  EXPECT_GE(joining_shortly, all / 50);
  EXPECT_GE(plain_with_barrier, all / 10);
  EXPECT_GE(reading_grid, all / 2);
}

ptx::EntryReport report_on_polling(std::uint64_t seed, bool waits) {
  const PollingKernel kernel = make_polling(seed, waits);
  const auto parsed = ptx::parse(kernel.ptx);
  EXPECT_TRUE(parsed.has_value()) << seed << ": " << parsed.error().message << kernel.ptx;
  return parsed ? ptx::rewrite(*parsed).entries.at(0) : ptx::EntryReport{};
}

/// Whatever reads again until another block has written is seen, and nothing else is.
TEST(Polling, IsSeenAndTwinsAreNot) {
  std::set<std::string> ways;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const PollingKernel kernel = make_polling(seed, true);
    ways.insert(kernel.how);
    const ptx::EntryReport waits = report_on_polling(seed, true), twin = report_on_polling(seed, false);
    EXPECT_EQ(waits.form, ptx::Form::kOpaque) << seed << ": " << kernel.how << "\n" << kernel.ptx;
    EXPECT_EQ(waits.blocks_wait, ptx::BlocksWait::kYes) << seed << ": " << kernel.how;
    EXPECT_EQ(twin.blocks_wait, ptx::BlocksWait::kNo)
        << seed << ": " << make_polling(seed, false).how << ": " << twin.reason << "\n"
        << make_polling(seed, false).ptx;
  }
  EXPECT_GT(ways.size(), 150u);
}

}  // namespace
}  // namespace gpuctl::random_kernels
