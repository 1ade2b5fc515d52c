#include "gpuctl/views/fairness_lines.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;

TEST(FairnessLines, SayWhatWasServed) {
  EXPECT_EQ(fairness_lines({"batch", 10, 2, 12, 2.4142, 0.5, 0.87, 2.9142, 640, 3, 0.25, 450.4}),
            (Lines{"slice         batch", "window        the last 10 s", "applications  12 bursts of 2 programs",
                   "ANTT          2.41", "DNTT          0.50", "STP           0.87", "greatest NTT  2.91",
                   "launches      640: ANTT 3.00, DNTT 0.25, greatest NTT 450"}));
}

TEST(FairnessLines, SayWhatIsMissing) {
  EXPECT_EQ(fairness_lines({.slice = "ls", .seconds = 10}),
            (Lines{"slice         ls", "window        the last 10 s",
                   "no launch ended that its program reported; programs report them under a policy for jobs"}));
  ipc::Fairness timed{.slice = "ls", .seconds = 10};
  timed.launches = 1;
  timed.launch_antt = timed.launch_worst = 1;
  EXPECT_EQ(fairness_lines(timed), (Lines{"slice         ls", "window        the last 10 s",
                                          "applications  none whose launches were all reported",
                                          "launches      1: ANTT 1.00, DNTT 0.00, greatest NTT 1.00"}));
}

TEST(FairnessLines, FindASlice) {
  const std::vector<ipc::Fairness> all{{.slice = "/"}, {.slice = "a"}};
  EXPECT_EQ(fairness_of(all, "a"), &all[1]);
  EXPECT_EQ(fairness_of(all, "b"), nullptr);
}

}  // namespace
}  // namespace gpuctl::cli
