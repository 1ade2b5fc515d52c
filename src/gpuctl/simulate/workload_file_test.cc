#include "gpuctl/simulate/workload_file.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using sched::CapSM;
using std::chrono::microseconds;
using std::chrono::milliseconds;

TEST(WorkloadFile, IsReadWhole) {
  const auto w = parse_workload(R"(
title = "all keys"
seeds = 7
[device]
count = 3
capsm = 28
preempt_us = 76
dispatch_us = 110
[arrivals]
order = "poisson"
gap_ms = 1.5
until_ms = 100
prediction_error = 0.07
[[application]]
name = "a"
alone_ms = 13.57
vary = "lognormal"
deviation = 0.5
task_us = 20
preempt_us = 5
capsm = 4
start_ms = 2
priority = [1, 9]
weight = 2
instances = 5
repeat = "endless"
think_ms = 3
[[application]]
curve = [[1, 10], [4, 4.5]]
priority = 3
repeat = 8
device = 2
reserve = 4
reserve_mode = "active"
max = 20
latency = "1.3x"
)",
                                "w.toml");
  ASSERT_TRUE(w) << w.error().message;
  EXPECT_EQ(w->title, "all keys");
  EXPECT_EQ(w->seeds, 7u);
  EXPECT_EQ(w->devices, 3u);
  EXPECT_EQ(w->capsm, CapSM{28});
  EXPECT_EQ(w->preempt, microseconds{76});
  EXPECT_EQ(w->dispatch, microseconds{110});
  EXPECT_EQ(w->order, sched::Order::poisson);
  EXPECT_EQ(w->gap, microseconds{1500});
  EXPECT_EQ(w->until, milliseconds{100});
  EXPECT_EQ(w->prediction_error, 0.07);
  ASSERT_EQ(w->applications.size(), 2u);
  const sched::Application& a = w->applications[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.alone, microseconds{13570});
  EXPECT_EQ(a.vary, sched::Vary::lognormal);
  EXPECT_EQ(a.deviation, 0.5);
  EXPECT_EQ(a.task, microseconds{20});
  EXPECT_EQ(a.preempt, microseconds{5});
  EXPECT_EQ(a.need, CapSM{4});
  EXPECT_EQ(a.start, milliseconds{2});
  EXPECT_EQ(a.random_priority, std::pair(1, 9));
  EXPECT_EQ(a.weight, 2u);
  EXPECT_EQ(a.instances, 5u);
  EXPECT_TRUE(a.endless);
  EXPECT_EQ(a.think, milliseconds{3});
  const sched::Application& b = w->applications[1];
  EXPECT_EQ(b.name, "application 2");
  EXPECT_EQ(b.alone, microseconds{4500});
  EXPECT_EQ(b.need, CapSM{4});
  EXPECT_EQ(b.curve.size(), 2u);
  EXPECT_EQ(b.priority, 3);
  EXPECT_EQ(b.repeat, 8u);
  EXPECT_EQ(b.device, 2u);
  EXPECT_EQ(b.limits.reserve, CapSM{4});
  EXPECT_FALSE(b.limits.strict);
  EXPECT_EQ(b.limits.max, CapSM{20});
  EXPECT_EQ(b.latency, LatencyTarget{.multiple = 1.3});
}

TEST(WorkloadFile, ApplicationsCanShareEachSm) {
  const auto w = parse_workload(R"(
[device]
compute_capability = "3.5"
[[application]]
curve = [[1, 20], [6, 9]]
threads = 128
registers = 64
shared = 7208
barriers = 2
issue = 0.873
[[application]]
alone_ms = 1
threads = 64
)",
                                "w.toml");
  ASSERT_TRUE(w) << w.error().message;
  ASSERT_TRUE(w->sm);
  EXPECT_EQ(w->sm->shared, 48u * 1024);
  EXPECT_EQ(w->capsm, CapSM{16});
  EXPECT_EQ(w->applications[0].block, (sched::BlockShape{128, 64, 7208, 2}));
  EXPECT_EQ(w->applications[0].issue, 0.873);
  EXPECT_EQ(w->applications[0].need, CapSM{6});
  EXPECT_EQ(w->applications[1].block, (sched::BlockShape{64, 0, 0, 1}));
}

TEST(WorkloadFile, NamesThePlaceOfWhatIsWrong) {
  const std::string app = "[[application]]\nalone_ms = 1\n";
  const struct {
    std::string text, message;
  } cases[] = {
      {"", "w.toml:1:1: application: at least one [[application]] is needed"},
      {"seeds = 0\n" + app, "w.toml:1:9: seeds: must be a whole number from 1 to 1e+06, not 0"},
      {"speed = 1\n" + app, "w.toml:1:1: speed: unknown key; known: title, seeds, device, arrivals, application"},
      {app + "turn_us = 100", "w.toml:3:11: application.turn_us: needs isolated = true"},
      {app + "isolated = true\nturn_us = 0.5",
       "w.toml:4:11: application.turn_us: must be a number from 1 to 3.2e+13, not 0.5"},
      {app + "isolated = 1", "w.toml:3:12: application.isolated: must be true or false"},
      {"[device]\ncapsm = 1.5\n" + app, "w.toml:2:9: device.capsm: must be a whole number from 1 to 10000, not 1.5"},
      {"[arrivals]\norder = \"random\"\n" + app,
       "w.toml:2:9: arrivals.order: must be listed, shuffled or poisson, not \"random\""},
      {"[[application]]\nname = \"x\"\n", "w.toml:1:1: application.alone_ms: is needed (or a curve)"},
      {app + "priority = [3]\n",
       "w.toml:3:12: application.priority: must be a number, or [lowest, highest] to draw from"},
      {app + "priority = [3, 1]\n", "w.toml:3:12: application.priority: the lowest comes first"},
      {app + "repeat = \"endless\"\n", "w.toml:3:10: application.repeat: \"endless\" needs arrivals.until_ms"},
      {app + "curve = [[2, 1], [1, 2]]\n",
       "w.toml:3:18: application.curve: must be a list of [CapSM, ms], each with more CapSM and less time than the one "
       "before"},
      {"[device]\ncapsm = 4\n" + app + "reserve = 3\n" + app + "reserve = 2\n",
       "w.toml:3:1: application.reserve: together more than the 4 CapSM of a device"},
      {app + "device = 1\n", "w.toml:3:10: application.device: must be a whole number from 0 to 0, not 1"},
      {"[device]\ncompute_capability = \"4.0\"\n" + app,
       "w.toml:2:22: device.compute_capability: must be one of " + std::string(sched::known_compute_capabilities())},
      {"[device]\ncapsm = 3\ncompute_capability = \"9.0\"\n" + app + "threads = 32\n",
       "w.toml:2:9: device.capsm: has no meaning with device.compute_capability"},
      {app + "issue = 0.5\n", "w.toml:3:9: application.issue: needs device.compute_capability"},
      {"[device]\ncompute_capability = \"9.0\"\n" + app,
       "w.toml:3:1: application.threads: is needed with device.compute_capability"},
      {"[device]\ncompute_capability = \"9.0\"\n" + app + "threads = 1024\nregisters = 65\n",
       "w.toml:3:1: application.threads: an SM of device.compute_capability holds no such block"},
      {"[device]\ncompute_capability = \"9.0\"\n" + app + "threads = 1024\ncapsm = 3\n",
       "w.toml:3:1: application.capsm: counts 3 workers on each SM, which holds 2"},
      {"device = 3\n" + app, "w.toml:1:10: device: must be a table: [device]"},
  };
  for (const auto& [text, message] : cases) {
    const auto w = parse_workload(text, "w.toml");
    ASSERT_FALSE(w) << text;
    EXPECT_EQ(w.error().message, message) << text;
  }
  const auto broken = parse_workload("title = ", "w.toml");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().message.rfind("w.toml:1:", 0), 0u) << broken.error().message;
  EXPECT_EQ(read_workload("/nonexistent/w.toml").error().message,
            "/nonexistent/w.toml: cannot be read: No such file or directory");
  EXPECT_EQ(read_workload("/").error().message, "/: is not a regular file");
}

}  // namespace
}  // namespace gpuctl::cli
