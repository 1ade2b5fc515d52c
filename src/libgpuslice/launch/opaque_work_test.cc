#include "libgpuslice/launch/opaque_work.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

constexpr std::uint32_t kSms = 100;

OpaqueJob job(std::uint64_t issued_ns) {
  return {.issued_ns = issued_ns};
}

std::uint64_t issued(const OpaqueWork& work) {
  return work.job() ? work.job()->issued_ns : 0;
}

Opaque::Look saw(std::uint64_t issued_ns) {
  return {.running = 20, .any = true, .oldest = job(issued_ns)};
}

/// Looks as the agent does. Returns whether something changed.
bool look(OpaqueWork& work, std::uint32_t demand, const Opaque::Look& look) {
  work.begin_look();
  work.end_look(demand);
  return work.note(demand, look);
}

TEST(OpaqueWork, DemandIsThatOfTheLargestLaunchUntilTheAgentLooks) {
  OpaqueWork work;
  EXPECT_TRUE(work.none());
  work.begin(30, kSms, job(1));
  work.begin(1000, kSms, job(2));
  work.begin(10, kSms, job(3));
  EXPECT_EQ(work.demand(), kSms);
  EXPECT_FALSE(work.none());
  EXPECT_TRUE(look(work, 20, saw(1)));
  EXPECT_EQ(work.demand(), 20u);
  EXPECT_FALSE(look(work, 20, saw(1)));
}

TEST(OpaqueWork, WhatWaitsForAGrantDoesNotRun) {
  OpaqueWork work;
  OpaqueWork::Waiting waiting{.job = job(1)};
  work.begin(30, kSms, job(1), true);
  work.enter_gate(waiting);
  EXPECT_EQ(work.demand(), 30u);
  EXPECT_EQ(work.running(), 0u);
  EXPECT_TRUE(look(work, 1, {})) << "the thread has the stream";
  EXPECT_EQ(work.running(), 0u);
  work.leave_gate(waiting);
  EXPECT_EQ(work.running(), 1u) << "until the agent looks";
  EXPECT_TRUE(look(work, 30, {.running = 30}));
  EXPECT_EQ(work.running(), 30u);
  EXPECT_TRUE(look(work, 30, {})) << "it is complete, and the next one waits";
  EXPECT_EQ(work.running(), 0u);
}

TEST(OpaqueWork, TheJobIsTheOldestOnTheGpu) {
  OpaqueWork work;
  work.begin(30, kSms, job(1));
  work.begin(30, kSms, job(2));
  EXPECT_EQ(issued(work), 1u);
  EXPECT_TRUE(look(work, 30, saw(2)));
  EXPECT_EQ(issued(work), 2u);
  EXPECT_TRUE(look(work, 0, {}));
  EXPECT_EQ(work.job(), nullptr);
  EXPECT_TRUE(work.none());
}

TEST(OpaqueWork, WhereNoStreamCouldBeLookedAtTheJobStays) {
  OpaqueWork work;
  work.begin(30, kSms, job(1));
  EXPECT_FALSE(look(work, 30, {.running = 30}));
  EXPECT_EQ(issued(work), 1u);
}

TEST(OpaqueWork, ALaunchDuringALookThatFoundNothingCounts) {
  OpaqueWork work;
  work.begin(30, kSms, job(1));
  work.begin_look();
  work.begin(40, kSms, job(2));
  work.end_look(0);
  EXPECT_FALSE(work.note(0, {}));
  EXPECT_EQ(work.demand(), 40u);
  EXPECT_TRUE(work.busy());
}

TEST(OpaqueWork, WhileTheAgentLooksTheWorkIsStillThere) {
  OpaqueWork work;
  work.begin(30, kSms, job(1));
  work.begin_look();
  EXPECT_FALSE(work.none());
}

TEST(OpaqueWork, ALaunchAtTheGateComesBeforeThoseOnTheGpuAndTheFirstThereBeforeOthers) {
  OpaqueWork work;
  OpaqueWork::Waiting first{.job = job(5)}, second{.job = job(6)}, third{.job = job(7)};
  work.begin(30, kSms, job(1));
  work.enter_gate(first);
  work.enter_gate(second);
  work.enter_gate(third);
  EXPECT_EQ(issued(work), 5u);
  work.leave_gate(second);
  EXPECT_EQ(issued(work), 5u);
  work.leave_gate(first);
  EXPECT_EQ(issued(work), 7u);
  work.leave_gate(third);
  EXPECT_EQ(issued(work), 7u);
}

}  // namespace
}  // namespace gpuslice
