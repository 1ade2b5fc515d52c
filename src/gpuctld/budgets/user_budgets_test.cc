#include "gpuctld/budgets/user_budgets.h"

#include <gtest/gtest.h>

#include "gpuctld/budgets/monitor_pace.h"
#include "gpuctld/budgets/patience.h"

namespace gpuctl::daemon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMs = 1'000'000, kSecond = 1000 * kMs;
constexpr Budget kSmall{.connections = 2,
                        .buffered = 100,
                        .calls = {10, 5},
                        .bytes = {1000, 500},
                        .log_lines = {1, 2},
                        .time = {0.25, 0.1}};
constexpr Budget kSmallOfAll{
    .connections = 3, .buffered = 150, .calls = {20, 20}, .bytes = {4000, 1000}, .log_lines = {10, 10}, .time = {1, 1}};

UserBudgets small() {
  return UserBudgets(33, kSmall, kSmallOfAll);
}

TEST(TokenBucket, ABurstAtOnceAndThenSoManyASecond) {
  TokenBucket bucket({10, 5});
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(bucket.wait(kSecond), 0ns) << i;
    bucket.charge(1, kSecond);
  }
  EXPECT_GE(bucket.wait(kSecond), 100ms) << "one too many was taken on credit";
  EXPECT_LE(bucket.wait(kSecond), 101ms);
  EXPECT_EQ(bucket.wait(kSecond + 101 * kMs), 0ns);
  EXPECT_FALSE(bucket.full(kSecond + 101 * kMs));
  EXPECT_TRUE(bucket.full(2 * kSecond)) << "no more than the burst is saved";
  bucket.charge(5, 100 * kSecond);
  EXPECT_EQ(bucket.wait(100 * kSecond), 0ns);
  bucket.charge(1, 100 * kSecond);
  EXPECT_GT(bucket.wait(100 * kSecond), 0ns);
  EXPECT_GT(bucket.wait(99 * kSecond), 0ns) << "a clock that jumps back pays no debt";
}

TEST(TokenBucket, NobodyWaitsLongerThanForTheMostThatMayBeOwed) {
  TokenBucket bucket({10, 5});
  for (int i = 0; i < 100; ++i) bucket.charge(1000, kSecond);
  EXPECT_GT(bucket.wait(kSecond), kMostOwed - 1ms);
  EXPECT_LE(bucket.wait(kSecond), kMostOwed + 1ms);
}

TEST(UserBudgets, OneUsersCallsMakeNobodyElseWait) {
  UserBudgets budgets = small();
  budgets.charge(1000, 8, 0, kSecond);
  EXPECT_GE(budgets.wait(1000, kSecond), 300ms);
  EXPECT_EQ(budgets.wait(1001, kSecond), 0ns);
  EXPECT_EQ(budgets.wait(0, kSecond), 0ns);
  budgets.charge(1001, 0, 600, kSecond);
  EXPECT_GE(budgets.wait(1001, kSecond), 100ms) << "bytes count too";
}

TEST(UserBudgets, RootAndTheDaemonsOwnUserNeverWait) {
  UserBudgets budgets = small();
  for (const std::uint32_t uid : {0u, 33u}) {
    budgets.charge(uid, 1e9, 1u << 30, kSecond);
    EXPECT_EQ(budgets.wait(uid, kSecond), 0ns);
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(budgets.connect(uid, 1));
    EXPECT_TRUE(budgets.buffer(uid, 1 << 30));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(budgets.log_line(uid, kSecond), 0u);
  }
  EXPECT_EQ(budgets.wait(1000, kSecond), 0ns) << "nor does what they do count for others";
  EXPECT_TRUE(budgets.connect(1000, 1));
}

TEST(UserBudgets, ManyUserIdsTogetherHaveABudgetToo) {
  UserBudgets budgets = small();
  for (std::uint32_t uid = 1000; uid < 1010; ++uid) budgets.charge(uid, 4, 0, kSecond);
  EXPECT_GE(budgets.wait(2000, kSecond), 900ms);
  EXPECT_EQ(budgets.wait(0, kSecond), 0ns);
}

TEST(UserBudgets, WhoAsksSeldomWaitsForNobodyElsesDebts) {
  Budget of_user = kSmall;
  of_user.kept_time = {0.01, 0.02};
  Budget of_all = kSmallOfAll;
  of_all.kept_time = {0.25, 0.1};
  UserBudgets budgets(33, of_user, of_all);
  for (std::uint32_t i = 0; i < 20; ++i) budgets.worked(1000 + i % 5, 100ms, kSecond);
  EXPECT_GE(budgets.wait(1000, kSecond), 900ms) << "who brought all into debt waits until that is paid";
  EXPECT_EQ(budgets.wait(2000, kSecond), 0ns);
  budgets.worked(2000, 15ms, kSecond);
  EXPECT_EQ(budgets.wait(2000, kSecond), 0ns);
  budgets.worked(2000, 15ms, kSecond);
  EXPECT_GE(budgets.wait(2000, kSecond), 900ms) << "it has taken more than is kept for it";
  EXPECT_EQ(budgets.wait(2000, 2 * kSecond + kSecond / 20), 0ns);
}

/// How much of the daemon's time so many users get in ten seconds, each of whom asks for a millisecond whenever it need
/// not wait.
double taken_by(std::uint32_t users, UserBudgets& budgets) {
  double seconds = 0;
  for (std::uint64_t now_ns = kSecond; now_ns < 11 * kSecond; now_ns += 5 * kMs)
    for (std::uint32_t uid = 1000; uid < 1000 + users; ++uid) {
      if (budgets.wait(uid, now_ns).count() > 0) continue;
      budgets.worked(uid, 1ms, now_ns);
      seconds += 0.001;
    }
  return seconds;
}

TEST(UserBudgets, ManyWhoAskSeldomHaveOneBudgetTogether) {
  UserBudgets budgets(33);
  constexpr double kMost = 1.7;
  EXPECT_LT(taken_by(100, budgets), kMost) << "0.035 of a core, 0.05 of those who ask seldom, and what is saved up";
  UserBudgets more(33);
  EXPECT_LT(taken_by(1000, more), kMost);
}

TEST(UserBudgets, AFewBusyUsersTakeNothingFromWhoAsksSeldom) {
  UserBudgets budgets(33);
  EXPECT_GT(taken_by(8, budgets), 0.75);
  for (int i = 0; i < 30; ++i)
    for (std::uint32_t uid = 1000; uid < 1008; ++uid) budgets.worked(uid, 1ms, 11 * kSecond);
  EXPECT_GT(budgets.wait(1000, 11 * kSecond).count(), 0);
  EXPECT_EQ(budgets.wait(2000, 11 * kSecond), 0ns);
}

TEST(UserBudgets, ConnectionsAreCountedByUserAndTogether) {
  UserBudgets budgets = small();
  EXPECT_TRUE(budgets.connect(1000, 1));
  EXPECT_TRUE(budgets.connect(1000, 1));
  EXPECT_FALSE(budgets.connect(1000, 1));
  EXPECT_TRUE(budgets.connect(1001, 1));
  EXPECT_FALSE(budgets.connect(1002, 1)) << "what is left is root's";
  EXPECT_TRUE(budgets.connect(0, 1));
  budgets.disconnect(1000);
  EXPECT_TRUE(budgets.connect(1002, 1));
}

TEST(UserBudgets, ConnectionsInAStormArePaidForByTheirUserAlone) {
  UserBudgets budgets = small();
  for (int i = 0; i < 100'000; ++i)
    if (budgets.connect(1000, kSecond)) budgets.disconnect(1000);
  EXPECT_EQ(budgets.wait(1001, kSecond), 0ns);
  EXPECT_GE(budgets.wait(1000, kSecond), 4s);
  EXPECT_LE(budgets.wait(1000, kSecond), kMostOwed + 1s) << "it ends soon after the storm";
}

TEST(UserBudgets, BytesThatWaitAreCounted) {
  UserBudgets budgets = small();
  EXPECT_TRUE(budgets.buffer(1000, 90));
  EXPECT_FALSE(budgets.buffer(1000, 20));
  EXPECT_TRUE(budgets.buffer(1000, -50));
  EXPECT_TRUE(budgets.buffer(1000, 20));
  EXPECT_FALSE(budgets.buffer(1001, 95)) << "together";
}

TEST(UserBudgets, OthersTakeNoRoomForTheFirstBytesOfAUser) {
  Budget of_user = kSmall;
  of_user.kept_for_each = 30;
  UserBudgets budgets(33, of_user, kSmallOfAll);
  EXPECT_TRUE(budgets.buffer(1000, 100));
  EXPECT_TRUE(budgets.buffer(1001, 100));
  EXPECT_FALSE(budgets.buffer(1002, 45)) << "70 and 70 of 150 are taken";
  EXPECT_TRUE(budgets.buffer(1002, 40));
  EXPECT_TRUE(budgets.buffer(1003, 30));
  EXPECT_FALSE(budgets.buffer(1003, 1));
  EXPECT_TRUE(budgets.buffer(1000, -80)) << "50 of them shared";
  EXPECT_TRUE(budgets.buffer(1003, 50));
  EXPECT_FALSE(budgets.buffer(1003, 21)) << "its own budget";
  for (const auto& [uid, bytes] : {std::pair{1000, 20}, {1001, 100}, {1002, 40}, {1003, 80}})
    EXPECT_TRUE(budgets.buffer(static_cast<std::uint32_t>(uid), -bytes));
  EXPECT_TRUE(budgets.buffer(1000, 100));
  EXPECT_TRUE(budgets.buffer(1001, 100)) << "nothing is left over";
}

TEST(UserBudgets, LinesOfTheLogAreCountedThatAreLeftOut) {
  UserBudgets budgets = small();
  int written = 0;
  for (int i = 0; i < 10; ++i) written += budgets.log_line(1000, kSecond).has_value();
  EXPECT_EQ(written, 3);
  EXPECT_EQ(budgets.log_line(1001, kSecond), 0u);
  EXPECT_EQ(budgets.log_line(1000, 3 * kSecond), 7u);
  EXPECT_EQ(budgets.log_line(1000, 3 * kSecond), 0u);
  written = 0;
  for (std::uint32_t uid = 2000; uid < 2020; ++uid) written += budgets.log_line(uid, 100 * kSecond).has_value();
  EXPECT_EQ(written, 11) << "of many users together";
}

TEST(UserBudgets, WhoTakesMuchOfTheDaemonsTimeWaitsWhateverItWasTakenBy) {
  UserBudgets budgets = small();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(budgets.wait(1000, kSecond), 0ns) << i;
    budgets.worked(1000, 10ms, kSecond);
  }
  budgets.worked(1000, 10ms, kSecond);
  EXPECT_NEAR(static_cast<double>(budgets.wait(1000, kSecond).count()), 40e6, 1e3) << "10 ms at a quarter of a core";
  EXPECT_EQ(budgets.wait(1001, kSecond), 0ns);
  EXPECT_EQ(budgets.wait(1000, 2 * kSecond), 0ns);
  budgets.worked(0, 10s, kSecond);
  EXPECT_EQ(budgets.wait(0, kSecond), 0ns);
  EXPECT_EQ(budgets.wait(1001, kSecond), 0ns) << "what is done for root is nobody's";
}

TEST(UserBudgets, WhereAllConnectionsAreTakenWhoHasMostGivesUpOne) {
  UserBudgets budgets(33, {.connections = 5}, {.connections = 8});
  const auto connect = [&](std::uint32_t uid) { return budgets.connect(uid, kSecond); };
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(connect(1000));
  EXPECT_FALSE(budgets.gives_up_connection_for(1002)) << "there is room";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(connect(1001));
  EXPECT_FALSE(connect(1002));
  EXPECT_EQ(budgets.gives_up_connection_for(1002), 1000u);
  EXPECT_FALSE(budgets.gives_up_connection_for(1000)) << "nobody has more";
  budgets.disconnect(1000);
  EXPECT_TRUE(connect(1002));
  EXPECT_FALSE(budgets.gives_up_connection_for(1001)) << "they would only change places";
  EXPECT_EQ(budgets.gives_up_connection_for(1002), 1000u);
}

TEST(UserBudgets, UsersWhoAreGoneAreForgottenWhenTheyOweNothing) {
  UserBudgets budgets = small();
  ASSERT_TRUE(budgets.connect(1000, 1));
  budgets.charge(1000, 8, 0, kSecond);
  budgets.charge(1001, 8, 0, kSecond);
  budgets.forget_idle(kSecond + 1);
  EXPECT_EQ(budgets.users(), 2u);
  budgets.forget_idle(10 * kSecond);
  EXPECT_EQ(budgets.users(), 1u);
  budgets.disconnect(1000);
  budgets.forget_idle(10 * kSecond);
  EXPECT_EQ(budgets.users(), 0u);
}

TEST(Patience, AMessageMustCompleteHoweverOftenAByteOfItComes) {
  Patience patience;
  EXPECT_FALSE(patience.over(1000 * kSecond));
  for (std::uint64_t at = 0; at < 30; ++at) {
    patience.note(Awaits::rest_of_call, at * kSecond);
    EXPECT_FALSE(patience.over(at * kSecond));
  }
  EXPECT_TRUE(patience.over(30 * kSecond));
  patience.note(Awaits::nothing, 30 * kSecond);
  EXPECT_FALSE(patience.over(1000 * kSecond));
  patience.note(Awaits::call, 1000 * kSecond);
  EXPECT_FALSE(patience.over(1059 * kSecond));
  EXPECT_TRUE(patience.over(1060 * kSecond));
  patience.note(Awaits::reader, 1060 * kSecond);
  EXPECT_TRUE(patience.over(1090 * kSecond));
}

TEST(MonitorPace, ManyClientsAndManyMonitorsAreAnsweredLessOften) {
  EXPECT_EQ(monitor_pace(100ms, 1ms, 1), 100ms);
  EXPECT_EQ(monitor_pace(100ms, 25ms, 1), 500ms);
  EXPECT_EQ(monitor_pace(100ms, 25ms, 4), 2000ms);
  EXPECT_EQ(monitor_pace(3000ms, 25ms, 4), 3000ms);
  EXPECT_EQ(monitor_pace(100ms, 10s, 10), kSlowestMonitor);
}

}  // namespace
}  // namespace gpuctl::daemon
