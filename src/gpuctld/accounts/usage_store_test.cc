#include "gpuctld/accounts/usage_store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"

namespace gpuctl::daemon::usage_store_test {
namespace {

constexpr std::int64_t kNoon = 1'795'000'000 / UsageStore::kDay * UsageStore::kDay + UsageStore::kDay / 2;

class Store : public testing::Test {
 protected:
  Store() {
    std::string pattern = testing::TempDir() + "usage-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/usage.db";
  }
  ~Store() override { std::filesystem::remove_all(directory_); }

  UsageStore open() {
    auto opened = UsageStore::open(file_);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  static Accounts used(const std::string& slice, double sm_s, std::uint32_t uid = 0, const std::string& gpu = "GPU-0") {
    return {{{slice, uid, gpu}, {.sm_s = sm_s, .work_s = 1, .memory_byte_s = 1e12, .launches = 3}}};
  }
  static double sm_s(UsageStore& store, UsageQuestion question = {}) {
    const auto sums = store.sums(question);
    EXPECT_TRUE(sums) << sums.error().message;
    double all = 0;
    for (const auto& [key, its] : *sums) all += its.sm_s;
    return all;
  }

  std::string directory_, file_;
};

TEST_F(Store, AddsUpWhatLaterOnesAddAndLaterDaemonsTell) {
  {
    UsageStore store = open();
    EXPECT_TRUE(store.add(used("a", 1.5), kNoon));
    EXPECT_TRUE(store.add(used("a", 2.25), kNoon + 10));
    EXPECT_TRUE(store.add(used("a", 10), kNoon + 700));
  }
  UsageStore store = open();
  const auto sums = store.sums({});
  ASSERT_TRUE(sums);
  EXPECT_EQ(*sums, (Accounts{{{"a", 0, "GPU-0"}, {.sm_s = 13.75, .work_s = 3, .memory_byte_s = 3e12, .launches = 9}}}));
  struct stat its {};
  ASSERT_EQ(::stat(file_.c_str(), &its), 0);
  EXPECT_EQ(its.st_mode & 0777, 0600u);
}

TEST_F(Store, AFileWithoutEnergyIsReadOn) {
  {
    UsageStore store = open();
    EXPECT_TRUE(store.add(used("a", 1.5), kNoon));
  }
  sqlite3* database = nullptr;
  ASSERT_EQ(::sqlite3_open(file_.c_str(), &database), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(database, "ALTER TABLE used DROP COLUMN joules", nullptr, nullptr, nullptr), SQLITE_OK);
  ::sqlite3_close(database);
  UsageStore store = open();
  EXPECT_TRUE(store.add({{{"a", 0, "GPU-0"}, {.sm_s = 2, .joules = 3.5}}}, kNoon + 10));
  EXPECT_TRUE(store.tidy(kNoon + 8 * UsageStore::kDay));
  const auto sums = store.sums({});
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->begin()->second.sm_s, 3.5);
  EXPECT_EQ(sums->begin()->second.joules, 3.5);
  EXPECT_EQ(sums->begin()->second.launches, 3);
}

TEST_F(Store, TellsWhatIsAskedFor) {
  UsageStore store = open();
  for (const auto& [slice, uid, gpu, amount] : {std::tuple("team", 1u, "GPU-0", 1.0),
                                                {"team/a", 1u, "GPU-1", 2.0},
                                                {"team2", 2u, "GPU-0", 4.0},
                                                {"/", 2u, "GPU-0", 8.0}})
    EXPECT_TRUE(store.add(used(slice, amount, uid, gpu), kNoon));
  EXPECT_TRUE(store.add(used("team", 16), kNoon + 3600));
  EXPECT_EQ(sm_s(store), 31);
  EXPECT_EQ(sm_s(store, {.slice = "team"}), 19) << "and what is below it";
  EXPECT_EQ(sm_s(store, {.slice = "/"}), 31);
  EXPECT_EQ(sm_s(store, {.slice = "' OR 1 --"}), 0);
  EXPECT_EQ(sm_s(store, {.uid = 2}), 12);
  EXPECT_EQ(sm_s(store, {.gpu = "GPU-1"}), 2);
  EXPECT_EQ(sm_s(store, {.since = kNoon + 600}), 16);
  EXPECT_EQ(sm_s(store, {.since = kNoon + 599}), 31) << "a span counts whole";
  EXPECT_EQ(sm_s(store, {.until = kNoon + 3600}), 15);
  EXPECT_EQ(sm_s(store, {.since = kNoon + 600, .until = kNoon + 3600, .slice = "team", .uid = 0}), 0);
}

TEST_F(Store, MovesWhatIsOldToLongerSpansAndLosesNothing) {
  UsageStore store = open();
  Random random(1);
  double all = 0;
  for (int i = 0; i < 300; ++i) {
    const double amount = static_cast<double>(random.below(1000));
    all += amount;
    ASSERT_TRUE(
        store.add(used(i % 2 == 0 ? "a" : "b", amount), kNoon + static_cast<std::int64_t>(random.below(200 * 86400))));
  }
  const std::int64_t later = kNoon + 200 * UsageStore::kDay;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(store.tidy(later));
    EXPECT_EQ(sm_s(store), all);
  }
  // 150 days ago there are days alone: asked for an hour of them, the whole day is told.
  const std::int64_t then = kNoon + 50 * UsageStore::kDay;
  EXPECT_EQ(sm_s(store, {.since = then, .until = then + 1}), sm_s(store, {.since = then - 3600, .until = then + 3600}));
  ASSERT_TRUE(store.add(used("a", 7), then));
  ASSERT_TRUE(store.tidy(later + UsageStore::kDay));
  EXPECT_EQ(sm_s(store), all + 7);
  ASSERT_TRUE(store.tidy(later + 500 * UsageStore::kDay));
  EXPECT_EQ(sm_s(store), all + 7);
  ASSERT_TRUE(store.tidy(later + 1000 * UsageStore::kDay));
  EXPECT_EQ(sm_s(store), 0) << "nothing is kept for ever";
}

TEST_F(Store, CountsTheOldestSlicesOfAUserTogetherWhereThereAreTooMany) {
  UsageStore store = open();
  for (int i = 0; i < 40; ++i) {
    const std::int64_t then = kNoon + 600 * i;
    ASSERT_TRUE(store.add(used("s" + std::to_string(i), 1, 5), then));
    ASSERT_TRUE(store.add(used("t" + std::to_string(i), 1, 5, "GPU-1"), then));
    if (i % 4 == 0) {
      ASSERT_TRUE(store.add(used("other" + std::to_string(i), 1, 6), then));
    }
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(store.tidy(kNoon + 40 * 600, 20));
    const auto sums = store.sums({});
    ASSERT_TRUE(sums);
    EXPECT_EQ(sums->at({UsageStore::kOthers, 5, "GPU-0"}).sm_s, 30);
    EXPECT_EQ(sums->at({UsageStore::kOthers, 5, "GPU-1"}).sm_s, 30);
    EXPECT_EQ(sums->at({"s39", 5, "GPU-0"}).sm_s, 1);
    EXPECT_FALSE(sums->contains({"s29", 5, "GPU-0"}));
    EXPECT_EQ(sums->at({"other0", 6, "GPU-0"}).sm_s, 1) << "another user";
    EXPECT_EQ(sm_s(store), 90);
  }
  EXPECT_EQ(sm_s(store, {.until = kNoon + 600 * 10, .uid = 5}), 20) << "by time as before";
}

TEST_F(Store, TellsOfThoseWithTheMostSmTimeAndOfTheRestTogether) {
  UsageStore store = open();
  Accounts many;
  double rest = 0;
  for (int i = 0; i < 100; ++i) {
    many[{"s" + std::to_string(i), 5, "GPU-0"}].sm_s = i;
    rest += i < 92 ? i : 0;
  }
  many[{"s", 6, "GPU-0"}].sm_s = 1;
  ASSERT_TRUE(store.add(many, kNoon));
  const auto sums = store.sums({}, 8);
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->size(), 10u);
  for (int i = 92; i < 100; ++i) EXPECT_EQ(sums->at({"s" + std::to_string(i), 5, "GPU-0"}).sm_s, i);
  EXPECT_EQ(sums->at({UsageStore::kOthers, 5, "GPU-0"}).sm_s, rest);
  EXPECT_EQ(sums->at({UsageStore::kOthers, 6, "GPU-0"}).sm_s, 1);
}

TEST_F(Store, GrowsNoFurtherThanItMayAndGoesOnWhenThereIsRoomAgain) {
  constexpr std::int64_t kMost = 100'000;
  auto store = UsageStore::open(file_, kMost);
  ASSERT_TRUE(store);
  const auto fill = [&](std::int64_t then) {
    int added = 0;
    for (; added < 3000; ++added)
      if (const auto done = store->add(used("s" + std::to_string(added), 1), then + 600 * (added % 6)); !done) {
        EXPECT_FALSE(done.error().damaged) << done.error().message;
        return added;
      }
    return added;
  };
  const int first = fill(kNoon);
  EXPECT_LT(first, 3000);
  EXPECT_EQ(sm_s(*store), first) << "what is there can be told";
  std::int64_t later = kNoon + 8 * UsageStore::kDay;
  ASSERT_TRUE(store->tidy(later)) << "what is moved takes no more room";
  EXPECT_EQ(sm_s(*store), first);
  later += 1000 * UsageStore::kDay;
  ASSERT_TRUE(store->tidy(later));
  EXPECT_GT(fill(later), first / 2);
  EXPECT_LE(std::filesystem::file_size(file_), static_cast<std::uintmax_t>(kMost));
}

TEST_F(Store, MayBeInADirectoryBehindALinkButIsNoLinkItself) {
  const std::string link = directory_ + "/var";
  std::filesystem::create_directory(directory_ + "/elsewhere");
  std::filesystem::create_directory_symlink("elsewhere", link);
  const auto behind = UsageStore::open(link + "/usage.db");
  EXPECT_TRUE(behind) << behind.error().message;
  EXPECT_TRUE(std::filesystem::exists(directory_ + "/elsewhere/usage.db"));
  std::filesystem::create_symlink(directory_ + "/elsewhere/usage.db", file_);
  EXPECT_FALSE(UsageStore::open(file_));
  EXPECT_FALSE(UsageStore::open(directory_ + "/nowhere/usage.db"));
}

TEST_F(Store, SaysWhetherAFileIsDamagedOrCannotBeUsedNow) {
  std::ofstream(file_) << std::string(5000, 'x');
  const auto no_database = UsageStore::open(file_);
  ASSERT_FALSE(no_database);
  EXPECT_TRUE(no_database.error().damaged) << no_database.error().message;
  EXPECT_NE(no_database.error().message.find(file_), std::string::npos);
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  const auto directory = UsageStore::open(file_);
  ASSERT_FALSE(directory);
  EXPECT_FALSE(directory.error().damaged);
}

}  // namespace
}  // namespace gpuctl::daemon::usage_store_test
