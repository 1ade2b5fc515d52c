// Isolation "auto": a slice with a target has what its programs fared better with at earlier starts.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon::scheduler_isolation_auto_test {
namespace {

class AutoIsolation : public testing::Test {
 protected:
  static sched::SliceTree tree(const std::string& isolation = "auto", const std::string& latency = "5ms") {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.isolation = isolation, .latency = latency}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    return tree;
  }

  /// What a program that starts in the slice now is told.
  bool isolated(const std::string& slice = "ls") {
    scheduler_.choose_isolation(now_ns_);
    const auto& slices = scheduler_.tree().slices();
    return scheduler_.effective()[static_cast<std::size_t>(std::distance(slices.begin(), slices.find(slice)))].isolated;
  }
  FakeProgram start(const std::string& slice = "ls") {
    Client client = FakeProgram::make(slice, {0});
    client.isolated = isolated(slice);
    return FakeProgram(scheduler_.add(std::move(client), now_ns_));
  }

  /// A hundred bursts a second for so long, beside so many launches of batch.
  void go(FakeProgram* ls, FakeProgram& batch, int seconds, double ms, std::uint64_t launches = 100) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      now_ns_ += 100 * kMs;
      if (ls != nullptr) {
        ipc::LatencyCounts& page = ipc::latency_at(*ls->stub.get(), 0);
        page.bursts[latency_bucket(static_cast<std::uint64_t>(ms * 1e6))] += 10;
        ++page.counted;
        ls->stub->usage[0].launches += 10;
      }
      batch.launch(launches);
      ipc::latency_at(*batch.stub.get(), 0).open = 1;
      scheduler_.update(now_ns_);
    }
  }
  void end(FakeProgram& program) { scheduler_.remove(*program.client, now_ns_); }
  std::string said() const { return scheduler_.isolation_now("ls").value_or(""); }

  std::uint64_t now_ns_ = 1000 * kMs;
  Scheduler scheduler_{{gpu(132)}, tree()};
};

TEST_F(AutoIsolation, WhatMissedItsTargetIsTriedTheOtherWayAtTheNextStartAndTheBetterOneStays) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram first = start();
  EXPECT_FALSE(first.client->isolated);
  EXPECT_EQ(said(), "shared: not measured, and no kernels of others over 2 ms are known");
  go(&first, batch, 30, 20);
  EXPECT_EQ(said(),
            "shared until all its programs have ended, then isolated, to be tried: shared it has p99 20 ms of 5 ms");
  EXPECT_FALSE(isolated()) << "a program's isolation is fixed at its start, and all of a slice have the same";
  FakeProgram beside = start();
  EXPECT_FALSE(beside.client->isolated);
  end(first);
  EXPECT_FALSE(isolated()) << "one is still there";
  end(beside);
  FakeProgram second = start();
  EXPECT_TRUE(second.client->isolated);
  go(&second, batch, 30, 8);
  EXPECT_EQ(said(), "isolated: p99 8.1 ms, shared 20 ms");
  end(second);
  EXPECT_TRUE(isolated()) << "it misses the target too, but by less";
  FakeProgram third = start();
  go(&third, batch, 30, 40);  // others have become worse for it
  end(third);
  EXPECT_FALSE(isolated()) << said();
}

TEST_F(AutoIsolation, WhatMeetsItsTargetStays) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram ls = start();
  go(&ls, batch, 10, 2);
  EXPECT_EQ(said().substr(0, 11), "shared: p99") << said();
  EXPECT_NE(said().find("is within 5 ms"), std::string::npos) << said();
  end(ls);
  EXPECT_FALSE(isolated());
}

TEST_F(AutoIsolation, BesideLongKernelsItBeginsIsolated) {
  FakeProgram batch(scheduler_, "batch");
  go(nullptr, batch, 3, 0, 100);
  EXPECT_FALSE(isolated()) << "a thousand launches a second";
  go(nullptr, batch, 5, 0, 5);
  EXPECT_TRUE(isolated());
  EXPECT_EQ(said(), "isolated: kernels of others last longer than 2 ms");
  FakeProgram ls = start();
  EXPECT_TRUE(ls.client->isolated);
  go(&ls, batch, 5, 2, 200);
  EXPECT_TRUE(isolated());
}

TEST_F(AutoIsolation, WithoutATargetOrWhereItIsSetNothingIsChosen) {
  FakeProgram batch(scheduler_, "batch");
  go(nullptr, batch, 5, 0, 5);
  ASSERT_TRUE(isolated());
  scheduler_.set_tree(tree("auto", "none"), now_ns_);
  EXPECT_FALSE(isolated());
  EXPECT_EQ(said(), "");
  scheduler_.set_tree(tree("shared"), now_ns_);
  EXPECT_FALSE(isolated());
  EXPECT_EQ(said(), "");
  scheduler_.set_tree(tree("isolated"), now_ns_);
  EXPECT_TRUE(isolated());
  FakeProgram ls = start();
  go(&ls, batch, 10, 2);
  EXPECT_TRUE(scheduler_.isolation_record().of("ls").at(0).measured.isolated) << "for advice";
}

TEST_F(AutoIsolation, WhatItTakesAloneOrByTurnsAnywayIsNoMeasurement) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram ls = start();
  for (int tenth = 0; tenth < 100; ++tenth) {
    now_ns_ += 100 * kMs;
    ipc::LatencyCounts& page = ipc::latency_at(*ls.stub.get(), 0);
    page.bursts[latency_bucket(2'000'000)] += 10;
    ++page.counted;
    scheduler_.update(now_ns_);
  }
  EXPECT_TRUE(scheduler_.isolation_record().of("ls").empty());
  const Gpu hardware{0, "Test GPU", "GPU-0", false, 132, 1u << 30};
  Scheduler by_turns({hardware}, tree(), {}, true);
  FakeProgram its(by_turns, "ls"), other(by_turns, "batch");
  for (int tenth = 0; tenth < 100; ++tenth) {
    now_ns_ += 100 * kMs;
    ipc::LatencyCounts& page = ipc::latency_at(*its.stub.get(), 0);
    page.bursts[latency_bucket(2'000'000)] += 10;
    ++page.counted;
    other.launch(100);
    by_turns.update(now_ns_);
  }
  EXPECT_TRUE(by_turns.isolation_record().of("ls").empty());
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_isolation_auto_test
