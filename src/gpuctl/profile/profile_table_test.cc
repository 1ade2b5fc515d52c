#include "gpuctl/profile/profile_table.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

TEST(ProfileTable, ShowsEachKernelAndTheMeanError) {
  ipc::KernelProfile linear{.name = "_Z1fv",
                            .module = "m",
                            .block_task_us = 2,
                            .curve = {{.sms = 2, .block_task_us = 80}, {.sms = 8, .block_task_us = 20}}};
  for (std::int64_t i = 1; i <= 40; ++i)
    linear.inputs.push_back(
        {.blocks = 8, .input_bytes = 1024 * i, .launches = 2, .alone_us = 100.0 + 10.0 * static_cast<double>(i)});
  const ipc::KernelProfile once{.name = "g", .module = "m", .inputs = {{.alone_us = 7}}};
  const auto lines = profile_lines({linear, once});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "KERNEL  LAUNCHES  INPUTS  ALONE             BLOCK-TASK  ERROR  SPEED BY SMS");
  EXPECT_EQ(lines[1].rfind("f()           80      40  110 us to 500 us        2 us  ", 0), 0u) << lines[1];
  EXPECT_NE(lines[1].find("2: 0.25  8: 1.00"), std::string::npos) << lines[1];
  EXPECT_EQ(lines[2].rfind("g              1       1  7 us                       -      -  -", 0), 0u) << lines[2];
  EXPECT_EQ(lines[3].rfind("error of predicted durations, each input left out in turn: mean ", 0), 0u) << lines[3];
  EXPECT_LT(*error_of(linear), 0.05);
  EXPECT_FALSE(error_of(once));
}

TEST(ProfileTable, WithoutInputsSaysNoMean) {
  EXPECT_EQ(profile_lines({{.name = "g", .module = "m"}}).size(), 2u);
}

}  // namespace
}  // namespace gpuctl::cli
