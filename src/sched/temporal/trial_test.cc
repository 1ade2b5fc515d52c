#include "sched/temporal/trial.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpuctl::sched {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A program's launches per second under the policy and left to the GPU.
struct Program {
  std::uint64_t id;
  double policy, gpu;
  double done = 0;
};

/// Programs that launch without a pause, looked at every 10 ms.
struct Running {
  explicit Running(std::vector<Program> programs) : programs(std::move(programs)) {}

  void run(Time time) {
    for (const Time end = now + time; now < end; now += milliseconds{10}) {
      std::vector<CountedProgram> counted;
      for (Program& program : programs) {
        program.done += (trial.left_to_gpu() ? program.gpu : program.policy) / 100;
        counted.push_back({program.id, static_cast<std::uint64_t>(program.done)});
      }
      const bool before = trial.left_to_gpu();
      const bool changed = trial.update(counted, now);
      EXPECT_EQ(changed, before != trial.left_to_gpu());
      changes += changed;
    }
  }
  /// Until both ways of the programs were tried.
  void run_trial() { run(milliseconds{1300}); }

  Trial trial;
  std::vector<Program> programs;
  Time now{};
  int changes = 0;
};

TEST(Trial, KeepsTheWayThatIsBetter) {
  Running better({{1, 100, 150}, {2, 50, 45}}), worse({{1, 100, 150}, {2, 50, 30}});
  EXPECT_FALSE(better.trial.left_to_gpu()) << "it begins with the policy";
  better.run_trial();
  EXPECT_TRUE(better.trial.left_to_gpu());
  EXPECT_EQ(better.changes, 1);
  worse.run_trial();
  EXPECT_FALSE(worse.trial.left_to_gpu()) << "1.5 times 0.6 is below 1";
  EXPECT_EQ(worse.changes, 2);
}

TEST(Trial, ATenthIsSeen) {
  for (const double gain : {0.9, 1.1}) {
    Running running({{1, 100, 100}, {2, 40, 40 * gain}});
    running.run_trial();
    EXPECT_EQ(running.trial.left_to_gpu(), gain > 1) << gain;
  }
}

TEST(Trial, IsRepeatedMoreAndMoreSeldom) {
  Running running({{1, 100, 150}, {2, 50, 60}});
  running.run_trial();
  running.run(seconds{9});
  EXPECT_EQ(running.changes, 1);
  running.run(seconds{3});
  EXPECT_EQ(running.changes, 3) << "there and back";
  EXPECT_TRUE(running.trial.left_to_gpu());
  running.run(seconds{18});
  EXPECT_EQ(running.changes, 3);
  running.run(seconds{5});
  EXPECT_EQ(running.changes, 5);
}

TEST(Trial, SeesThatProgramsHaveChanged) {
  Running running({{1, 100, 150}, {2, 50, 60}});
  running.run_trial();
  running.programs[0].gpu = 50;
  running.run(seconds{12});
  EXPECT_FALSE(running.trial.left_to_gpu());
}

TEST(Trial, OneProgramIsNotTried) {
  Running running({{1, 100, 500}});
  running.run(seconds{20});
  EXPECT_FALSE(running.trial.left_to_gpu());
  EXPECT_EQ(running.trial.again(), kNever);
  std::vector<Program> many;
  for (std::uint64_t id = 0; id <= Trial::kMostPrograms; ++id) many.push_back({id, 100, 500});
  Running crowd(many);
  crowd.run(seconds{5});
  EXPECT_EQ(crowd.changes, 0);
}

TEST(Trial, RemembersWhatWasFoundOfTheSamePrograms) {
  Running running({{1, 100, 150}, {2, 50, 60}});
  running.run_trial();
  const Program second = running.programs.back();
  running.programs.pop_back();
  running.run(seconds{1});
  EXPECT_TRUE(running.trial.left_to_gpu()) << "nothing is gained by a change for one";
  running.programs.push_back({3, 50, 20});
  running.run(milliseconds{10});
  EXPECT_FALSE(running.trial.left_to_gpu()) << "others begin with the policy";
  running.run_trial();
  EXPECT_FALSE(running.trial.left_to_gpu());
  running.programs.back() = second;
  running.run(milliseconds{10});
  EXPECT_TRUE(running.trial.left_to_gpu());
}

TEST(Trial, LongLaunchesAreWaitedFor) {
  Running running({{1, 6, 7}, {2, 100, 110}});
  running.run(seconds{4});
  EXPECT_TRUE(running.trial.left_to_gpu());
}

TEST(Trial, WhereNothingCanBeCountedThePolicyStays) {
  Running slow({{1, 1, 10}, {2, 100, 500}});
  slow.run(seconds{9});
  EXPECT_FALSE(slow.trial.left_to_gpu());
  EXPECT_EQ(slow.changes, 0) << "one way tells nothing, so the other is not tried";
  Running stops({{1, 100, 0}, {2, 100, 500}});
  stops.run(seconds{5});
  EXPECT_FALSE(stops.trial.left_to_gpu());
}

TEST(Trial, CountsThatComeInStepsMakeRatesNotWrong) {
  // Left to the GPU, counts are told every 200 ms; what is told then is 4 % more.
  Trial trial;
  Time now{};
  double done[2] = {};
  for (; now < milliseconds{1400}; now += milliseconds{10}) {
    const bool tells = !trial.left_to_gpu() || now % milliseconds{200} == Time{0};
    static std::uint64_t told[2];
    for (int i = 0; i < 2; ++i) {
      done[i] += trial.left_to_gpu() ? 1.04 : 1;
      if (tells) told[i] = static_cast<std::uint64_t>(done[i]);
    }
    trial.update(std::vector<CountedProgram>{{1, told[0]}, {2, told[1]}}, now);
  }
  EXPECT_TRUE(trial.left_to_gpu());
}

}  // namespace
}  // namespace gpuctl::sched
