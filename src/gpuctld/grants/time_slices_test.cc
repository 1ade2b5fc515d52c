#include "gpuctld/grants/time_slices.h"

#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

using sched::CapSM;
using Slices = std::vector<std::uint32_t>;

constexpr std::uint32_t kOwn = ipc::kDriversTimeSlice;

/// A time slice of which the part of `us` that is not lost is left.
constexpr std::uint32_t part_of(std::uint32_t us, std::uint32_t one_of) {
  return kLostOfTurnUs + (us - kLostOfTurnUs) / one_of;
}

/// The root, and slices below it.
std::vector<sched::NodeInput> below_root(std::vector<sched::NodeInput> slices) {
  std::vector<sched::NodeInput> nodes{{.parent = -1, .reserve = CapSM{132}}};
  for (sched::NodeInput& slice : slices) {
    slice.parent = 0;
    nodes.push_back(slice);
  }
  return nodes;
}

TEST(TimeSlices, AloneOrAmongEqualsTheyStayTheDrivers) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}}), (Slices{kOwn}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {2, 0}}), (Slices{kOwn, kOwn}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{}), Slices{});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{0, 0}}), (Slices{kOwn}));
}

TEST(TimeSlices, WhoComesSecondGivesWay) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 1000}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10}, {2, 0}}), (Slices{kOwn, kGivingWayUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, -1}, {2, 0}}), (Slices{kGivingWayUs, kOwn}));
}

TEST(TimeSlices, AReserveGoesFirstAmongEqualPriorities) {
  const auto nodes = below_root({{.reserve = CapSM{8}, .weight = 100}, {.weight = 100}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {2, 0}}), (Slices{kOwn, kGivingWayUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {2, 1}}), (Slices{kGivingWayUs, kOwn}));
  // The root's reserve is the whole GPU, and gives no precedence.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{0, 0}, {2, 0}}), (Slices{kOwn, kOwn}));
}

TEST(TimeSlices, AChildOfASliceWithAReserveHasItsPrecedence) {
  auto nodes = below_root({{.reserve = CapSM{8}, .weight = 100}, {.weight = 100}});
  nodes.push_back({.parent = 1, .weight = 100});
  nodes.push_back({.parent = 1, .reserve = CapSM{4}, .weight = 100});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{3, 0}, {2, 0}}), (Slices{kOwn, kGivingWayUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{3, 0}, {4, 0}}), (Slices{kGivingWayUs, kOwn}))
      << "within it the reserves of its children decide";
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{4, 0}, {2, 1}}), (Slices{kGivingWayUs, kOwn}));
}

TEST(TimeSlices, SeveralThatComeSecondTakeTurnsByWeight) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 200}, {.weight = 100}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 1}, {2, 0}, {3, 0}}),
            (Slices{kOwn, kSecondUs, part_of(kSecondUs, 2)}));
  // Their order among themselves does not matter.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 1}, {2, 0}, {3, -5}}),
            (Slices{kOwn, kSecondUs, part_of(kSecondUs, 2)}));
}

TEST(TimeSlices, BesideOneThatLaunchesOftenTheyAreLonger) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}, {.weight = 50}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10, true}, {2, 0}}), (Slices{kOwn, kSparingUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10, true}, {2, 0}, {3, 0}}),
            (Slices{kOwn, kSparingUs, part_of(kSparingUs, 2)}));
  // How often the one launches that comes second does not matter, nor is anything to be spared among equals.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10}, {2, 0, true}}), (Slices{kOwn, kGivingWayUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0, true}, {2, 0, true}}), (Slices{kOwn, kOwn}));
}

TEST(TimeSlices, EachMpsServerIsOneTurn) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}, {.weight = 100}});
  const auto in = [](std::uint32_t node, std::int32_t priority, std::int32_t server) {
    return TimeShare{.node = node, .priority = priority, .server = server};
  };
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{in(1, 5, 0), in(2, 0, 1), in(1, 5, 0), in(3, 0, 1)}),
            (Slices{kOwn, kServerSecondUs, kOwn, kServerSecondUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{in(1, 5, 0), in(2, 0, 1), in(3, 9, 2)}),
            (Slices{kSecondUs, kSecondUs, kOwn}));
}

TEST(TimeSlices, AllClientsOfAnMpsServerCountAsOneTurn) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}, {.weight = 100}});
  const auto shared = [](std::uint32_t node, std::int32_t priority, bool often = false) {
    return TimeShare{.node = node, .priority = priority, .often = often, .server = 0};
  };
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10}, shared(2, 0), shared(3, -5)}),
            (Slices{kOwn, kServerSecondUs, kServerSecondUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, shared(2, 0), shared(3, 10)}),
            (Slices{kGivingWayUs, kOwn, kOwn}))
      << "its first client decides";
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10, true}, shared(2, 0), shared(3, 0)}),
            (Slices{kOwn, kSparingUs, kSparingUs}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{shared(2, 0), shared(3, 0)}), (Slices{kOwn, kOwn}))
      << "nobody takes turns with it";
  // It has the shares of its clients together: two thirds.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, shared(2, 0), shared(3, 0)}),
            (Slices{part_of(kUsualTimeSliceUs, 2), kOwn, kOwn}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10}, shared(2, 0), {3, 0}}),
            (Slices{kOwn, kSecondUs, kSecondUs}));
}

TEST(TimeSlices, OfThoseThatComeSecondMayBeSetByHand) {
  const auto nodes = below_root({{.weight = 100}, {.weight = 100}, {.weight = 50}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10, true}, {2, 0}}, 300), (Slices{kOwn, 300}));
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 10}, {2, 0}, {3, 0}}, 300),
            (Slices{kOwn, 300, part_of(300, 2)}));
}

TEST(TimeSlices, WhatIsOftenDoesNotChangeToAndFro) {
  EXPECT_FALSE(launches_often(kOftenPerS, false));
  EXPECT_TRUE(launches_often(kOftenPerS + 1, false));
  EXPECT_TRUE(launches_often(kOftenPerS * 0.6, true));
  EXPECT_FALSE(launches_often(kOftenPerS * 0.6, false));
  EXPECT_FALSE(launches_often(kOftenPerS * 0.4, true));
}

TEST(TimeSlices, EqualsShareTheTimeByWeight) {
  const auto nodes = below_root({{.weight = 300}, {.weight = 100}, {.weight = 1}});
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {2, 0}, {3, 0}}),
            (Slices{kOwn, part_of(kUsualTimeSliceUs, 3), part_of(kUsualTimeSliceUs, 300)}));
  EXPECT_EQ((kUsualTimeSliceUs - kLostOfTurnUs) / (part_of(kUsualTimeSliceUs, 3) - kLostOfTurnUs), 3u)
      << "what is left after the switch is in proportion";
  // The programs of a slice share its weight.
  const std::uint32_t half = part_of(kUsualTimeSliceUs, 2);
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}, {2, 0}}),
            (Slices{half, half, half, half, half, half, kOwn}));
}

TEST(TimeSlices, ASubtreeSharesItsWeight) {
  std::vector<sched::NodeInput> nodes{{.parent = -1},
                                      {.parent = 0, .weight = 100},
                                      {.parent = 1, .weight = 300},
                                      {.parent = 1, .weight = 100},
                                      {.parent = 0, .weight = 100}};
  // 3/8 and 1/8 of the GPU below node 1, 1/2 for node 4.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{2, 0}, {3, 0}, {4, 0}}), (Slices{1551, 557, kOwn}));
  // Programs directly in node 1 count as one child of the usual weight; nodes without programs do not count.
  EXPECT_EQ(time_slices(nodes, std::vector<TimeShare>{{1, 0}, {2, 0}}), (Slices{722, kOwn}));
}

Gpu hardware(int index = 0) {
  Gpu made = gpu(132, index);
  made.software = false;
  return made;
}

std::uint32_t slice_of(const FakeProgram& program, std::size_t slot = 0) {
  return ipc::load(program.stub->grant[slot].time_slice_us);
}

TEST(TimeSlices, ReachThePrograms) {
  Scheduler scheduler({hardware()}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch");
  EXPECT_EQ(slice_of(batch), 0u);
  scheduler.set_time_sliced(true, 2);
  EXPECT_EQ(slice_of(batch), kOwn);
  const std::uint32_t before = batch.epoch();
  {
    FakeProgram ls(scheduler, "ls");
    EXPECT_EQ(slice_of(ls), kOwn);
    EXPECT_EQ(slice_of(batch), kGivingWayUs);
    EXPECT_NE(batch.epoch(), before);
    scheduler.remove(*ls.client, 3);
  }
  EXPECT_EQ(slice_of(batch), kOwn);
  scheduler.set_options({.time_slices = false}, 4);
  EXPECT_EQ(slice_of(batch), 0u);
}

TEST(TimeSlices, ThatALimitedProgramTakesTurnsIsSaidWhoeverSetsThem) {
  sched::SliceTree tree = ls_and_batch(sched::ReserveMode::strict);
  ASSERT_TRUE(tree.change("batch", {.max = 40}, kRoot));
  Scheduler scheduler({hardware()}, tree);
  FakeProgram batch(scheduler, "batch");
  EXPECT_NE(batch.mode(), ipc::Mode::turns);
  for (const bool sets : {true, false}) {
    scheduler.set_all(scheduler.tree(), {.time_slices = sets}, true, 2);
    EXPECT_EQ(batch.mode(), ipc::Mode::turns) << sets;
    EXPECT_EQ(ipc::band_of(ipc::load(batch.stub->grant[0].flags)), batch.client->slots()[0].terms.band);
  }
  scheduler.set_time_sliced(false, 3);
  EXPECT_NE(batch.mode(), ipc::Mode::turns);
}

TEST(TimeSlices, FollowChangesOfTheTreeAndHints) {
  Scheduler scheduler({hardware()}, ls_and_batch(sched::ReserveMode::strict));
  scheduler.set_time_sliced(true, 1);
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  EXPECT_EQ(slice_of(batch), kGivingWayUs);
  sched::SliceTree tree = scheduler.tree();
  ASSERT_TRUE(tree.change("batch", {.priority = 3}, kRoot));
  scheduler.set_tree(tree, 2);
  EXPECT_EQ(slice_of(batch), kOwn);
  EXPECT_EQ(slice_of(ls), kGivingWayUs);
  scheduler.set_hint(*batch.client, -1, 3);
  EXPECT_EQ(slice_of(batch), kGivingWayUs);
  EXPECT_EQ(slice_of(ls), kOwn);
}

TEST(TimeSlices, FollowHowOftenTheFirstLaunches) {
  Scheduler scheduler({hardware()}, ls_and_batch(sched::ReserveMode::strict));
  scheduler.set_time_sliced(true, 1);
  FakeProgram batch(scheduler, "batch"), ls(scheduler, "ls");
  std::uint64_t now_ns = 1'000'000'000;
  const auto pass = [&](std::uint64_t launches_per_s) {
    for (int step = 0; step < 5 * 20; ++step) {  // five seconds
      now_ns += 50'000'000;
      ls.launch(launches_per_s / 20);
      scheduler.update(now_ns);
    }
  };
  pass(500);
  EXPECT_EQ(slice_of(batch), kGivingWayUs);
  pass(9000);
  EXPECT_EQ(slice_of(batch), kSparingUs);
  EXPECT_EQ(slice_of(ls), kOwn);
  pass(1000);
  EXPECT_EQ(slice_of(batch), kSparingUs);
  pass(0);
  EXPECT_EQ(slice_of(batch), kGivingWayUs);
}

TEST(TimeSlices, OnlyProgramsOnTheSameGpuMatter) {
  Scheduler scheduler({hardware(0), hardware(1), gpu(8, 2)}, ls_and_batch(sched::ReserveMode::strict));
  scheduler.set_time_sliced(true, 1);
  FakeProgram ls(scheduler, "ls", {0, 2}), batch(scheduler, "batch", {1, 0, 2});
  EXPECT_EQ(slice_of(batch, 0), kOwn);
  EXPECT_EQ(slice_of(batch, 1), kGivingWayUs);
  EXPECT_EQ(slice_of(batch, 2), 0u);  // a software GPU
}

TEST(TimeSlices, WhetherTheyWorkIsRemembered) {
  Scheduler scheduler({hardware()}, ls_and_batch(sched::ReserveMode::strict));
  FakeProgram batch(scheduler, "batch"), other(scheduler, "batch");
  EXPECT_EQ(scheduler.time_slices_work(), ipc::TimeSlice::not_tried);
  ipc::store(batch.stub->usage[0].time_slice_state, std::uint16_t{77});  // not a valid state
  EXPECT_EQ(scheduler.time_slices_work(), ipc::TimeSlice::not_tried);
  ipc::store(other.stub->usage[0].time_slice_state, static_cast<std::uint16_t>(ipc::TimeSlice::refused));
  EXPECT_EQ(scheduler.time_slices_work(), ipc::TimeSlice::refused);
  ipc::store(batch.stub->usage[0].time_slice_state, static_cast<std::uint16_t>(ipc::TimeSlice::in_force));
  ipc::store(batch.stub->usage[0].time_slice_us, 50u);
  EXPECT_EQ(batch.client->usage(0).time_slice, "in force");
  EXPECT_EQ(batch.client->usage(0).time_slice_us, 50);
  scheduler.remove(*batch.client, 2);
  EXPECT_EQ(scheduler.time_slices_work(), ipc::TimeSlice::in_force);
}

}  // namespace
}  // namespace gpuctl::daemon
