#include "gpuctld/budgets/turns.h"

#include <gtest/gtest.h>

#include <string>

namespace gpuctl::daemon {
namespace {

constexpr auto kAll = [](std::uint32_t) { return true; };

TEST(Turns, UsersTakeTurnsHoweverManyConnectionsTheyHave) {
  Turns<std::string> turns;
  for (const char* name : {"a1", "a2", "a3", "a4"}) turns.add(7, name);
  turns.add(8, "b1");
  turns.add(9, "c1");
  turns.add(9, "c2");
  std::string order, item;
  while (turns.next(kAll, item)) order += item + ' ';
  EXPECT_EQ(order, "a1 b1 c1 a2 c2 a3 a4 ");
  EXPECT_TRUE(turns.empty());
}

TEST(Turns, AUserWhoHasToWaitHoldsUpNobody) {
  Turns<int> turns;
  turns.add(7, 1);
  turns.add(8, 2);
  turns.add(8, 3);
  int item = 0;
  ASSERT_TRUE(turns.next([](std::uint32_t uid) { return uid != 7; }, item));
  EXPECT_EQ(item, 2);
  ASSERT_TRUE(turns.next([](std::uint32_t uid) { return uid != 7; }, item));
  EXPECT_EQ(item, 3);
  EXPECT_FALSE(turns.next([](std::uint32_t uid) { return uid != 7; }, item));
  EXPECT_FALSE(turns.empty());
  ASSERT_TRUE(turns.next(kAll, item));
  EXPECT_EQ(item, 1);
}

TEST(Turns, WhoComesBackWaitsForTheOthers) {
  Turns<int> turns;
  turns.add(1, 1);
  turns.add(2, 2);
  int item = 0;
  ASSERT_TRUE(turns.next(kAll, item));
  EXPECT_EQ(item, 1);
  turns.add(1, 1);
  ASSERT_TRUE(turns.next(kAll, item));
  EXPECT_EQ(item, 2);
}

TEST(Turns, WhatIsRemovedHasNoTurn) {
  Turns<int> turns;
  turns.add(1, 1);
  turns.add(1, 2);
  turns.add(2, 3);
  turns.remove(1, 1);
  turns.remove(2, 3);
  turns.remove(3, 3);
  int item = 0;
  ASSERT_TRUE(turns.next(kAll, item));
  EXPECT_EQ(item, 2);
  EXPECT_TRUE(turns.empty());
}

}  // namespace
}  // namespace gpuctl::daemon
