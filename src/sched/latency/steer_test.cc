#include "sched/latency/steer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::steer_test {

using namespace plant;
using State = Steer::State;

namespace {

constexpr int kSeeds = 6;

Steer at_most(double target_ms) {
  return Steer({.at_most = ms(target_ms)});
}

void say(const char* what, const Beside& run, const Steer& steer) {
  if (std::getenv("SAY") != nullptr)
    std::printf("%-12s t=%6.1f longer %.4f of %6llu changes/min %.2f  %d %d %d  %s\n", what, run.now_s - 1000,
                run.longer_part(), static_cast<unsigned long long>(run.bursts), run.changes_a_minute(),
                steer.rungs()[0], steer.rungs()[1], steer.rungs()[2], words(steer, 132).c_str());
}

struct Case {
  const char* name;
  Takes takes;
  double target_ms;
  Rungs last;
};

std::vector<Case> cases() {
  return {{"turns", by_turns(1.4), 4, {0, kTurnRungs, 0}},      {"turns-tight", by_turns(1.4), 2.5, {0, kTurnRungs, 0}},
          {"level", by_blocks(1.4, 2, 100), 4, {1, 0, 14}},     {"kept", by_blocks(1.4, 8, 6), 4, {1, 0, 14}},
          {"kept-dead", by_turns(1.4), 4, {1, kTurnRungs, 14}}, {"noisy", by_turns(1.4, 0.4), 6, {0, kTurnRungs, 0}}};
}

TEST(Steer, MeetsTheTargetWithinFiveSeconds) {
  for (const Case& c : cases())
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::string(c.name) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(c.target_ms);
      Beside run{.last = c.last};
      const bool by_turns_alone = c.last[static_cast<std::size_t>(Dial::kept)] == 0;
      run.go(steer, 2, c.takes, random, ms(c.target_ms));
      if (by_turns_alone) {
        EXPECT_LE(run.longer_part(), 0.09) << "in the first two seconds: nobody waits for a verdict";
      }
      run.go(steer, 3, c.takes, random, ms(c.target_ms));
      if (by_turns_alone) {
        EXPECT_LE(run.longer_part(), 0.1) << "with the tries that follow";
      }
      run.clear();
      run.go(steer, 55, c.takes, random, ms(c.target_ms));
      say(c.name, run, steer);
      EXPECT_LE(run.longer_part(), 0.03);
      run.clear();
      run.go(steer, 540, c.takes, random, ms(c.target_ms));
      say(c.name, run, steer);
      EXPECT_LE(run.longer_part(), 0.012);
      EXPECT_LE(run.changes_a_minute(), 3);
    }
}

/// Nobody waits for a verdict where one turn of others is much of the target, and nobody gives anything where it is
/// not.
TEST(Steer, BeginsWithWhatCostsOthersLittle) {
  for (const double target_ms : {0.2, 4.0, 19.0, 40.0, 150.0}) {
    SCOPED_TRACE(target_ms);
    Random random(1);
    Steer steer = at_most(target_ms);
    Beside run{.last = {1, kTurnRungs, 14}};
    run.go(steer, 0.3, by_turns(0.1), random, ms(target_ms));
    EXPECT_EQ(steer.rungs(), target_ms < 20 ? rungs(1, kTurnRungs, 0) : Rungs{});
  }
  Steer steer = at_most(4);
  Random random(1);
  Beside run{.quiet = true, .no_others = true};
  run.go(steer, 5, by_turns(0.1), random, ms(4));
  EXPECT_EQ(steer.rungs(), Rungs{});
  run.quiet = run.no_others = false;
  run.go(steer, 0.1, by_turns(0.1), random, ms(4));
  EXPECT_EQ(steer.rungs(), rungs(1, kTurnRungs, 0)) << "as soon as somebody is there who can yield";
}

/// A target is met beside programs that do nothing yet. Nothing is given back to them, as then bursts would be late
/// once they begin.
TEST(Steer, GivesNothingBackToWhoDoesNothing) {
  Random random(1);
  Steer steer({.multiple = 2});
  Beside run{.last = {0, kTurnRungs, 0}, .launches_per_s = 0};
  const Takes alone = [](const Rungs&, double, Random& r) { return about(1.4, 0.05, r); };
  run.go(steer, 2, alone, random, ms(3));  // they have work, and there are enough bursts
  run.quiet = true;
  run.go(steer, 2, alone, random, ms(3));  // now it is known what it takes alone
  EXPECT_GT(steer.at_most(), ms(2));
  EXPECT_EQ(steer.rungs(), rungs(0, kTurnRungs, 0)) << words(steer, 132);
  run.quiet = false;
  run.go(steer, 10, alone, random, ms(3));
  EXPECT_LE(run.changes, 3) << "one try";
  EXPECT_EQ(steer.rungs(), rungs(0, kTurnRungs, 0)) << words(steer, 132);
}

TEST(Steer, GivesBackWhatIsNotNeeded) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(4);
    Beside run{.last = {1, kTurnRungs, 14}};
    run.go(steer, 120, by_turns(1.4), random, ms(4));
    EXPECT_EQ(steer.rungs(), rungs(0, 5, 0));  // turns of 500 us; of 700 us were too long
    EXPECT_EQ(steer.state(), State::met);
    run.go(steer, 600, by_turns(1.4), random, ms(4));
    run.clear();
    run.go(steer, 3600, by_turns(1.4), random, ms(4));
    EXPECT_EQ(steer.rungs(), rungs(0, 5, 0));
    EXPECT_LE(run.changes_a_minute(), 0.5);  // once in ten minutes less is tried
    EXPECT_LE(run.longer_part(), 0.01);
    run.go(steer, 1200, by_turns(0.2), random, ms(4));  // bursts became shorter: 1 ms and 1.4 ms are short enough
    EXPECT_EQ(rung(steer.rungs(), Dial::turns), 4) << words(steer, 132);
  }
}

/// Kernels of others are so long that shorter turns cost them nothing. A try would have bursts late for nothing.
TEST(Steer, LeavesADialByWhichOthersLoseNothing) {
  for (const double per_s : {40.0, 100.0, 500.0})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(per_s) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(2.5);
      Beside run{.per_s = per_s, .last = {0, kTurnRungs, 0}, .costs_turn = 0};
      run.go(steer, 10, by_turns(1.4), random, ms(2.5));
      run.clear();
      run.go(steer, 590, by_turns(1.4), random, ms(2.5));
      EXPECT_EQ(steer.rungs(), rungs(0, kTurnRungs, 0)) << words(steer, 132);
      EXPECT_LE(run.longer_part(), 0.001);
      EXPECT_LE(run.changes_a_minute(), 1);
    }
}

TEST(Steer, FollowsALoadThatChanges) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(4);
    Beside run{.last = {1, 0, 14}};
    const Takes load = [](const Rungs& rungs, double at_s, Random& r) {
      return at_s < 1300 ? by_blocks(1.4, 0.2, 6)(rungs, at_s, r) : by_blocks(1.4, 8, 6)(rungs, at_s, r);
    };
    run.go(steer, 299.9, load, random, ms(4));
    EXPECT_EQ(steer.rungs(), Rungs{});
    run.go(steer, 5.1, load, random, ms(4));
    run.clear();
    run.go(steer, 20, load, random, ms(4));
    EXPECT_LE(run.longer_part(), 0.05);  // a try may miss meanwhile
    run.who = 2;
    run.go(steer, 120, by_blocks(1.4, 0.2, 6), random, ms(4));
    EXPECT_EQ(steer.rungs(), Rungs{}) << words(steer, 132);
  }
}

TEST(Steer, BearsOthersThatComeAndGoAllTheTime) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(4);
    Beside run{.last = {1, kTurnRungs, 14}};
    for (int half_second = 0; half_second < 1200; ++half_second, ++run.who) {
      if (half_second == 120) run.clear();
      run.go(steer, 0.5, by_turns(1.4), random, ms(4));
    }
    EXPECT_LE(run.longer_part(), 0.03);
    EXPECT_LE(run.changes_a_minute(), 8);
    EXPECT_GE(rung(steer.rungs(), Dial::turns), 3);
  }
}

TEST(Steer, GivesAllBackInTimeAlthoughNobodyWent) {
  Random random(1);
  Steer steer = at_most(4);
  Beside run{.last = {1, 0, 14}};
  run.go(steer, 60, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_GT(rung(steer.rungs(), Dial::kept), 0);
  run.go(steer, 1200, by_blocks(1.4, 0.2, 6), random, ms(4));
  EXPECT_EQ(steer.rungs(), Rungs{});
}

TEST(Steer, SaysWhatCannotBeMetAndStaysAtTheBest) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(2);
    Beside run{.last = {1, 0, 14}};
    const Takes takes = [](const Rungs& rungs, double at_s, Random& r) {
      return by_blocks(1.4, 8, 6)(rungs, at_s, r) + 1;  // alone it would be met
    };
    run.go(steer, 15, takes, random, ms(2));
    say("unmet", run, steer);
    EXPECT_EQ(steer.state(), State::unmet);
    EXPECT_EQ(rung(steer.rungs(), Dial::level), 1);
    EXPECT_GE(rung(steer.rungs(), Dial::kept), 5);  // six are needed; what more does costs others and helps nobody
    EXPECT_LE(rung(steer.rungs(), Dial::kept), 8);
    EXPECT_NE(words(steer, 132).find("cannot be met"), std::string::npos) << words(steer, 132);
    run.go(steer, 1200, takes, random, ms(2));
    run.clear();
    run.go(steer, 3600, takes, random, ms(2));
    EXPECT_LE(run.changes_a_minute(), 1);
    Steer busy = at_most(2);
    Beside thousands{.per_s = 3'000, .step_s = 0.2, .last = {1, 0, 14}};
    thousands.go(busy, 30, takes, random, ms(2));
    EXPECT_EQ(busy.state(), State::unmet) << words(busy, 132);
    EXPECT_GE(rung(busy.rungs(), Dial::kept), 5);
    EXPECT_LE(rung(busy.rungs(), Dial::kept), 8);
  }
}

/// Steps double, so they pass by the rung that would do, and at the end of the dial it is worse than at its beginning.
TEST(Steer, LooksBetweenTheRungsItPassedByBeforeItGivesUp) {
  for (const int best : {1, 2, 3, 4, 5})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(best) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(2);
      Beside run{.last = {1, 0, 6}};
      run.go(steer, 15, by_a_bowl(1.4, best), random, ms(2));
      say("bowl", run, steer);
      EXPECT_EQ(rung(steer.rungs(), Dial::kept), best) << words(steer, 8);
      run.clear();
      run.go(steer, 600, by_a_bowl(1.4, best), random, ms(2));
      EXPECT_EQ(steer.state(), State::met) << words(steer, 8);
      EXPECT_LE(run.longer_part(), 0.02);
      EXPECT_LE(run.changes_a_minute(), 2);
    }
}

TEST(Steer, WaitsUntilOthersHaveLeftBeforeItJudgesWhatIsKept) {
  for (const int best : {1, 3})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(best) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(2);
      Beside run{.delay_s = 3, .says_delay = true, .last = {0, 0, 6}};
      run.go(steer, 30, by_a_bowl(1.4, best), random, ms(2));
      say("leaving", run, steer);
      EXPECT_EQ(rung(steer.rungs(), Dial::kept), best) << words(steer, 8);
      EXPECT_NE(steer.state(), State::unmet) << words(steer, 8);
    }
  Random random(1);  // but not for ever
  Steer steer = at_most(2);
  Beside run{.delay_s = 1e6, .says_delay = true, .last = {0, 0, 6}};
  for (int second = 0; second < 120 && steer.state() != State::unmet; ++second)
    run.go(steer, 1, by_a_bowl(1.4, 1), random, ms(2));
  EXPECT_EQ(steer.state(), State::unmet) << words(steer, 8);
}

TEST(Steer, UndoesDialsThatDoNotHelp) {
  for (const double per_s : {100.0, 1'000.0, 2'000.0, 10'000.0})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(per_s) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(1);
      Beside run{.per_s = per_s, .step_s = 0.2};
      const Takes takes = [](const Rungs&, double, Random& r) { return about(1.4, 0.1, r); };
      run.go(steer, 30, takes, random, ms(1));
      EXPECT_EQ(steer.state(), State::unmet);
      EXPECT_EQ(steer.rungs(), rungs(1, 0, 0)) << words(steer, 132);  // a level costs others nothing
    }
}

/// Turns as long as the driver's would hold up a server that keeps up beside short ones.
TEST(Steer, NeverTriesLongTurnsForATargetThatShortOnesMiss) {
  for (const double per_s : {40.0, 100.0, 500.0})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(per_s) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(0.5);
      Beside run{.per_s = per_s, .last = {0, kTurnRungs, 0}};
      run.go(steer, 0.3, by_turns(0.4), random, ms(0.5));
      int least = kTurnRungs;
      for (int tenth = 0; tenth < 1200; ++tenth) {
        run.go(steer, 0.1, by_turns(0.4), random, ms(0.5));
        least = std::min(least, rung(steer.rungs(), Dial::turns));
      }
      EXPECT_EQ(steer.state(), State::unmet) << words(steer, 132);
      EXPECT_GE(least, 9);
    }
}

/// Of 500 bursts eight are longer, which is neither met nor missed.
TEST(Steer, DoesNotSayThatATargetIsMetWhileThePercentileIsLonger) {
  Steer steer = at_most(4);
  std::uint64_t late = 0;
  for (int step = 0; step < 10; ++step) {
    LatencyHistogram ended;
    for (int i = 0; i < 50; ++i) ended.add(ms(i == 0 && late < 8 && ++late > 0 ? 5.4 : 3));
    steer.step({.now = seconds(1000 + 0.2 * step), .bursts = &ended, .active = true});
  }
  EXPECT_GT(steer.p99(), ms(4));
  EXPECT_EQ(steer.state(), State::few) << words(steer, 132);
}

TEST(Steer, BearsDelayAndDrift) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(4);
    Beside run{.delay_s = 0.5, .last = {1, kTurnRungs, 14}};
    const Takes takes = [](const Rungs& rungs, double at_s, Random& r) {
      return by_turns(1.4 + 0.8 * std::sin(at_s / 100))(rungs, at_s, r);
    };
    run.go(steer, 20, takes, random, ms(4));
    run.clear();
    run.go(steer, 1800, takes, random, ms(4));
    say("drift", run, steer);
    EXPECT_LE(run.longer_part(), 0.02);
    EXPECT_LE(run.changes_a_minute(), 4);
  }
}

TEST(Steer, HoldsItsHandWhileThereAreFewBursts) {
  for (const double per_s : {0.1, 1.0})
    for (int seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(std::to_string(per_s) + " " + std::to_string(seed));
      Random random(static_cast<std::uint64_t>(seed));
      Steer steer = at_most(33);  // none is longer
      Beside run{.per_s = per_s};
      run.go(steer, 60 / per_s, by_turns(0.5), random, ms(40));
      EXPECT_EQ(run.changes, 0);
      EXPECT_EQ(steer.rungs(), Rungs{});
      EXPECT_EQ(steer.state(), State::few) << words(steer, 132);
      Steer missed = at_most(4);  // but most are longer than this
      run.go(missed, 60 / per_s, by_turns(0.5), random, ms(4));
      EXPECT_GT(run.changes, 0);
    }
}

TEST(Steer, TakesThousandsOfBurstsThatWaitedForOneThingForOne) {
  for (int seed = 1; seed <= 5; ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    Steer steer = at_most(4);
    Beside run{.per_s = 10'000};
    const Takes takes = [](const Rungs&, double at_s, Random& r) {
      return std::fmod(at_s, 20) < 0.1 ? 100 : about(1.4, 0.1, r);
    };
    run.go(steer, 18, takes, random, ms(4));  // what was given at the beginning goes back
    EXPECT_EQ(steer.rungs(), Rungs{}) << words(steer, 132);
    run.changes = 0;
    run.go(steer, 120, takes, random, ms(4));
    EXPECT_EQ(run.changes, 0);
  }
}

TEST(Steer, LearnsWhatItTakesAloneFromQuietTimes) {
  Random random(1);
  Steer steer({.multiple = 2});
  Beside run{};
  run.go(steer, 10, by_turns(1.4), random, ms(2.8));
  EXPECT_EQ(steer.state(), State::learning);
  EXPECT_EQ(steer.rungs(), Rungs{});
  run.quiet = true;
  run.go(
      steer, 5, [](const Rungs&, double, Random& r) { return about(1.4, 0.05, r); }, random, ms(2.8));
  EXPECT_NEAR(static_cast<double>(steer.at_most().count()), 2 * 1.6e6, 3e5);
  run.quiet = false;
  run.go(steer, 60, by_turns(1.4), random, ms(3.2));
  EXPECT_TRUE(steer.state() == State::met || steer.state() == State::trying) << words(steer, 132);
  EXPECT_GT(rung(steer.rungs(), Dial::turns), 0);
}

TEST(Steer, RestsWhileTheSliceHasNoWork) {
  Random random(1);
  Steer steer = at_most(4);
  Beside run{.last = {1, kTurnRungs, 0}};
  run.go(steer, 130, by_turns(1.4), random, ms(4));
  const Rungs found = steer.rungs();
  EXPECT_NE(found, Rungs{});
  run.active = false;
  run.go(steer, 61, by_turns(1.4), random, ms(4));
  EXPECT_EQ(steer.rungs(), Rungs{});
  EXPECT_EQ(steer.state(), State::resting);
  run.active = true;
  run.go(steer, 0.2, by_turns(1.4), random, ms(4));
  EXPECT_EQ(steer.rungs(), found);
}

/// A service that starts again, and others that do.
TEST(Steer, KeepsWhatItFoundForWhenItsProgramsOrOthersComeBack) {
  Random random(1);
  Steer steer = at_most(4);
  Beside run{.last = {1, kTurnRungs, 14}};
  run.go(steer, 130, by_blocks(1.4, 8, 6), random, ms(4));
  const Rungs found = steer.rungs();
  EXPECT_GT(rung(found, Dial::kept), 0);
  run.active = false;
  run.absent = true;
  run.go(steer, 2, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_EQ(steer.rungs(), Rungs{}) << "nobody is there to yield to";
  run.active = true;
  run.absent = false;
  run.go(steer, 0.2, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_EQ(steer.rungs(), found);
  run.no_others = run.quiet = true;
  run.who = 0;
  run.go(steer, 30, by_blocks(1.4, 0, 6), random, ms(4));
  run.no_others = run.quiet = false;
  run.who = 2;
  run.go(steer, 0.2, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_EQ(steer.rungs(), found);
}

TEST(Steer, LooksAnewForWhatCouldNotBeMetOnceOthersAreThereOrOtherDials) {
  Random random(1);
  Steer steer = at_most(4);
  Beside run{.last = {1, kTurnRungs, 14}};
  run.go(steer, 60, by_blocks(6, 8, 6), random, ms(4));
  ASSERT_EQ(steer.state(), State::unmet) << words(steer, 132);
  run.who = 2;
  run.go(steer, 30, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_NE(steer.state(), State::unmet) << words(steer, 132);
  run.clear();
  run.go(steer, 30, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_LE(run.longer_part(), 0.03);
  run.last = {0, kTurnRungs, 0};
  run.go(steer, 30, by_turns(6), random, ms(4));
  ASSERT_EQ(steer.state(), State::unmet) << words(steer, 132);
  run.last = {1, 0, 14};
  run.go(steer, 10, by_blocks(1.4, 8, 6), random, ms(4));
  EXPECT_NE(steer.state(), State::unmet) << words(steer, 132);
}

TEST(Steer, SaysWhatItCostsOthersWhereThatWasMeasured) {
  Random random(1);
  Steer steer = at_most(4);
  Beside run{.last = {1, kTurnRungs, 0}};
  run.go(steer, 30, by_turns(0.5, 0.02), random, ms(4));
  EXPECT_EQ(words(steer, 132).find("unthrottled"), std::string::npos);  // nothing was known without the dials
  run.go(
      steer, 300, [](const Rungs&, double, Random& r) { return about(1, 0.1, r); }, random, ms(4));
  EXPECT_EQ(steer.rungs(), Rungs{});
  run.launches_per_s = 910;
  run.go(steer, 130, by_turns(1.4), random, ms(4));
  EXPECT_NE(words(steer, 132).find("others at 0."), std::string::npos) << words(steer, 132);
}

}  // namespace
}  // namespace gpuctl::sched::steer_test
