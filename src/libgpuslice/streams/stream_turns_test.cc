#include "libgpuslice/streams/stream_turns.h"

#include <gtest/gtest.h>

namespace gpuslice::stream_turns_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kFirst = 1, kSecond = 2, kThird = 4;

class StreamTurnsTest : public testing::Test {
 protected:
  StreamTurns::Held look(std::uint64_t at_ms, std::uint32_t turns) { return turns_.look(places_, turns, at_ms * kMs); }
  /// The first place gets on with each look; what is found at the end of that time is returned.
  StreamTurns::Held run(std::uint64_t from_ms, std::uint64_t to_ms) {
    StreamTurns::Held held;
    for (std::uint64_t at = from_ms; at <= to_ms; ++at) {
      ++places_[0].progress;
      held = look(at, kFirst);
    }
    return held;
  }

  StreamTurns::Places places_{{{.busy = true, .begun = true}, {.busy = true, .begun = true}, {}, {}, {}}};
  StreamTurns turns_;
};

TEST_F(StreamTurnsTest, WhatHasNoTurnIsHeldWhileSomethingRunsThatHas) {
  EXPECT_EQ(look(1, kFirst), (StreamTurns::Held{.evicted = kSecond, .gated = kSecond}));
  EXPECT_EQ(look(2, kSecond), (StreamTurns::Held{.evicted = kFirst, .gated = kFirst}));
  EXPECT_EQ(look(3, kFirst | kSecond), StreamTurns::Held{});
  EXPECT_EQ(look(4, 0), StreamTurns::Held{}) << "no turns: nobody is held";
}

TEST_F(StreamTurnsTest, NobodyIsHeldForAStreamWithoutWork) {
  EXPECT_EQ(look(1, kThird), StreamTurns::Held{});
  places_[0].busy = false;
  EXPECT_EQ(look(2, kFirst), StreamTurns::Held{});
}

TEST_F(StreamTurnsTest, WorkThatHasNotBegunTakesNoSmsAndHoldsLaunchesBriefly) {
  places_[0].begun = false;
  EXPECT_EQ(look(1, kFirst), (StreamTurns::Held{.gated = kSecond})) << "it may wait for the other on the GPU";
  EXPECT_EQ(look(10, kFirst), (StreamTurns::Held{.gated = kSecond}));
  EXPECT_EQ(look(11, kFirst), StreamTurns::Held{});
  places_[0].begun = true;
  EXPECT_EQ(look(12, kFirst), (StreamTurns::Held{.evicted = kSecond, .gated = kSecond}));
}

TEST_F(StreamTurnsTest, AKernelThatDoesNotGetOnHoldsNobody) {
  look(1, kFirst);
  EXPECT_EQ(look(100, kFirst).evicted, kSecond);
  EXPECT_EQ(look(101, kFirst), StreamTurns::Held{}) << "it may wait for the other";
  EXPECT_EQ(look(500, kFirst), StreamTurns::Held{});
  ++places_[0].progress;
  EXPECT_EQ(look(501, kFirst).evicted, kSecond);
}

TEST_F(StreamTurnsTest, AnotherTurnIsANewStart) {
  look(1, kFirst);
  EXPECT_EQ(look(101, kFirst), StreamTurns::Held{});
  EXPECT_EQ(look(102, kSecond).evicted, kFirst);
  EXPECT_EQ(look(103, kFirst).evicted, kSecond);
}

TEST_F(StreamTurnsTest, NoStreamIsHeldForEverEvenIfOthersGetOn) {
  EXPECT_EQ(run(1, 2000).evicted, kSecond);
  EXPECT_EQ(run(2001, 2001), StreamTurns::Held{});
  EXPECT_EQ(run(2002, 2100), StreamTurns::Held{});
  EXPECT_EQ(run(2101, 2101).evicted, kSecond);
  EXPECT_EQ(run(2102, 4100).evicted, kSecond);
  EXPECT_EQ(run(4101, 4101), StreamTurns::Held{});
}

}  // namespace
}  // namespace gpuslice::stream_turns_test
