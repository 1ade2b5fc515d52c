#include "sched/admission.h"

#include <gtest/gtest.h>

namespace gpuctl::sched::admission_test {
namespace {

using std::chrono::microseconds, std::chrono::milliseconds;

LatencyPromise ls(milliseconds at_most, microseconds alone, microseconds at_least = {}) {
  return {.path = "ls", .target = {.at_most = at_most}, .alone = alone, .alone_at_least = at_least};
}
LatencyPromise by_turns(std::string path, milliseconds at_most, milliseconds alone) {
  return {.path = std::move(path), .target = {.at_most = at_most}, .alone = alone, .by_turns = true};
}

TEST(Admission, WhatIsNotKnownAdmits) {
  const Admission admission = admit(ls(milliseconds(2), {}), {});
  EXPECT_EQ(admission.refused, "");
  EXPECT_TRUE(admission.notes.empty());
}

TEST(Admission, RefusesATimeBelowWhatItsProgramsTakeAlone) {
  const Admission admission = admit(ls(milliseconds(2), microseconds(3400), microseconds(3100)), {});
  EXPECT_EQ(admission.refused, "2 ms: the p99 of its bursts was 3.1 ms or more while nobody else had work");
}

TEST(Admission, NotesWhatIsCloseOrOfOtherPrograms) {
  for (const auto at_least : {microseconds(0), microseconds(2100)}) {
    const Admission admission = admit(ls(milliseconds(2), microseconds(3100), at_least), {});
    EXPECT_EQ(admission.refused, "");
    ASSERT_EQ(admission.notes.size(), 1u);
    EXPECT_EQ(admission.notes[0],
              "latency 2 ms may never be met: programs in ls took 3.1 ms while nobody else had work");
  }
  EXPECT_TRUE(admit(ls(milliseconds(4), microseconds(3100), microseconds(3100)), {}).notes.empty());
}

TEST(Admission, AMultipleIsNeverBelow) {
  LatencyPromise wanted = ls({}, microseconds(3100), microseconds(3100));
  wanted.target.multiple = 1;
  EXPECT_EQ(admit(wanted, {}).refused, "");
  EXPECT_TRUE(admit(wanted, {}).notes.empty());
}

TEST(Admission, NotesBurstsByTurnsThatCannotAllBeInTimeTogether) {
  const LatencyPromise wanted = by_turns("ls", milliseconds(5), milliseconds(3));
  const auto notes = [&](const LatencyPromise& other) {
    const Admission admission = admit(wanted, std::vector{other});
    EXPECT_EQ(admission.refused, "");
    return admission.notes;
  };
  // Whoever is last takes 6 ms.
  EXPECT_EQ(notes(by_turns("rt", milliseconds(5), milliseconds(3))),
            std::vector<std::string>{"where bursts of ls (3 ms alone) and rt (3 ms alone) come together, the last one "
                                     "takes 6 ms, and the laxest of their targets is 5 ms"});
  EXPECT_EQ(notes(by_turns("rt", milliseconds(4), milliseconds(3))).size(), 1u);
  // The other one can be last, or is short, or is on the GPU at the same time.
  EXPECT_TRUE(notes(by_turns("rt", milliseconds(6), milliseconds(3))).empty());
  EXPECT_TRUE(notes(by_turns("rt", milliseconds(5), milliseconds(2))).empty());
  EXPECT_TRUE(notes({.path = "rt", .target = {.at_most = milliseconds(5)}, .alone = milliseconds(3)}).empty());
  // What others cannot keep by themselves is not said of this one.
  EXPECT_TRUE(notes(by_turns("rt", milliseconds(20), milliseconds(30))).empty());
  EXPECT_TRUE(notes(by_turns("rt", {}, milliseconds(30))).empty());
}

TEST(Admission, RefusesWhatBurstsByTurnsTookTogetherAtAllTimes) {
  const auto sure = [](LatencyPromise promise) {
    promise.alone_at_least = promise.alone;
    return promise;
  };
  const LatencyPromise wanted = sure(by_turns("ls", milliseconds(5), milliseconds(3)));
  const LatencyPromise other = sure(by_turns("rt", milliseconds(5), milliseconds(3)));
  const Admission refused = admit(wanted, std::vector{other});
  EXPECT_EQ(refused.refused,
            "5 ms: where bursts of ls (3 ms alone) and rt (3 ms alone) come together, the last one takes 6 ms, and the "
            "laxest of their targets is 5 ms");
  EXPECT_TRUE(refused.notes.empty());
  // One of them may be faster now, or it is closer than a tenth.
  EXPECT_EQ(admit(wanted, std::vector{by_turns("rt", milliseconds(5), milliseconds(3))}).refused, "");
  const Admission close = admit(sure(by_turns("ls", milliseconds(20), milliseconds(10))),
                                std::vector{sure(by_turns("rt", milliseconds(20), milliseconds(11)))});
  EXPECT_EQ(close.refused, "");
  EXPECT_EQ(close.notes.size(), 1u);
  EXPECT_EQ(admit(sure(by_turns("ls", milliseconds(7), milliseconds(3))), std::vector{other}).refused, "");
}

TEST(Admission, RefusesANewSliceBehindThoseThatCannotBeInTimeThemselves) {
  const auto sure = [](std::string path) {
    LatencyPromise promise = by_turns(std::move(path), milliseconds(5), milliseconds(3));
    promise.alone_at_least = promise.alone;
    return promise;
  };
  const std::vector both{sure("a"), sure("b")};
  LatencyPromise fresh = by_turns("new", milliseconds(5), {});
  EXPECT_EQ(admit(fresh, both).refused, "") << "it goes first";
  fresh.target.at_most = microseconds(5400);
  EXPECT_EQ(admit(fresh, both).refused,
            "5.4 ms: where bursts of a (3 ms alone) and b (3 ms alone) and new come together, the last one takes 6 ms, "
            "and the laxest of their targets is 5.4 ms");
  fresh.target.at_most = milliseconds(7);
  EXPECT_EQ(admit(fresh, both).refused, "");
}

TEST(Room, IsWhatTheSlicesBesideAreNotPromised) {
  constexpr Caller kRoot{0, {}};
  SliceTree tree({{.index = 0, .sms = CapSM{132}, .memory = 100}}, 0);
  ASSERT_TRUE(tree.create("ls", {.reserve = 40, .memory_min = 30}, kRoot));
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 16, .memory_min = 10}, kRoot));
  ASSERT_TRUE(tree.create("ls/b", {}, kRoot));
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  const auto is = [&](const char* path, std::uint32_t reserved, std::uint32_t free, std::uint64_t kept,
                      std::uint64_t free_bytes) {
    const Unpromised room = room_for(tree, path, 100);
    EXPECT_EQ(room.reserved.count, reserved) << path;
    EXPECT_EQ(room.reserve_free.count, free) << path;
    EXPECT_EQ(room.memory_kept, kept) << path;
    EXPECT_EQ(room.memory_free, free_bytes) << path;
  };
  is("batch", 40, 92, 30, 70);
  is("ls", 0, 132, 0, 100);
  is("ls/b", 16, 24, 10, 20);
  is("/", 40, 92, 30, 70);
}

}  // namespace
}  // namespace gpuctl::sched::admission_test
