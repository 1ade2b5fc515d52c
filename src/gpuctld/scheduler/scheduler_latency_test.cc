// Targets of latency: what programs report of their bursts turns the dials of their peers, and no more than that.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "gpuctld/host/mps_places.h"
#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon::scheduler_latency_test {
namespace {

class Latency : public testing::Test {
 protected:
  static sched::SliceTree tree(const std::string& latency) {
    sched::SliceTree tree(sched::CapSM{132}, 0);
    EXPECT_TRUE(tree.create("ls", {.isolation = "shared", .latency = latency}, kRoot));
    EXPECT_TRUE(tree.create("batch", {}, kRoot));
    return tree;
  }

  /// For so long, ten bursts of LS of `ms(second)` in each tenth of a second, while batch has work or not.
  template <class Ms>
  void go(Scheduler& scheduler, FakeProgram& ls, FakeProgram& batch, int seconds, Ms ms, bool batch_works = true) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) go_for_a_tenth(scheduler, ls, batch, ms(), batch_works);
  }
  void go_for_a_tenth(Scheduler& scheduler, FakeProgram& ls, FakeProgram& batch, double ms, bool batch_works = true) {
    now_ns_ += 100 * kMs;
    ipc::LatencyCounts& page = ipc::latency_at(*ls.stub.get(), 0);
    page.bursts[latency_bucket(static_cast<std::uint64_t>(ms * 1e6))] += 10;
    ++page.counted;
    ls.stub->usage[0].launches += 10;
    if (batch_works) batch.stub->usage[0].launches += launches_in(ipc::load(batch.stub->grant[0].time_slice_us));
    ipc::latency_at(*batch.stub.get(), 0).open = batch_works;
    scheduler.update(now_ns_);
  }

  /// Of batch in a tenth of a second, by the length of its turns.
  static std::uint64_t launches_in(std::uint32_t turn_us) {
    return turn_us == ipc::kDriversTimeSlice ? 100 : 50 + 50 * std::min(turn_us, 2000u) / 2000;
  }

  static std::string words(const Scheduler& scheduler) { return *scheduler.latency_now("ls"); }
  static std::uint32_t level(const FakeProgram& program) {
    const ipc::PriorityBand band = ipc::band_of(ipc::load(program.stub->grant[0].flags));
    return 100 * band.rank / band.count;
  }

  std::uint64_t now_ns_ = 1000 * kMs;
};

TEST_F(Latency, OthersYieldWhileTheTargetIsMissedAndOnlyThen) {
  Scheduler scheduler({gpu(132)}, tree("5ms"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  const auto kept = [&] { return ipc::load(ls.stub->grant[0].reserve); };
  go(scheduler, ls, batch, 5, [] { return 2; });
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(level(ls), level(batch));
  EXPECT_TRUE(is_free(batch));
  EXPECT_NE(words(scheduler).find("others need not yield; p99"), std::string::npos) << words(scheduler);

  const auto blocked = [&] { return level(ls) > level(batch) ? (kept() >= 16 ? 3 : 9) : 20; };
  const std::regex found("goes before the others, \\d+ SMs kept; p99 [0-9.]+ ms of 5 ms($|;| by)");
  for (int second = 0; second < 10 && !std::regex_search(words(scheduler), found); ++second)
    go(scheduler, ls, batch, 1, blocked);
  EXPECT_TRUE(std::regex_search(words(scheduler), found)) << words(scheduler);
  EXPECT_GT(level(ls), level(batch));
  EXPECT_GE(kept(), 16u);
  EXPECT_FALSE(is_free(batch));
  EXPECT_TRUE(is_free(ls));
  go(scheduler, ls, batch, 60, blocked);
  EXPECT_EQ(kept(), 16u) << words(scheduler);  // what it does not need is given back

  scheduler.set_tree(tree("none"), now_ns_);
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(level(ls), level(batch));
  EXPECT_TRUE(is_free(batch));
  EXPECT_FALSE(scheduler.latency_now("ls"));
}

/// It has work all the time, which waits.
TEST_F(Latency, NobodyYieldsToWhatIsFrozen) {
  Scheduler scheduler({gpu(132)}, tree("5ms"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  ls.demand(8);
  go(scheduler, ls, batch, 10, [&] { return level(ls) > level(batch) ? 3 : 20; });
  ASSERT_GT(level(ls), level(batch)) << words(scheduler);
  sched::SliceTree frozen = tree("5ms");
  ASSERT_TRUE(frozen.change("ls", {.frozen = "yes"}, kRoot));
  scheduler.set_tree(std::move(frozen), now_ns_);
  const auto wait = [&](int seconds) {
    for (int tenth = 0; tenth < 10 * seconds; ++tenth) {
      now_ns_ += 100 * kMs;
      batch.stub->usage[0].launches += 100;
      scheduler.update(now_ns_);
    }
  };
  wait(1);
  EXPECT_EQ(level(ls), level(batch)) << words(scheduler);
  EXPECT_EQ(scheduler.targets().at(0).steer->state(), sched::Steer::State::resting) << words(scheduler);
  scheduler.set_tree(tree("5ms"), now_ns_);
  for (int tenth = 0; tenth < 100 && level(ls) <= level(batch); ++tenth) go_for_a_tenth(scheduler, ls, batch, 20);
  EXPECT_GT(level(ls), level(batch)) << words(scheduler);
}

/// What it took before it was moved tells nothing of the slice that it is in now.
TEST_F(Latency, BurstsOfBeforeAMoveAreOfTheFormerSlice) {
  sched::SliceTree both = tree("5ms");
  ASSERT_TRUE(both.create("next", {.latency = "5ms"}, kRoot));
  Scheduler scheduler({gpu(132)}, std::move(both));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(scheduler, ls, batch, 5, [] { return 2; });
  ASSERT_EQ(scheduler.isolation_record().of("ls").size(), 1u);
  ipc::LatencyCounts& page = ipc::latency_at(*ls.stub.get(), 0);
  page.bursts[latency_bucket(2'000'000)] += 1000;
  ++page.counted;
  scheduler.move({ls.client}, "next", now_ns_ + 50 * kMs);
  go_for_a_tenth(scheduler, ls, batch, 2);
  go_for_a_tenth(scheduler, ls, batch, 2);
  go_for_a_tenth(scheduler, ls, batch, 2);
  EXPECT_TRUE(scheduler.isolation_record().of("next").empty());
  go(scheduler, ls, batch, 5, [] { return 2; });
  EXPECT_EQ(scheduler.isolation_record().of("next").size(), 1u);
}

TEST_F(Latency, WhatCannotBeMetIsSaid) {
  Scheduler scheduler({gpu(132)}, tree("5ms"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(scheduler, ls, batch, 10, [] { return 20; });
  EXPECT_NE(words(scheduler).find("cannot be met"), std::string::npos) << words(scheduler);
  EXPECT_EQ(ipc::load(ls.stub->grant[0].reserve), 0u);
  EXPECT_TRUE(is_free(batch));
}

TEST_F(Latency, ATargetThatIsSetAgainIsNotGivenUpBeforeItIsSought) {
  Scheduler scheduler({gpu(132)}, tree("5ms"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  const auto is_given_up = [&] { return words(scheduler).find("cannot be met") != std::string::npos; };
  go(scheduler, ls, batch, 15, [] { return 20; });
  ASSERT_TRUE(is_given_up()) << words(scheduler);
  scheduler.seek_target_anew("ls", now_ns_);
  EXPECT_EQ(words(scheduler), "goes before the others; no bursts yet beside others; its target is 5 ms");
  int level_raised = 0;
  for (int tenth = 0; tenth < 150 && !is_given_up(); ++tenth) {
    go_for_a_tenth(scheduler, ls, batch, 20);
    level_raised += level(ls) > level(batch);
  }
  EXPECT_TRUE(is_given_up()) << words(scheduler);
  EXPECT_GT(level_raised, 0);
  // With a target after a while without one, what happened meanwhile does not count.
  scheduler.set_tree(tree("none"), now_ns_);
  go(scheduler, ls, batch, 5, [] { return 20; });
  scheduler.set_tree(tree("5ms"), now_ns_);
  go(scheduler, ls, batch, 10, [] { return 2; });  // what was given at the beginning has gone back
  EXPECT_EQ(words(scheduler).find("others need not yield; p99 2"), 0u) << words(scheduler);
}

TEST_F(Latency, TheFirstBurstsOfAProgramAreNotWhatItTakesAlone) {
  Scheduler scheduler({gpu(132)}, tree("2x"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(
      scheduler, ls, batch, 1, [] { return 35; }, false);
  EXPECT_NE(words(scheduler).find("not known yet: 0 of 30"), std::string::npos) << words(scheduler);
  go(
      scheduler, ls, batch, 5, [] { return 4; }, false);
  EXPECT_NE(words(scheduler).find(" (alone 4"), std::string::npos) << words(scheduler);
}

/// The batch program goes on using what it had for four seconds. Meanwhile nothing is found out.
TEST_F(Latency, WhatIsKeptIsJudgedOnceOthersHaveLeft) {
  Scheduler scheduler({gpu(132)}, tree("5ms"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  const auto kept = [&] { return ipc::load(ls.stub->grant[0].reserve); };
  batch.demand(132);
  int tenths = 0;
  std::set<std::uint32_t> seen;
  for (int tenth = 0; tenth < 150; ++tenth) {
    tenths = kept() > 0 && batch.client->slots()[0].may_use() > batch.decided() ? tenths + 1 : 0;
    if (tenths > 40) batch.apply();
    const bool left = kept() > 0 && batch.client->slots()[0].may_use() <= batch.decided();
    go_for_a_tenth(scheduler, ls, batch, left ? 3 : 20);
    if (kept() > 0) seen.insert(kept());
    if (tenths > 5) {
      EXPECT_NE(words(scheduler).find("others are still leaving"), std::string::npos) << words(scheduler);
    }
  }
  EXPECT_EQ(seen.size(), 1u) << "the first step was enough";
  EXPECT_EQ(words(scheduler).find("cannot be met"), std::string::npos) << words(scheduler);
}

TEST_F(Latency, WhatASliceTakesAloneIsLearntBeforeItHasATarget) {
  Scheduler scheduler({gpu(132)}, tree("none"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(
      scheduler, ls, batch, 5, [] { return 4; }, false);
  go(scheduler, ls, batch, 5, [] { return 50; });
  scheduler.set_tree(tree("2x"), now_ns_);
  go(scheduler, ls, batch, 1, [] { return 50; });
  EXPECT_NE(words(scheduler).find(" (alone 4"), std::string::npos) << words(scheduler);
  // And not from what it takes beside others.
  Scheduler another({gpu(132)}, tree("2x"));
  FakeProgram its(another, "ls"), beside(another, "batch");
  go(another, its, beside, 5, [] { return 4; });
  EXPECT_NE(words(another).find("not known yet: 0 of 30 bursts"), std::string::npos) << words(another);
}

/// The batch program waits from the next tenth of a second on, with nothing left.
TEST_F(Latency, WithoutQuietTimesOthersArePausedToSeeWhatASliceTakesAlone) {
  Scheduler scheduler({gpu(132)}, tree("2x"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  const auto held = [](const FakeProgram& program) {
    return (ipc::load(program.stub->grant[0].flags) & ipc::kHeld) != 0;
  };
  int held_for = 0;
  for (int tenth = 0; tenth < 300; ++tenth) {
    const bool waits = held(batch);
    ipc::store(ipc::latency_at(*batch.stub.get(), 0).still, std::uint32_t{waits});
    held_for += waits;
    EXPECT_FALSE(held(ls));
    EXPECT_TRUE(is_free(batch)) << "no form changes";
    if (waits) {
      EXPECT_EQ(words(scheduler).find("others are paused for a moment"), 0u) << words(scheduler);
    }
    go_for_a_tenth(scheduler, ls, batch, waits ? 4 : 7);
  }
  EXPECT_GT(held_for, 3);
  EXPECT_LE(held_for, 10);
  EXPECT_FALSE(held(batch));
  EXPECT_NE(words(scheduler).find(" (alone 4"), std::string::npos) << words(scheduler);

  Scheduler at_most({gpu(132)}, tree("5ms"));
  FakeProgram its(at_most, "ls"), beside(at_most, "batch");
  for (int tenth = 0; tenth < 300; ++tenth) {
    go_for_a_tenth(at_most, its, beside, 7);
    EXPECT_FALSE(held(beside));
  }
}

/// A library that knows no holds.
TEST_F(Latency, AProgramThatGoesOnThoughItIsHeldIsNotTakenForStill) {
  Scheduler scheduler({gpu(132)}, tree("2x"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(scheduler, ls, batch, 60, [] { return 7; });
  EXPECT_NE(words(scheduler).find("0 of 30 bursts seen while nobody else had work, as others went on"),
            std::string::npos)
      << words(scheduler);
}

TEST_F(Latency, WhereProgramsTakeTurnsThoseOfOthersBecomeShorter) {
  Scheduler scheduler({Gpu{0, "Test GPU", "GPU-0", false, 132, 1u << 30}}, tree("5ms"), {}, true);
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  const auto turn_us = [](const FakeProgram& program) { return ipc::load(program.stub->grant[0].time_slice_us); };
  EXPECT_EQ(turn_us(batch), ipc::kDriversTimeSlice);
  const auto waits = [&] { return 1 + 0.01 * std::min(turn_us(batch), 2048u); };
  go(scheduler, ls, batch, 60, waits);
  EXPECT_LE(turn_us(batch), 400u);
  EXPECT_GE(turn_us(batch), 180u);
  EXPECT_EQ(turn_us(ls), ipc::kDriversTimeSlice);
  EXPECT_NE(words(scheduler).find("others' turns "), std::string::npos) << words(scheduler);
  scheduler.set_tree(tree("none"), now_ns_);
  EXPECT_EQ(turn_us(batch), ipc::kDriversTimeSlice);
}

/// Side by side or by turns is a matter of the two programs, not of the GPU.
TEST_F(Latency, BesideAnIsolatedSliceTurnsBecomeShorterAndNoSmsAreTaken) {
  Scheduler scheduler({Gpu{0, "Test GPU", "GPU-0", false, 132, 1u << 30}}, tree("5ms"));
  Client apart = FakeProgram::make("ls", {0});
  apart.isolated = true;
  FakeProgram ls(scheduler.add(std::move(apart), 1)), batch(scheduler, "batch");
  const auto server_us = [&] {
    const std::uint32_t us = scheduler.server_us().at(kSharedMps)[0];
    return us == 0 ? 2048u : std::min(us, 2048u);
  };
  go(scheduler, ls, batch, 60, [&] { return 1 + 0.01 * server_us(); });
  EXPECT_LE(server_us(), 400u) << words(scheduler);
  EXPECT_NE(words(scheduler).find("others' turns "), std::string::npos) << words(scheduler);
  EXPECT_TRUE(is_free(batch)) << "nothing is kept for programs that are never there at the same time";
}

/// The turns of the server in which it is itself would be short too.
TEST_F(Latency, AServerIsNotGivenShortTurnsForASliceWhoseProgramsAreInIt) {
  sched::SliceTree three = tree("5ms");
  ASSERT_TRUE(three.create("apart", {.isolation = "isolated"}, kRoot));
  Scheduler scheduler({Gpu{0, "Test GPU", "GPU-0", false, 132, 1u << 30}}, three);
  Client client = FakeProgram::make("apart", {0});
  client.isolated = true;
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch"), apart(scheduler.add(std::move(client), 1));
  std::uint32_t least = ipc::kDriversTimeSlice, least_of_server = ipc::kDriversTimeSlice;
  for (int tenth = 0; tenth < 200; ++tenth) {
    apart.launch();
    go_for_a_tenth(scheduler, ls, batch, 20);
    least = std::min(least, ipc::load(apart.stub->grant[0].time_slice_us));
    least_of_server = std::min(least_of_server, scheduler.server_us().at(kSharedMps)[0]);
  }
  EXPECT_EQ(least, 50u) << words(scheduler);
  EXPECT_GE(least_of_server, 1000u);
}

TEST_F(Latency, BesideWhatIsFrozenWithWorkOfItsOwnASliceIsAlone) {
  Scheduler scheduler({gpu(132)}, tree("2x"));
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  batch.demand(132);
  scheduler.update(now_ns_);
  sched::SliceTree frozen = tree("2x");
  ASSERT_TRUE(frozen.change("batch", {.frozen = "yes"}, kRoot));
  scheduler.set_tree(std::move(frozen), now_ns_);
  batch.apply();
  go(
      scheduler, ls, batch, 10, [] { return 4; }, false);
  EXPECT_NE(words(scheduler).find(" (alone 4"), std::string::npos) << words(scheduler);
}

TEST_F(Latency, WhatAnIsolatedProgramDoesBesideItIsNotAlone) {
  Scheduler scheduler({gpu(132)}, tree("2x"));
  Client apart = FakeProgram::make("batch", {0});
  apart.isolated = true;
  FakeProgram ls(scheduler, "ls"), batch(scheduler.add(std::move(apart), 1));
  go(scheduler, ls, batch, 10, [] { return 20; });
  EXPECT_NE(words(scheduler).find("not known yet"), std::string::npos) << words(scheduler);
}

TEST_F(Latency, BelowAPolicyForJobsNobodyYields) {
  sched::SliceTree ruled = tree("5ms");
  ASSERT_TRUE(ruled.change("/", {.policy = "srt"}, kRoot));
  Scheduler scheduler({gpu(132)}, ruled);
  FakeProgram ls(scheduler, "ls"), batch(scheduler, "batch");
  go(scheduler, ls, batch, 5, [] { return 20; });
  EXPECT_NE(words(scheduler).find("a policy for jobs rules"), std::string::npos) << words(scheduler);
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_latency_test
