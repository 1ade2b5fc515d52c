#include "sched/latency/pauses.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sched/latency/control.h"
#include "sched/policy.h"
#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::pauses_test {

using namespace plant;

namespace {

constexpr double kAloneMs = 2;

Beside beside_others() {
  return {.step_s = 0.2, .last = {0, kTurnRungs, 0}, .can_pause = true, .alone = [](const Rungs&, double, Random& r) {
            return about(kAloneMs, 0.1, r);
          }};
}
const Takes kBeside = [](const Rungs&, double, Random& r) { return about(20, 0.3, r); };

TEST(Pauses, AreWantedForAWhileAndEndInTime) {
  Pauses pauses;
  for (double at = 0; at < 4.9; at += 0.2) pauses.step({.now = seconds(at), .wanted = true});
  EXPECT_FALSE(pauses.on());
  pauses.step({.now = seconds(5.2), .wanted = true});
  ASSERT_TRUE(pauses.on());
  EXPECT_FALSE(pauses.step({.now = seconds(5.4), .wanted = true, .still = true, .longest = ms(2)}));
  EXPECT_FALSE(pauses.step({.now = seconds(5.6), .wanted = true, .still = true, .longest = ms(2)}))
      << "it may have begun before all were still";
  EXPECT_TRUE(pauses.step({.now = seconds(5.8), .wanted = true, .still = true, .longest = ms(2)}));
  EXPECT_TRUE(pauses.on());
  EXPECT_TRUE(pauses.step({.now = seconds(6.1), .wanted = true, .still = true, .longest = ms(2)}));
  EXPECT_FALSE(pauses.on()) << "it has lasted long enough";
  EXPECT_EQ(pauses.vain(), 0);
  for (double at = 6.2; at < 95; at += 0.2) {
    pauses.step({.now = seconds(at), .wanted = true});
    ASSERT_FALSE(pauses.on()) << at;
  }
  pauses.step({.now = seconds(96), .wanted = true});
  EXPECT_TRUE(pauses.on());
  EXPECT_FALSE(pauses.step({.now = seconds(96.2), .wanted = true, .still = true, .longest = ms(2)}));
  EXPECT_FALSE(pauses.step({.now = seconds(96.4), .wanted = true, .still = true, .longest = ms(2)}));
  EXPECT_FALSE(pauses.step({.now = seconds(96.6), .wanted = true, .still = false, .longest = ms(2)}))
      << "somebody began again";
  EXPECT_FALSE(pauses.on());
  EXPECT_EQ(pauses.vain(), 1);
}

TEST(Pauses, ThatShowNothingBecomeRare) {
  Pauses pauses;
  double paused_s = 0;
  int begun = 0;
  for (double at = 0; at < 3600; at += 0.2) {
    const bool was = pauses.on();
    EXPECT_FALSE(pauses.step({.now = seconds(at), .wanted = true}));
    begun += pauses.on() && !was;
    paused_s += pauses.on() ? 0.2 : 0;
  }
  EXPECT_EQ(pauses.vain(), Pauses::kMostVain);
  EXPECT_GE(begun, 3);
  EXPECT_LE(begun, 6);
  EXPECT_LE(paused_s, 4);
}

TEST(Pauses, ShowWhatASliceTakesAlone) {
  for (const double per_s : {5, 20, 100, 1000})
    for (const double still_s : {0.0, 0.05, 0.3}) {
      SCOPED_TRACE(std::to_string(per_s) + " " + std::to_string(still_s));
      Random random(1);
      Steer steer({.multiple = 2});
      Beside run = beside_others();
      run.per_s = per_s;
      run.becomes_still_s = still_s;
      double known_s = 0;
      while (run.now_s < 1000 + 9000 && steer.alone().count() < Alone::kStretch) {
        run.go(steer, 0.2, kBeside, random, ms(4));
        if (!steer.alone().known()) known_s = run.now_s - 1000;
        ASSERT_LE(run.paused_s, 0.01 * (run.now_s - 1000) + 1.2) << "one pause, and after it a hundredth of the time";
      }
      ASSERT_GE(steer.alone().count(), Alone::kStretch);
      EXPECT_LE(known_s, per_s >= 1000 ? 10 : 300 * 100 / per_s);
      const double alone_ms = static_cast<double>(steer.alone().p99().count()) / 1e6;
      EXPECT_GE(alone_ms, kAloneMs * 0.9);
      EXPECT_LE(alone_ms, kAloneMs * 1.6);
      const double paused_s = run.paused_s;
      run.go(steer, 300, kBeside, random, ms(4));
      EXPECT_EQ(run.paused_s, paused_s) << "enough is known";
    }
}

TEST(Pauses, AreNotForATimeNorWhereOthersAreQuietNorForWhoHasNoWork) {
  Random random(1);
  Steer at_most({.at_most = ms(4)});
  Beside run = beside_others();
  run.go(at_most, 600, kBeside, random, ms(4));
  EXPECT_EQ(run.paused_s, 0);
  Steer quiet({.multiple = 2});
  run.quiet = true;
  run.go(quiet, 60, run.alone, random, ms(4));
  EXPECT_TRUE(quiet.alone().known());
  EXPECT_EQ(run.paused_s, 0);
  Steer idle({.multiple = 2});
  run.quiet = false;
  run.active = false;
  run.go(idle, 600, kBeside, random, ms(4));
  EXPECT_EQ(run.paused_s, 0);
  Steer alone_in_owning({.multiple = 2});
  run.active = true;
  run.can_pause = false;
  run.go(alone_in_owning, 600, kBeside, random, ms(4));
  EXPECT_EQ(run.paused_s, 0);
  EXPECT_NE(words(alone_in_owning, 132).find("not known yet: 0 of 30"), std::string::npos);
}

TEST(Pauses, ATargetIsMetAsIfWhatItTakesAloneHadBeenKnown) {
  Random random(1);
  Steer steer({.multiple = 2});
  Beside run = beside_others();
  run.alone = [](const Rungs&, double, Random& r) { return about(1.4, 0.1, r); };
  bool said = false;
  while (run.now_s < 1000 + 20) {
    run.go(steer, 0.2, by_turns(1.4), random, ms(4));
    said |= words(steer, 132).find("others are paused for a moment, to see what it takes alone: ") == 0;
  }
  EXPECT_TRUE(said);
  run.clear();
  run.go(steer, 300, by_turns(1.4), random, steer.at_most());
  EXPECT_LE(run.longer_part(), 0.02) << words(steer, 132);
  EXPECT_GT(rung(steer.rungs(), Dial::turns), 0);
}

TEST(Pauses, OnlyOneSliceHasOthersPausedAndNobodyElseTurnsDialsMeanwhile) {
  Random random(1);
  const NodeInput root{.parent = -1, .reserve = CapSM{132}, .policy = &policies().front()};
  const NodeInput below{.parent = 0, .policy = &policies().front()};
  const std::vector<NodeInput> nodes{root, below, below, below};
  LatencyControl control;
  const auto any = [](const std::string&) { return true; };
  control.renew(std::vector<LatencyControl::Target>{{"a", 1, {.multiple = 2}}, {"b", 2, {.multiple = 2}}}, any);
  EXPECT_TRUE(can_be_paused(nodes, 2, control.slices()[0], control.slices()));
  EXPECT_FALSE(yields(nodes, 2, control.slices()[0], control.slices()));
  int pauses_of[2] = {0, 0};
  for (double at = 1000; at < 1060; at += 0.2) {
    LatencyHistogram ended;
    for (int i = 0; i < 20; ++i) ended.add(ms(about(3, 0.1, random)));
    std::vector<LatencyStep> steps(2);
    for (std::size_t i = 0; i < 2; ++i)
      steps[i] = {.now = seconds(at),
                  .bursts = &ended,
                  .active = true,
                  .last = {0, kTurnRungs, 0},
                  .can_pause = !control.entries()[1 - i].steer.alone().known() || i == 0,
                  .still = control.entries()[i].steer.pauses(),
                  .who = 1};
    control.step(nodes, steps);
    const bool a = control.entries()[0].steer.pauses(), b = control.entries()[1].steer.pauses();
    EXPECT_FALSE(a && b);
    pauses_of[0] += a, pauses_of[1] += b;
    EXPECT_EQ(control.pauses().has_value(), a || b);
    if (const auto paused = control.pauses()) {
      EXPECT_EQ(paused->node, a ? 1u : 2u);
    }
  }
  EXPECT_GT(pauses_of[0], 0);
}

}  // namespace
}  // namespace gpuctl::sched::pauses_test
