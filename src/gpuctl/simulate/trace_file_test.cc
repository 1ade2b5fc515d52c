#include "gpuctl/simulate/trace_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "gpuctl/simulate/workload_file.h"
#include "sched/simulator/workload.h"

namespace gpuctl::cli {
namespace {

TEST(TraceFile, IsAWorkloadThatReadsBack) {
  const std::vector<ipc::Launch> launches{
      {.pid = 1,
       .slice = "a",
       .kernel = "long \"one\"\n",
       .priority = -3,
       .weight = 200,
       .issued_ns = 1'000'000,
       .done_ns = 9'000'000,
       .alone_us = 8000,
       .block_task_us = 20,
       .capsm = 8,
       .evictions = 2,
       .evict_us = 40},
      // One queued behind it, and one of another program.
      {.pid = 1, .kernel = "", .issued_ns = 1'500'000, .done_ns = 12'000'000, .alone_us = 3000, .capsm = 99},
      {.pid = 2,
       .kernel = "other",
       .issued_ns = 2'000'000,
       .done_ns = 4'000'000,
       .alone_us = 1,
       .evictions = 1,
       .evict_us = 70}};
  const std::string file = testing::TempDir() + "trace.toml";
  std::ofstream(file) << to_workload(launches, 1, 8);
  const auto read = read_workload(file);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->devices, 1u);
  EXPECT_EQ(read->capsm.count, 8u);
  EXPECT_EQ(read->preempt, std::chrono::microseconds(50));
  ASSERT_EQ(read->applications.size(), 3u);
  const sched::Application& first = read->applications[0];
  EXPECT_EQ(first.name, "long \"one\"\n");
  EXPECT_EQ(first.start, std::chrono::milliseconds(0));
  EXPECT_EQ(first.alone, std::chrono::milliseconds(8));
  EXPECT_EQ(first.task, std::chrono::microseconds(20));
  EXPECT_EQ(first.priority, -3);
  EXPECT_EQ(first.weight, 200u);
  EXPECT_EQ(read->applications[1].name, "other");
  EXPECT_EQ(read->applications[1].start, std::chrono::milliseconds(1));
  EXPECT_EQ(read->applications[2].name, "unnamed") << "its program had not told yet";
  EXPECT_EQ(read->applications[2].start, std::chrono::milliseconds(8)) << "when the launch before it was over";
  EXPECT_EQ(read->applications[2].need.count, 8u);
}

}  // namespace
}  // namespace gpuctl::cli
