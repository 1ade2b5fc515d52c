#include "libgpuslice/launch/chunks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ptx/persistent_abi.h"

namespace gpuslice {
namespace {

TEST(Chunks, AreSingleBlockTasksUntilTheirDurationIsKnown) {
  const Chunks chunks = plan_chunks({1000, 1000, 1}, 0, 1056, 20'000);
  EXPECT_EQ(chunks.most, 1u);
  EXPECT_EQ(chunks.least, 1u);
  EXPECT_EQ(chunks.total, 1'000'000u);
  EXPECT_FALSE(chunks.eager);
}

TEST(Chunks, LeaveTimeForWhatAnEvictionTakesBeside) {
  const Chunks slow = plan_chunks({100'000, 1, 1}, 7'400, 1056, 20'000);
  EXPECT_EQ(slow.most, 2u);
  const Chunks quick = plan_chunks({1'000'000, 1, 1}, 1'000, 1056, 20'000);
  EXPECT_EQ(quick.most, 18u);
  EXPECT_EQ(plan_chunks({100'000, 1, 1}, 9'900, 1056, 20'000).most, 1u);
  EXPECT_EQ(plan_chunks({100'000, 1, 1}, 50'000, 1056, 20'000).most, 1u);
}

TEST(Chunks, AreClaimedEagerlyWhereThatCounts) {
  EXPECT_TRUE(plan_chunks({1'000'000, 1, 1}, 1'000, 2112, 20'000).eager);
  EXPECT_TRUE(plan_chunks({75'000, 1, 1}, 11'000, 1056, 20'000).eager);
  EXPECT_FALSE(plan_chunks({75'000, 1, 1}, 19'000, 1056, 20'000).eager);
}

TEST(Chunks, AreWorthTheirClaims) {
  EXPECT_EQ(plan_chunks({1'000'000, 1, 1}, 1'000, 528, 20'000).least, 3u);
  EXPECT_EQ(plan_chunks({1'000'000, 1, 1}, 1'000, 1056, 20'000).least, 5u);  // with many workers, fewer claims per time
  EXPECT_EQ(plan_chunks({1'000'000, 1, 1}, 1'000, 2112, 20'000).least, 10u);
  EXPECT_EQ(plan_chunks({75'000, 1, 1}, 8'700, 2112, 20'000).most, 3u);
  EXPECT_EQ(plan_chunks({75'000, 1, 1}, 9'400, 1056, 20'000).most, 1u);  // nearly worth it
  // But at most half as long again as the target.
  EXPECT_EQ(plan_chunks({1'000'000, 1, 1}, 8'700, 4224, 20'000).most, 3u);
  EXPECT_EQ(plan_chunks({8'448, 1, 1}, 1'000, 1056, 20'000).most, 2u);  // four chunks per worker
  EXPECT_EQ(plan_chunks({8'448, 1, 1}, 1'000, 1056, 20'000).least, 2u);
}

TEST(Chunks, AreNoLongerThanTheirWordCanSay) {
  const Chunks chunks = plan_chunks({std::uint32_t{1} << 30, 1, 1}, 10, 1056, 20'000);
  EXPECT_EQ(gpuctl::ptx::longest_run(std::uint32_t{1} << 30, 0), 1u);
  EXPECT_EQ(chunks.most, 1u);
  EXPECT_EQ(chunks.least, 1u);
  EXPECT_EQ(plan_chunks({(std::uint32_t{1} << 28) - 1, 1, 1}, 10, 1056, 20'000).most, 8u);
}

TEST(Chunks, AreClaimedQuicklyUntilTheyShrinkOrMayBeTheLast) {
  Chunks chunks;
  chunks.most = chunks.least = 16;
  chunks.taper = 11;
  chunks.total = 100'000;
  gpuctl::ptx::LaunchArgs args = lay_out({100'000, 1, 1}, chunks);
  set_workers(args, 1000, true);
  EXPECT_EQ(args.first, 16u);
  EXPECT_EQ(args.given, 16'000u);
  EXPECT_EQ(args.quick_below, 84'000u);
  set_workers(args, 1000, false);
  EXPECT_EQ(args.given, 0u);
  args.chunk = 1 << 16 | 16;
  set_workers(args, 1000, true);
  EXPECT_EQ(args.quick_below, 67'232u);  // from here on (total - next) >> taper is less than 16
  args.total = 16'000;
  set_workers(args, 1000, true);
  EXPECT_EQ(args.first, 7u);
  EXPECT_EQ(args.quick_below, 0u);
}

TEST(Chunks, WordsOfRunsGoOnToTheirEnd) {
  for (const std::uint32_t tasks : {1u, 2u, 3u, 1000u, 1024u, 1u << 20, 0x7fffffffu}) {
    for (const std::uint32_t step : {0u, 3u, 10u}) {
      if (step > 0 && tasks >= 1u << 29) continue;
      const std::uint32_t mask = gpuctl::ptx::index_mask(tasks, step);
      const std::uint32_t count = std::min({gpuctl::ptx::longest_run(tasks, step), 5u, ((tasks - 1) >> step) + 1});
      const std::uint32_t first = tasks - 1 - ((count - 1) << step);  // the last run
      std::uint32_t word = first - count * (mask + 1);
      for (std::uint32_t i = 0; i < count; ++i, word += gpuctl::ptx::advance(tasks, step)) {
        EXPECT_GE(word, 0x80000000);
        EXPECT_EQ(word & mask, first + (i << step));
      }
      EXPECT_LE(word, mask) << tasks << ' ' << step;
    }
  }
}

/// How often each block-task is visited when workers claim all chunks in order.
std::vector<int> visits(const Chunks& chunks, std::uint32_t tasks) {
  std::vector<int> seen(tasks, 0);
  for (std::uint32_t at = 0; at < chunks.total; at += chunks.most) {
    const std::uint32_t number = at >> chunks.run_bits, step = 1u << chunks.step_bits;
    std::uint32_t task = (number >> chunks.step_bits << (chunks.step_bits + chunks.run_bits)) + number % step;
    for (std::uint32_t i = 0; i < chunks.most && task < tasks; ++i, task += step) ++seen[task];
  }
  return seen;
}

TEST(Chunks, OfGridsOfTwoDimensionsGoOnTogether) {
  for (const std::uint32_t width : {300u, 317u, 511u, 2048u}) {
    for (const std::uint32_t height : {200u, 201u}) {
      const Chunks chunks = plan_chunks({width, height, 1}, 1'600, 1056, 20'000);
      ASSERT_GT(chunks.run_bits, 0u);
      EXPECT_EQ(chunks.step_bits, 10u);
      EXPECT_EQ(chunks.most, 1u << chunks.run_bits);
      EXPECT_EQ(chunks.least, chunks.most);
      EXPECT_LE(chunks.total, gpuctl::ptx::kMaxBlockTasks);
      EXPECT_EQ(visits(chunks, width * height), std::vector<int>(width * height, 1));
    }
  }
  EXPECT_EQ(plan_chunks({300, 200, 2}, 1'600, 1056, 20'000).run_bits, 0u);
  EXPECT_EQ(plan_chunks({60'000, 1, 1}, 1'600, 1056, 20'000).step_bits, 0u);
}

/// With fewer workers than the GPU holds too: the grant may be anything.
TEST(Chunks, AQuickClaimHasAllOfItsBlockTasks) {
  int quick = 0;
  for (const std::uint32_t height : {19u, 64u, 201u}) {
    for (std::uint32_t width = 30; width < 60; ++width) {
      const std::array<std::uint32_t, 3> grid = {width, height, 1};
      for (const std::uint32_t fixed : {2u, 4u, 8u}) {
        const Chunks chunks = plan_chunks(grid, 100, 64, 1e9, fixed);
        for (const std::uint32_t workers : {1u, 8u, 40u, 64u}) {
          gpuctl::ptx::LaunchArgs args = lay_out(grid, chunks);
          set_workers(args, workers, false);
          for (std::uint32_t at = 0; at < args.quick_below; at += chunks.most, ++quick) {
            const std::uint32_t number = at >> chunks.run_bits, step = 1u << chunks.step_bits;
            const std::uint32_t first =
                (number >> chunks.step_bits << (chunks.step_bits + chunks.run_bits)) + number % step;
            ASSERT_LT(first + (chunks.most - 1) * step, args.tasks) << width << 'x' << height << ' ' << workers;
          }
        }
      }
    }
  }
  EXPECT_GT(quick, 10'000);
}

TEST(Chunks, CanBeFixed) {
  const Chunks chunks = plan_chunks({100'000, 1, 1}, 50'000, 1056, 20'000, 150);
  EXPECT_EQ(chunks.most, 150u);
  EXPECT_EQ(chunks.least, 150u);
  EXPECT_EQ(plan_chunks({1'000'000, 1, 1}, 1'000, 1056, 20'000, 1).most, 1u);
  const Chunks wide = plan_chunks({300, 200, 1}, 1'600, 1056, 20'000, 3);
  EXPECT_EQ(wide.most, 2u);
  EXPECT_EQ(visits(wide, 300 * 200), std::vector<int>(300 * 200, 1));
  EXPECT_EQ(plan_chunks({std::uint32_t{1} << 29, 1, 1}, 10, 1056, 20'000, 0xffff).most,
            gpuctl::ptx::longest_run(std::uint32_t{1} << 29, 0));
}

}  // namespace
}  // namespace gpuslice
