// What is known of a slice's bursts decides which targets it may have.
#include <gtest/gtest.h>

#include <string>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon::scheduler_admission_test {
namespace {

class Admits : public testing::Test {
 protected:
  /// For so many seconds, ten bursts of 3 ms in each tenth of a second.
  void go(FakeProgram& program, int seconds) { go(scheduler_, program, seconds); }
  void go(Scheduler& scheduler, FakeProgram& program, int seconds) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      now_ns_ += 100 * kMs;
      ipc::LatencyCounts& page = ipc::latency_at(*program.stub.get(), 0);
      page.bursts[latency_bucket(3'000'000)] += 10;
      ++page.counted;
      program.stub->usage[0].launches += 10;
      scheduler.update(now_ns_);
    }
  }
  sched::Admission with(const sched::SliceChange& change) const {
    sched::SliceTree tree = scheduler_.tree();
    EXPECT_TRUE(tree.change("ls", change, kRoot));
    return scheduler_.admits_target(tree, "ls");
  }
  static sched::SliceTree tree() {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {}, kRoot));
    return tree;
  }

  Scheduler scheduler_{{gpu(132)}, tree()};
  std::uint64_t now_ns_ = 1000 * kMs;
};

TEST_F(Admits, WhatIsNotKnownAndNotWhatItsProgramsCannot) {
  EXPECT_EQ(with({.latency = "2ms"}).refused, "");
  FakeProgram ls(scheduler_, "ls");
  go(ls, 5);
  const sched::Admission below = with({.latency = "2ms"});
  EXPECT_TRUE(below.refused.starts_with("2 ms: the p99 of its bursts was 3")) << below.refused;
  EXPECT_EQ(with({.latency = "5ms"}).refused, "");
  EXPECT_TRUE(with({.latency = "5ms"}).notes.empty());
  EXPECT_EQ(with({.latency = "2x"}).refused, "");
}

TEST_F(Admits, WhatOtherProgramsOrLimitsMayKeep) {
  FakeProgram ls(scheduler_, "ls");
  go(ls, 5);
  const auto only_doubted = [](const sched::Admission& admission) {
    return admission.refused.empty() && admission.notes.size() == 1;
  };
  EXPECT_TRUE(only_doubted(with({.max = 8, .latency = "2ms"})));
  FakeProgram other(scheduler_.add(FakeProgram::make("ls", {0}), now_ns_));
  EXPECT_TRUE(only_doubted(with({.latency = "2ms"})));
  go(ls, 5);
  EXPECT_FALSE(only_doubted(with({.latency = "2ms"})));
  sched::SliceTree limited = scheduler_.tree();
  ASSERT_TRUE(limited.change("/", {.max = 66}, kRoot));
  scheduler_.set_tree(limited, now_ns_);
  EXPECT_TRUE(only_doubted(with({.latency = "2ms"})));
}

/// Two slices whose bursts take 3 ms each, by turns.
TEST_F(Admits, NoTargetsThatCannotBeKeptTogetherNorANewOneBehindThem) {
  sched::SliceTree both(sched::CapSM{132}, 0);
  for (const char* path : {"a", "b"}) ASSERT_TRUE(both.create(path, {}, kRoot));
  Scheduler scheduler({gpu(132)}, both, {}, true);
  FakeProgram a(scheduler, "a"), b(scheduler, "b");
  go(scheduler, a, 5);
  go(scheduler, b, 5);
  const auto why = [&](const char* of_a, const char* of_b, const char* of_new) {
    sched::SliceTree tree = scheduler.tree();
    EXPECT_TRUE(tree.change("a", {.latency = of_a}, kRoot));
    EXPECT_TRUE(tree.change("b", {.latency = of_b}, kRoot));
    EXPECT_TRUE(tree.create("new", {.latency = of_new}, kRoot));
    return scheduler.admits_target(tree, of_new == std::string("none") ? "b" : "new").refused;
  };
  EXPECT_NE(why("5ms", "5ms", "none").find("come together, the last one takes 6"), std::string::npos);
  EXPECT_EQ(why("5ms", "20ms", "none"), "");
  EXPECT_TRUE(why("5ms", "5ms", "5100us").starts_with("5.1 ms: where bursts of a (3"));
  EXPECT_EQ(why("5ms", "5ms", "20ms"), "");
  EXPECT_EQ(why("none", "none", "100us"), "");
}

/// What would be so on a GPU that it does not see lets it in nowhere.
TEST_F(Admits, NotForTheSakeOfAGpuThatItDoesNotSee) {
  const std::vector<Gpu> gpus{gpu(132), gpu(132, 1)};
  sched::SliceTree both({size_of(gpus[0]), size_of(gpus[1])}, 0);
  for (const char* path : {"a", "b"}) ASSERT_TRUE(both.create(path, {.latency = "5ms"}, kRoot));
  Scheduler scheduler(gpus, both, {}, true);
  FakeProgram a(scheduler, "a"), b(scheduler, "b");
  go(scheduler, a, 5);
  go(scheduler, b, 5);
  const auto why = [&](const char* sees) {
    sched::SliceTree tree = scheduler.tree();
    EXPECT_TRUE(tree.create("new", {.latency = "5100us", .devices = sees}, kRoot));
    return scheduler.admits_target(tree, "new").refused;
  };
  EXPECT_TRUE(why("0").starts_with("5.1 ms: where bursts of a (3"));
  EXPECT_EQ(why("1"), "");
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_admission_test
