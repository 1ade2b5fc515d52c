// What is said of a target follows from its state alone: no line says two things that cannot both be.
#include <gtest/gtest.h>

#include <chrono>
#include <regex>
#include <string>
#include <vector>

#include "sched/latency/steer.h"
#include "sched/testing/latency_plant.h"

namespace gpuctl::sched::words_test {

using State = Steer::State;
using plant::ms, plant::rungs;

namespace {

struct Row {
  State state;
  Rungs rungs;
  std::uint64_t count;
  const char* words;
};

TEST(LatencyWords, FollowFromTheState) {
  const Rungs off{};
  const std::vector<Row> table{
      {State::resting, off, 0, "no bursts lately; others need not yield"},
      {State::resting, rungs(1, 0, 2), 500, "no bursts lately; others need not yield"},
      {State::few, off, 0, "others need not yield; no bursts yet beside others; its target is 4 ms"},
      {State::few, off, 40, "others need not yield; p99 3 ms of 4 ms by 40 bursts, 161 are needed"},
      {State::few, rungs(0, 9, 0), 40, "others' turns 125 us; p99 3 ms of 4 ms by 40 bursts, 161 are needed"},
      {State::few, off, 500, "others need not yield; p99 3 ms of 4 ms by 500 bursts, more are needed"},
      {State::met, off, 500, "others need not yield; p99 3 ms of 4 ms"},
      {State::met, rungs(1, 0, 1), 500, "goes before the others, 8 SMs kept; p99 3 ms of 4 ms"},
      {State::missed, off, 500,
       "others do not yield yet; p99 3 ms of 4 ms, others are to yield more once another slice's target is seen to"},
      {State::leaving, rungs(0, 0, 2), 0, "16 SMs kept; others are still leaving; its target is 4 ms"},
      {State::seeking, rungs(1, 0, 0), 0,
       "goes before the others; no bursts since; its target is 4 ms, others are to yield more"},
      {State::seeking, rungs(1, 0, 0), 60, "goes before the others; p99 3 ms of 4 ms by 60 bursts, 161 are needed"},
      {State::trying, off, 60,
       "others do not yield; it was met, trying whether less is enough: p99 3 ms of 4 ms by 60 bursts"},
      {State::trying, off, 1,
       "others do not yield; it was met, trying whether less is enough: p99 3 ms of 4 ms by 1 burst"},
      {State::trying, off, 0,
       "others do not yield; it was met, trying whether less is enough: no bursts since; its target is 4 ms"},
      {State::unmet, off, 0,
       "others do not yield, which did not help; cannot be met: p99 5 ms of 4 ms is the best that was reached"},
      {State::unmet, rungs(1, 0, 6), 0,
       "goes before the others, 48 SMs kept; cannot be met: p99 5 ms of 4 ms is the best that was reached"},
      {State::helpless, off, 60, "others do not yield yet; p99 3 ms of 4 ms, and nobody beside it is there to yield"},
  };
  for (const Row& row : table) {
    const Said said{.state = row.state,
                    .rungs = row.rungs,
                    .target = {.at_most = ms(4)},
                    .at_most = ms(4),
                    .count = row.count,
                    .p99 = row.count == 0 ? ms(0) : ms(3),
                    .best = ms(5)};
    EXPECT_EQ(words(said, 132), row.words);
  }
}

TEST(LatencyWords, NameWhatAMultipleIsOf) {
  Said said{.state = State::learning, .target = {.multiple = 2}, .alone_count = 12};
  EXPECT_EQ(
      words(said, 132),
      "others need not yield; what it takes alone is not known yet: 12 of 30 bursts seen while nobody else had work");
  said.in_vain = true;
  EXPECT_EQ(words(said, 132),
            "others need not yield; what it takes alone is not known yet: 12 of 30 bursts seen while nobody else had "
            "work, as others went on when they were to pause");
  said.pauses = true;
  EXPECT_EQ(words(said, 132), "others are paused for a moment, to see what it takes alone: 12 bursts so far");
  said = {.state = State::met, .target = {.multiple = 2}, .at_most = ms(4), .count = 500, .p99 = ms(3), .alone = ms(2)};
  EXPECT_EQ(words(said, 132), "others need not yield; p99 3 ms of 4 ms (alone 2 ms)");
}

/// An event that says so comes once dials are turned, when what was seen before counts no more.
TEST(LatencyWords, BeforeTheFirstBurstsUnderNewDialsThoseBeforeAreSaid) {
  Said said{.state = State::seeking, .rungs = rungs(1, 0, 0), .target = {.at_most = ms(4)}, .at_most = ms(4)};
  said.missed_by = ms(9);
  EXPECT_EQ(words(said, 132), "goes before the others; p99 9 ms of 4 ms before that, and no bursts since");
  said.count = 60;
  said.p99 = ms(7);
  EXPECT_EQ(words(said, 132), "goes before the others; p99 7 ms of 4 ms, others are to yield more");
}

/// So that nobody looks among the others for why it is missed.
TEST(LatencyWords, ATimeBelowWhatItTakesAloneIsSaidBesideThat) {
  Said said{.state = State::helpless, .target = {.at_most = ms(4)}, .at_most = ms(4), .count = 60, .p99 = ms(7)};
  said.alone = ms(6);
  said.alone_count = Alone::kEnough - 1;
  const std::string end = ", and nobody beside it is there to yield";
  EXPECT_EQ(words(said, 132), "others do not yield yet; p99 7 ms of 4 ms" + end);
  said.alone_count = Alone::kEnough;
  EXPECT_EQ(words(said, 132), "others do not yield yet; p99 7 ms of 4 ms (alone 6 ms)" + end);
  said.alone = ms(4);
  EXPECT_EQ(words(said, 132), "others do not yield yet; p99 7 ms of 4 ms" + end);
}

/// The bursts under less are what is known then, and may be long: those before met the target.
TEST(LatencyWords, WhatATrySeesIsNotSaidOfATargetThatIsMet) {
  const Said said{.state = State::trying,
                  .target = {.multiple = 2},
                  .at_most = std::chrono::microseconds(188),
                  .count = 12,
                  .p99 = ms(6),
                  .alone = std::chrono::microseconds(94)};
  EXPECT_EQ(words(said, 132),
            "others do not yield; it was met, trying whether less is enough: p99 6 ms of 188 us (alone 94 us) by 12 "
            "bursts");
}

TEST(LatencyWords, SayWhatItCostsOthersOnlyWhereTheyYield) {
  Said said{.state = State::met, .target = {.at_most = ms(4)}, .at_most = ms(4), .count = 500, .p99 = ms(3)};
  said.others_part = 0.91;
  EXPECT_EQ(words(said, 132), "others need not yield; p99 3 ms of 4 ms");
  said.rungs = rungs(0, 9, 0);
  EXPECT_EQ(words(said, 132), "others' turns 125 us; p99 3 ms of 4 ms; others at 0.91 of unthrottled");
}

/// Whatever happens, each line is one of those: a target is not given up before all was tried, and no line has two
/// states. A target is set while others have no work, is missed, given up, and set again.
TEST(LatencyWords, ATargetIsNotGivenUpBeforeAllWasTried) {
  Random random(1);
  Steer steer({.at_most = ms(1)});
  plant::Beside run{.last = {1, plant::rung({0, 3, 0}, Dial::turns), 4}};
  const auto takes = [](const Rungs&, double, Random& r) { return plant::about(1.4, 0.1, r); };
  for (int again = 0; again < 2; ++again) {
    int tried = 0;
    std::string said;
    for (int step = 0; step < 300 && said.find("cannot be met") == std::string::npos; ++step) {
      run.go(steer, 0.1, takes, random, ms(1));
      tried += run.rungs_sum != steer.rungs();
      run.rungs_sum = steer.rungs();
      said = words(steer, 132);
    }
    EXPECT_TRUE(std::regex_match(said, std::regex("goes before the others; cannot be met: "
                                                  "p99 1\\.[4-9] ms of 1 ms is the best that was reached")))
        << said;
    EXPECT_GE(tried, 4) << "all dials were turned before";
    steer.begin_anew(plant::seconds(run.now_s));
    EXPECT_EQ(words(steer, 132), "goes before the others; no bursts yet beside others; its target is 1 ms");
  }
}

}  // namespace
}  // namespace gpuctl::sched::words_test
