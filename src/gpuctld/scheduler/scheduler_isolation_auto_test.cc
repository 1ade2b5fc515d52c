// Isolation "auto": a slice with a target has what its programs fared better with at earlier starts.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

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

  /// A hundred bursts a second for so long, beside a thousand launches of batch.
  void go(FakeProgram& ls, FakeProgram& batch, int seconds, double ms) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      now_ns_ += 100 * kMs;
      ipc::LatencyCounts& page = ipc::latency_at(*ls.stub.get(), 0);
      page.bursts[latency_bucket(static_cast<std::uint64_t>(ms * 1e6))] += 10;
      ++page.counted;
      ls.stub->usage[0].launches += 10;
      batch.launch(100);
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
  EXPECT_TRUE(first.client->isolated);
  EXPECT_EQ(said(), "isolated: not measured yet");
  go(first, batch, 30, 20);
  EXPECT_EQ(said(),
            "isolated until all its programs have ended, then shared, to be tried: isolated it has p99 20 ms of 5 ms");
  EXPECT_TRUE(isolated()) << "a program's isolation is fixed at its start, and all of a slice have the same";
  FakeProgram beside = start();
  EXPECT_TRUE(beside.client->isolated);
  end(first);
  EXPECT_TRUE(isolated()) << "one is still there";
  end(beside);
  FakeProgram second = start();
  EXPECT_FALSE(second.client->isolated);
  go(second, batch, 30, 8);
  EXPECT_EQ(said(), "shared: p99 8.1 ms, isolated 20 ms");
  end(second);
  EXPECT_FALSE(isolated()) << "it misses the target too, but by less";
  FakeProgram third = start();
  go(third, batch, 30, 40);  // others have become worse for it
  end(third);
  EXPECT_TRUE(isolated()) << said();
}

/// The dials of the first start, turns, are none of the second.
TEST_F(AutoIsolation, OthersYieldToWhatIsSharedAtItsSecondStart) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram first = start();
  go(first, batch, 10, 20);
  end(first);
  FakeProgram second = start();
  ASSERT_FALSE(second.client->isolated);
  const auto level = [](const FakeProgram& program) {
    return ipc::band_of(ipc::load(program.stub->grant[0].flags)).rank;
  };
  for (int step = 0; step < 5; ++step) go(second, batch, 1, level(second) > level(batch) ? 3 : 20);
  EXPECT_GT(level(second), level(batch)) << scheduler_.latency_now("ls").value_or("");
}

TEST_F(AutoIsolation, WhatMeetsItsTargetStays) {
  FakeProgram batch(scheduler_, "batch");
  FakeProgram ls = start();
  go(ls, batch, 10, 2);
  EXPECT_EQ(said().substr(0, 13), "isolated: p99") << said();
  EXPECT_NE(said().find("is within 5 ms"), std::string::npos) << said();
  end(ls);
  EXPECT_TRUE(isolated());
}

/// Each costs memory of the GPU, and a turn.
TEST_F(AutoIsolation, NotMoreThanAFewSlicesAreIsolatedWithoutAMeasurement) {
  sched::SliceTree many = tree();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(many.create("s" + std::to_string(i), {.latency = "5ms"}, kRoot));
  scheduler_.set_tree(std::move(many), now_ns_);
  std::vector<FakeProgram> programs;
  for (int i = 0; i < 5; ++i) programs.push_back(start("s" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(programs[static_cast<std::size_t>(i)].client->isolated, i < 4) << i;
  EXPECT_EQ(said(), "shared: not measured yet, and 4 other slices are isolated");
  end(programs[0]);
  EXPECT_TRUE(isolated());
}

/// One process, or one MPS, has the GPU: nobody can be apart.
TEST(AutoIsolationOfExclusiveGpus, EverythingIsSharedAndHasItsReserve) {
  Gpu exclusive = gpu(132);
  exclusive.exclusive = true;
  sched::SliceTree tree(sched::CapSM{132}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 16, .reserve_mode = "strict", .latency = "5ms"}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  Scheduler scheduler({exclusive}, tree);
  EXPECT_EQ(scheduler.isolation_now("ls"), "shared: a GPU is in compute mode EXCLUSIVE_PROCESS");
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(2);
  EXPECT_EQ(batch.granted(), 116u);
}

/// What they did before does not count.
TEST_F(AutoIsolation, WhatOthersDoIsCountedFromTheTargetOn) {
  scheduler_.set_tree(tree("auto", "none"), now_ns_);
  FakeProgram batch(scheduler_, "batch");
  batch.launch(10'000'000);
  FakeProgram ls = start();
  go(ls, batch, 2, 2);
  batch.launch(10'000'000);
  go(ls, batch, 2, 2);
  scheduler_.set_tree(tree("auto", "5ms"), now_ns_);
  go(ls, batch, 10, 2);
  const auto seen = [&] { return scheduler_.isolation_record().of("ls").at(0).measured.shared.value().others_per_s; };
  EXPECT_NEAR(seen(), 1000, 50);
}

TEST_F(AutoIsolation, WithoutATargetOrWhereItIsSetNothingIsChosen) {
  FakeProgram batch(scheduler_, "batch");
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
  go(ls, batch, 10, 2);
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

/// The next daemon has the setting alone, and programs that come back say what their slices were.
class AutoIsolationAfterARestart : public testing::Test {
 protected:
  AutoIsolationAfterARestart() {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.reserve = 8, .reserve_mode = "strict", .latency = "5ms"}, kRoot));
    EXPECT_TRUE(tree.create("ls/a", {}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    scheduler_.set_tree(std::move(tree), 1);
    for (const char* slice : {"ls", "ls/a"}) {
      Client stand_in = FakeProgram::make(slice, {0});
      stand_in.stands_in = true;
      stand_ins_.push_back(&scheduler_.add(std::move(stand_in), 1));
    }
  }
  FakeProgram come_back(const std::string& slice, bool isolated) {
    Client client = FakeProgram::make(slice, {0});
    client.isolated = isolated;
    Client* stand_in = stand_ins_.front();
    stand_ins_.erase(stand_ins_.begin());
    FakeProgram back(scheduler_.replace({stand_in}, std::move(client), false, 2));
    scheduler_.isolate_as(*back.client, 2);
    return back;
  }
  bool is_isolated(const std::string& slice) const {
    const auto& slices = scheduler_.tree().slices();
    return scheduler_.effective()[static_cast<std::size_t>(std::distance(slices.begin(), slices.find(slice)))].isolated;
  }

  Scheduler scheduler_{{gpu(132)}, sched::SliceTree(sched::CapSM{132}, 0)};
  std::vector<Client*> stand_ins_;
};

TEST_F(AutoIsolationAfterARestart, TheSliceIsAsItWas) {
  FakeProgram batch(scheduler_, "batch");
  batch.demand(132);
  scheduler_.update(2);
  EXPECT_EQ(batch.granted(), 132u) << "it would be isolated at a start";
  FakeProgram first = come_back("ls/a", false);
  EXPECT_FALSE(is_isolated("ls"));
  scheduler_.update(3);
  EXPECT_EQ(batch.granted(), 124u) << "the reserve is kept from it";
  FakeProgram second = come_back("ls", false);
  EXPECT_FALSE(is_isolated("ls"));
  EXPECT_TRUE(scheduler_.isolation_lags().empty());
}

TEST_F(AutoIsolationAfterARestart, OthersThatAreThereAndSlicesWithoutATargetStay) {
  FakeProgram isolated = come_back("ls", true);
  EXPECT_TRUE(is_isolated("ls"));
  FakeProgram shared = come_back("ls/a", false);
  EXPECT_TRUE(is_isolated("ls"));
  Client moved = FakeProgram::make("batch", {0});
  moved.isolated = true;
  scheduler_.isolate_as(scheduler_.add(std::move(moved), 3), 3);
  EXPECT_FALSE(is_isolated("batch"));
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_isolation_auto_test
