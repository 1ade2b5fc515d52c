#include "gpuctl/views/latency_lines.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

const std::vector<ipc::Latency> kBoth{{"bursts", 10, 1000, 1400, 3300, 5100},
                                      {"bursts", 0, 12'400, 1500, 9000, 20'000}};

TEST(LatencyLines, SayAllAndThenTheLastSeconds) {
  EXPECT_EQ(latency_lines(kBoth),
            (std::vector<std::string>{"12.4k bursts: p50 1.5 ms, p99 9 ms, p99.9 20 ms",
                                      "1k bursts in the last 10 s: p50 1.4 ms, p99 3.3 ms, p99.9 5.1 ms"}));
  EXPECT_TRUE(latency_lines(std::vector<ipc::Latency>{}).empty());
}

TEST(LatencyLines, ShowOnlyWhatIsFromLatelyInATable) {
  EXPECT_EQ(latency_text(kBoth, &ipc::Latency::p99_us), "3.3 ms");
  EXPECT_EQ(latency_text({kBoth[1]}, &ipc::Latency::p99_us), "-");
}

TEST(LatencyLines, SayOfWhatCannotBeCountedThatItIsLonger) {
  const std::vector<ipc::Latency> longest{{"bursts", 0, 3, 120e6, 128'849'018.88, 128'849'018.88}};
  EXPECT_EQ(latency_lines(longest), (std::vector<std::string>{"3 bursts: p50 120 s, p99 > 128 s, p99.9 > 128 s"}));
}

TEST(LatencyLines, SayOfAProgramWhyItHasNone) {
  ipc::ClientUsage used, unused, counted;
  used.launches = 3;
  counted.device = 1;
  counted.latency = {kBoth[1]};
  unused.device = 2;
  const ipc::Client client{42, 0, "./a", "ls", "running", {used, counted, unused}};
  EXPECT_EQ(latency_lines(client),
            (std::vector<std::string>{"GPU 0: no latency: the program has not waited for all that it launched",
                                      "GPU 1: 12.4k bursts: p50 1.5 ms, p99 9 ms, p99.9 20 ms"}));
}

}  // namespace
}  // namespace gpuctl::cli
