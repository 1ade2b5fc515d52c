#include "gpuctld/budgets/queue_ledger.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace gpuctl::daemon::queue_ledger_test {

QueueLedger::Program of_root(std::uint64_t id) {
  return {.id = id, .uid = 0, .exempt = true};
}
QueueLedger::Program of_user(std::uint32_t uid, std::uint64_t id) {
  return {.id = id, .uid = uid, .exempt = false};
}

TEST(QueueLedger, FourForThoseWhoNeedThemWhileThereAreSoMany) {
  QueueLedger ledger;
  for (std::uint64_t id = 0; id < 18; ++id) EXPECT_EQ(ledger.promise(of_root(id), true), 4u) << id;
  for (std::uint64_t id = 18; id < 40; ++id) EXPECT_EQ(ledger.promise(of_root(id), true), 2u) << id;
  EXPECT_EQ(ledger.promised(), 116u) << "of some 120: forty that start at once all start";
  ledger.give_back(0);
  EXPECT_EQ(ledger.promise(of_root(40), true), 2u) << "the others have what was left";
}

TEST(QueueLedger, TwoForThoseWhoNeedNoMore) {
  QueueLedger ledger;
  EXPECT_EQ(ledger.promise(of_root(1), false), 2u);
  EXPECT_EQ(ledger.promised(), 2u);
}

TEST(QueueLedger, QueuesComeBack) {
  QueueLedger ledger;
  for (std::uint64_t id = 0; id < 18; ++id) ledger.promise(of_root(id), true);
  EXPECT_EQ(ledger.promise(of_root(18), true), 2u);
  ledger.give_back(18);
  ledger.give_back(7);
  ledger.give_back(7);
  EXPECT_EQ(ledger.promise(of_root(19), true), 4u);
  for (std::uint64_t id = 0; id < 20; ++id) ledger.give_back(id);
  EXPECT_EQ(ledger.promised(), 0u);
  EXPECT_EQ(ledger.programs(), 0u);
}

TEST(QueueLedger, AProgramThatAsksAgainHasOnePromise) {
  QueueLedger ledger;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ledger.promise(of_root(1), true), 4u);
  EXPECT_EQ(ledger.promised(), 4u);
}

TEST(QueueLedger, ANumberOfItsOwnCounts) {
  QueueLedger ledger;
  ledger.note(of_root(1), 32);
  ledger.note(of_root(2), 32);
  EXPECT_EQ(ledger.promise(of_root(3), true), 4u);
  EXPECT_EQ(ledger.promise(of_root(4), true), 4u);
  EXPECT_EQ(ledger.promise(of_root(5), true), 2u);
  ledger.note(of_root(6), 1'000'000);
  EXPECT_EQ(ledger.promised(), 74u + kMostQueues) << "more than the driver makes";
}

TEST(QueueLedger, NoUserKeepsOthersFromTheirFour) {
  for (const bool asks : {true, false}) {
    QueueLedger ledger;
    for (std::uint64_t id = 0; id < 1000; ++id) {
      if (asks)
        ledger.promise(of_user(7, id), true);
      else
        ledger.note(of_user(7, id), 32);
    }
    EXPECT_EQ(ledger.promise(of_user(7, 1000), true), 2u);
    EXPECT_EQ(ledger.promise(of_user(8, 1001), true), 4u);
    for (std::uint32_t uid = 9; uid < 50; ++uid)
      for (std::uint64_t id = 0; id < 20; ++id) ledger.note(of_user(uid, 10'000 + 100 * uid + id), 32);
    EXPECT_EQ(ledger.promise(of_user(50, 1002), true), 2u) << "all users together have so many";
    EXPECT_EQ(ledger.promise(of_root(1003), true), 4u);
  }
}

/// Whatever comes and goes: the sum is within the budget whenever a request gets more, and all come back.
TEST(QueueLedger, TheSumIsWithinTheBudgetWheneverARequestGetsMore) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    QueueLedger ledger;
    std::vector<std::uint64_t> there;
    for (std::uint64_t id = 0; id < 300; ++id) {
      const QueueLedger::Program program = of_root(id);
      const auto what = random.below(8);
      if (what < 5) {
        const std::uint32_t got = ledger.promise(program, what > 0);
        if (what == 0) {
          EXPECT_EQ(got, kUsualQueues);
        } else if (got > kUsualQueues) {
          ASSERT_LE(ledger.promised(), kQueuesPromised) << "seed " << seed;
        } else {
          ASSERT_GT(ledger.promised() - got + kMoreQueues, kQueuesPromised) << "seed " << seed;
        }
        there.push_back(id);
      } else if (what == 5) {
        ledger.note(program, static_cast<std::uint32_t>(1 + random.below(32)));
        there.push_back(id);
      } else if (!there.empty()) {
        const auto at = random.below(there.size());
        ledger.give_back(there[at]);
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
      }
      ASSERT_EQ(ledger.programs(), there.size());
    }
    for (const std::uint64_t id : there) ledger.give_back(id);
    ASSERT_EQ(ledger.promised(), 0u);
  }
}

}  // namespace gpuctl::daemon::queue_ledger_test
