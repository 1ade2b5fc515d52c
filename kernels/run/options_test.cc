#include "kernels/run/options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuctl::bench {
namespace {

Parsed parse(std::vector<std::string> words) {
  words.insert(words.begin(), "gpuslice-bench");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(Options, AnExtentReplacesTheSize) {
  const Parsed matrices = parse({"run", "matrixMul", "--extent", "33,44,55"});
  ASSERT_TRUE(matrices.options);
  EXPECT_EQ(matrices.options->extent(), (Extent{33, 44, 55}));
  const Parsed work = parse({"run", "work", "--extent", "7,9"});
  ASSERT_TRUE(work.options);
  EXPECT_EQ(work.options->extent(), (Extent{7, 9, 0}));
}

TEST(Options, AnExtentHasTheKernelsDimensions) {
  for (const char* extent : {"3,4", "0", "x", "4000000001"}) {
    EXPECT_EQ(parse({"run", "vectorAdd", "--extent", extent}).status, 2) << extent;
  }
  EXPECT_EQ(parse({"run", "matrixMul", "--extent", "3"}).status, 2);
  EXPECT_EQ(parse({"run", "vectorAdd", "--extent", "3", "--size", "large"}).status, 2);
}

TEST(Options, BurstsAndTheirStart) {
  const Parsed parsed = parse({"run", "work", "--arrival", "bursts", "--burst", "30", "--period-us", "5000",
                               "--start-on-input", "--check", "device"});
  ASSERT_TRUE(parsed.options);
  const RunOptions& run = parsed.options->run;
  EXPECT_EQ(run.arrival, Arrival::kBursts);
  EXPECT_EQ(run.burst, 30u);
  EXPECT_EQ(run.check, Check::kDevice);
  EXPECT_TRUE(run.start.on_input);
  EXPECT_EQ(parse({"run", "work", "--start-on-input", "--start-at", "5"}).status, 2);
}

TEST(Options, RepeatsAreChosenOrGiven) {
  const Parsed given = parse({"run", "cfd", "--repeat", "40"});
  ASSERT_TRUE(given.options);
  EXPECT_EQ(given.options->repeat, 40u);
  const Parsed chosen = parse({"run", "cfd", "--calibrate-us", "11106"});
  ASSERT_TRUE(chosen.options);
  EXPECT_EQ(chosen.options->targets.kernel_us, 11106.0);
  EXPECT_EQ(parse({"run", "cfd", "--calibrate-us", "11106", "--repeat", "40"}).status, 2);
  EXPECT_EQ(parse({"run", "cfd", "--task-us", "20"}).status, 2);
  EXPECT_EQ(parse({"run", "cfd", "--repeat", "65536"}).status, 2);
}

TEST(Options, LaunchesApartWithPriorityHints) {
  const Parsed parsed = parse({"run", "work", "--arrival", "apart", "--period-us", "4000", "--hints", "1,9"});
  ASSERT_TRUE(parsed.options);
  EXPECT_EQ(parsed.options->run.arrival, Arrival::kApart);
  EXPECT_EQ(parsed.options->run.hints, (std::pair{1, 9}));
  EXPECT_FALSE(parse({"run", "work"}).options->run.hints);
  EXPECT_EQ(parse({"run", "work", "--arrival", "apart", "--depth", "2"}).status, 2);
  EXPECT_EQ(parse({"run", "work", "--hints", "9,1"}).status, 2);
}

}  // namespace
}  // namespace gpuctl::bench
