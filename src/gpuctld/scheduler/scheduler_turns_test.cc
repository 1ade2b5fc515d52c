// More programs with work than SMs: how the scheduler passes turns on, by device and over changes.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"
#include "gpuctld/testing/obedient.h"

namespace gpuctl::daemon::turns_test {
namespace {

using sched::CapSM;

sched::SliceTree tree_of(const std::vector<std::pair<std::string, sched::SliceChange>>& slices, std::uint32_t sms = 8) {
  sched::SliceTree tree(CapSM{sms}, 0);
  for (const auto& [path, settings] : slices) EXPECT_TRUE(tree.create(path, settings, kRoot)) << path;
  return tree;
}

/// What each had of all that they had together.
std::vector<double> parts(const World& world) {
  double all = 0;
  std::vector<double> had;
  for (const Obedient& one : world.programs) all += one.had;
  for (const Obedient& one : world.programs) had.push_back(one.had / all);
  return had;
}

TEST(TurnsInScheduler, BelowAMaxOfOneEachHasItsPart) {
  World world(tree_of({{"p", {.max = 1}}, {"p/a", {}}, {"p/b", {.weight = 200}}}), 8);
  for (const char* slice : {"p/a", "p/a", "p/a", "p/b", "p/b", "p/b"}) world.add(slice, 8);
  world.pass(10'000);
  const std::vector<double> had = parts(world);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(had[i], i < 3 ? 1 / 9.0 : 2 / 9.0, 0.02) << i;
  for (const Obedient& one : world.programs) EXPECT_LE(one.longest_wait, 11 * 25) << "turns";
}

TEST(TurnsInScheduler, IdleProgramsAndEmptySlicesShiftNothing) {
  for (const int idle : {0, 1, 7, 30}) {
    sched::SliceTree tree = tree_of({{"p", {.max = 1}}, {"p/a", {}}, {"p/z", {.weight = 101}}});
    for (int i = 0; i < idle; ++i) EXPECT_TRUE(tree.create("p/m" + std::to_string(i), {}, kRoot));
    World world(tree, 8);
    world.add("p/a", 8);
    for (int i = 0; i < idle; ++i) world.add("p/a", 0);
    world.add("p/a", 8);
    world.add("p/z", 8);
    world.pass(8'000);
    EXPECT_NEAR(world.programs.front().had, 2'000, 100) << idle;
    EXPECT_NEAR(world.programs.back().had, 4'000, 100) << idle;
  }
}

TEST(TurnsInScheduler, WhoWaitsInASuspendedSliceMovesNobody) {
  World world(tree_of({{"a", {}}, {"b", {}}, {"c", {}}, {"e", {.weight = 50}}, {"s", {.max = 0}}}), 8, 2);
  for (const char* slice : {"a", "b", "c", "e"}) world.add(slice, 8);
  Obedient& suspended = world.add("s", 8, {1});
  suspended.program.demand(8, 0);
  world.add("a", 8, {1});
  world.pass(100);
  world.forget();
  world.pass(1'000);
  for (const Obedient& one : world.programs) EXPECT_EQ(one.program.epoch(), one.epoch);
}

TEST(TurnsInScheduler, OnOneDeviceMoveNobodyOnAnother) {
  World world(tree_of({{"a", {.weight = 1}}, {"b", {.weight = 2}}, {"p", {.max = 1}}}), 8, 2);
  Obedient& a = world.add("a", 8, {1});
  Obedient& b = world.add("b", 8, {1});
  for (int i = 0; i < 3; ++i) world.add("p", 8, {0});
  world.pass(100);
  world.forget();
  world.pass(1'000);
  EXPECT_EQ(a.program.epoch(), a.epoch);
  EXPECT_EQ(b.program.epoch(), b.epoch);
  EXPECT_GT(world.programs.back().had, 200) << "they take turns there";
}

/// A user who changes settings all the time, and programs that come and go, take nobody's turn.
TEST(TurnsInScheduler, GoOnOverChanges) {
  World world(tree_of({{"p", {.max = 1}}, {"p/a", {}}, {"p/b", {}}, {"p/c", {}}, {"q", {}}}), 8);
  for (const char* slice : {"p/a", "p/b", "p/c"}) world.add(slice, 8);
  for (int change = 0; change < 600; ++change) {
    sched::SliceTree tree = world.scheduler.tree();
    ASSERT_TRUE(change % 2 == 0 ? tree.create("a-first", {}, kRoot) : tree.remove("a-first", 0, kRoot));
    world.scheduler.set_tree(tree, world.now);
    if (change % 3 == 0) {
      FakeProgram comes(world.scheduler.add(FakeProgram::make("q", {0}), world.now));
      world.pass(2);
      world.scheduler.remove(*comes.client, world.now);
    }
    world.pass(7);
  }
  const std::vector<double> had = parts(world);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(had[i], 1 / 3.0, 0.03) << i;
}

TEST(TurnsInScheduler, AQueueDividesThePartOfItsSlice) {
  for (const std::uint32_t weight : {100u, 200u}) {
    Scheduler scheduler({gpu(8)},
                        tree_of({{"p", {.priority = 50, .policy = "hpf:spatial"}},
                                 {"p/hi", {.priority = 50}},
                                 {"p/lo", {.priority = 0}},
                                 {"q", {.weight = weight}}}),
                        all_obey());
    FakeJob lo(scheduler, "p/lo"), hi(scheduler, "p/hi"), second(scheduler, "p/hi");
    FakeProgram q(scheduler, "q");
    lo.head(1, 8);
    settle(scheduler, {&lo, &hi}, 1 * kMs);
    EXPECT_EQ(lo.granted(), 8u);
    hi.head(2, 6);
    settle(scheduler, {&lo, &hi}, 2 * kMs);
    EXPECT_EQ(hi.granted(), 6u);
    EXPECT_EQ(lo.granted(), 2u) << "what the first does not fill";
    q.demand(8);
    for (int i = 0; i < 4; ++i) q.apply(), settle(scheduler, {&lo, &hi}, (3 + static_cast<std::uint64_t>(i)) * kMs);
    EXPECT_EQ(hi.granted(), weight == 100 ? 4u : 3u) << "all that the slice has";
    EXPECT_EQ(lo.granted(), 0u);
    EXPECT_EQ(q.granted(), 8 - hi.granted());
    q.demand(0);
    settle(scheduler, {&lo, &hi}, 9 * kMs);
    EXPECT_EQ(hi.granted(), 6u);
    EXPECT_EQ(lo.granted(), 2u);
  }
}

TEST(TurnsInScheduler, WorkOfUnknownSizeUsesWhatItsSliceGains) {
  Scheduler scheduler({gpu(8)},
                      tree_of({{"p", {.policy = "hpf:spatial"}},
                               {"p/hi", {.priority = 50}},
                               {"p/lo", {.priority = 0}},
                               {"q", {.weight = 101}}}),
                      all_obey());
  FakeJob lo(scheduler, "p/lo"), hi(scheduler, "p/hi"), also_hi(scheduler, "p/hi");
  FakeProgram q(scheduler, "q");
  q.demand(8);
  hi.head(1, 2);
  lo.demand(8);  // it reports no launch
  for (std::uint64_t ms = 1; ms < 5; ++ms) q.apply(), settle(scheduler, {&lo, &hi}, ms * kMs);
  EXPECT_EQ(hi.granted(), 2u);
  EXPECT_EQ(lo.granted(), 2u);
  q.demand(0);
  settle(scheduler, {&lo, &hi}, 9 * kMs);
  EXPECT_EQ(hi.granted(), 2u);
  EXPECT_EQ(lo.granted(), 6u);
}

}  // namespace
}  // namespace gpuctl::daemon::turns_test
