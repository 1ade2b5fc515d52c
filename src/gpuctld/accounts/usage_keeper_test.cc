#include "gpuctld/accounts/usage_keeper.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <boost/asio/executor_work_guard.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "gpuctld/accounts/usage_writer.h"

namespace gpuctl::daemon::usage_keeper_test {
namespace {

constexpr std::int64_t kNow = 1'795'000'000;

class Keeper : public testing::Test {
 protected:
  Keeper() {
    std::string pattern = testing::TempDir() + "keeper-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/usage.db";
  }
  ~Keeper() override { std::filesystem::remove_all(directory_); }

  UsageKeeper keeper(std::string file) {
    return UsageKeeper(context_, std::move(file), [this](const std::string& line) { log_.push_back(line); });
  }
  static Accounts used(double sm_s) { return {{{"a", 0, "GPU-0"}, {.sm_s = sm_s}}}; }
  /// The sum of all; none: that cannot be told.
  std::optional<double> ask(UsageKeeper& keeper) {
    std::optional<Result<Accounts>> sums;
    keeper.ask({}, std::nullopt, [&](Result<Accounts> answer) { sums = std::move(answer); });
    context_.restart();
    const auto work = boost::asio::make_work_guard(context_);
    while (!sums) context_.run_one();
    if (!*sums) return std::nullopt;
    double all = 0;
    for (const auto& [key, its] : **sums) all += its.sm_s;
    return all;
  }

  boost::asio::io_context context_{1};
  std::string directory_, file_;
  std::vector<std::string> log_;
};

TEST_F(Keeper, TellsWhatWasAddedBeforeAndWritesTheRestAtTheEnd) {
  {
    UsageKeeper first = keeper(file_);
    first.add(used(1), kNow);
    EXPECT_EQ(ask(first), 1);
    first.add(used(2), kNow);
    first.stop();
    first.add(used(100), kNow);  // too late
  }
  UsageKeeper second = keeper(file_);
  EXPECT_EQ(ask(second), 3);
  EXPECT_TRUE(log_.empty()) << log_.front();
}

TEST_F(Keeper, PutsADamagedFileAsideAndBeginsANewOne) {
  std::ofstream(file_) << std::string(5000, 'x');
  UsageKeeper one = keeper(file_);
  one.add(used(1), kNow);
  EXPECT_EQ(ask(one), 1);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("kept as " + file_ + ".damaged"), std::string::npos) << log_[0];
  EXPECT_EQ(std::filesystem::file_size(file_ + ".damaged"), 5000u);
}

TEST_F(Keeper, SaysOnceThatItCannotWriteAndWritesWhatIsMissingLater) {
  std::filesystem::create_directory(file_);
  UsageKeeper one = keeper(file_);
  for (int i = 0; i < 5; ++i) one.add(used(1), kNow + 600 * i);
  EXPECT_EQ(ask(one), std::nullopt);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("is not kept for now: " + file_), std::string::npos) << log_[0];
  std::filesystem::remove(file_);
  one.add(used(1), kNow);
  EXPECT_EQ(ask(one), 6);
  ASSERT_EQ(log_.size(), 2u);
  EXPECT_EQ(log_[1], "what is used is kept again");
}

/// Each waits for a second at most for another program that writes to the file.
TEST_F(Keeper, HasOneWaitingQuestionOfEachUserAndAnyOfRoot) {
  ASSERT_TRUE(UsageStore::open(file_));
  sqlite3* other = nullptr;
  ASSERT_EQ(::sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  UsageKeeper one = keeper(file_);
  one.add(used(1), kNow);
  constexpr int kEach = 100;
  int answers = 0;
  std::map<std::optional<std::uint32_t>, int> refused;
  for (const std::optional<std::uint32_t> uid : {std::optional<std::uint32_t>(5), {6}, {}})
    for (int i = 0; i < kEach; ++i)
      one.ask({}, uid, [&, uid](const Result<Accounts>& sums) {
        ++answers;
        if (!sums && sums.error().message.find("another question") != std::string::npos) ++refused[uid];
      });
  ::sqlite3_close(other);
  const auto work = boost::asio::make_work_guard(context_);
  while (answers < 3 * kEach) context_.run_one();
  for (const std::uint32_t uid : {5, 6}) {
    EXPECT_GT(refused[uid], kEach / 2);
    EXPECT_LT(refused[uid], kEach);
  }
  EXPECT_EQ(refused[std::nullopt], 0);
}

TEST_F(Keeper, KeepsNothingWithoutAFile) {
  UsageKeeper none = keeper("");
  none.add(used(1), kNow);
  EXPECT_EQ(ask(none), std::nullopt);
}

TEST_F(Keeper, TellsWhatIsInTheFileAndWhatCannotBeWrittenNow) {
  UsageKeeper one = keeper(file_);
  one.add(used(1), kNow);
  EXPECT_EQ(ask(one), 1);
  sqlite3* other = nullptr;
  ASSERT_EQ(::sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(::sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  one.add(used(2), kNow);
  EXPECT_EQ(ask(one), 3);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_NE(log_[0].find("is not kept for now"), std::string::npos) << log_[0];
  ::sqlite3_close(other);
  EXPECT_EQ(ask(one), 3) << "it is written, and counts once";
  EXPECT_EQ(log_.back(), "what is used is kept again");
}

TEST(Unwritten, TellsWhatIsAskedFor) {
  const std::int64_t span = UsageStore::kSpans.front().seconds, begin = kNow / span * span;
  Unwritten unwritten;
  unwritten.add({{{"team", 1, "GPU-0"}, {.sm_s = 1}}, {{"team/a", 2, "GPU-1"}, {.sm_s = 2}}}, begin);
  unwritten.add({{{"team2", 2, "GPU-0"}, {.sm_s = 4}}, {{"/", 2, "GPU-0"}, {.sm_s = 8}}}, begin + span);
  const auto sm_s = [&](const UsageQuestion& question) {
    double all = 0;
    for (const auto& [key, used] : unwritten.sums(question)) all += used.sm_s;
    return all;
  };
  EXPECT_EQ(sm_s({}), 15);
  EXPECT_EQ(sm_s({.slice = "team"}), 3) << "and what is below it";
  EXPECT_EQ(sm_s({.slice = "/"}), 15);
  EXPECT_EQ(sm_s({.uid = 2}), 14);
  EXPECT_EQ(sm_s({.gpu = "GPU-1"}), 2);
  EXPECT_EQ(sm_s({.since = begin + span}), 12);
  EXPECT_EQ(sm_s({.since = begin + span - 1}), 15) << "a span counts whole";
  EXPECT_EQ(sm_s({.until = begin + span}), 3);
}

/// However long the file cannot be written, and whatever slices are called.
TEST(Unwritten, IsBoundedAndLosesNothing) {
  Unwritten unwritten;
  const int many = static_cast<int>(Unwritten::kMost) + 5000;
  for (int i = 0; i < many; ++i)
    unwritten.add({{{"s" + std::to_string(i), 7, "GPU-0"}, {.sm_s = 1}}}, kNow + 600 * (i / 9));
  EXPECT_LE(unwritten.size(), Unwritten::kMost + 1) << "and what a user's others used";
  double all = 0;
  for (; !unwritten.empty(); unwritten.remove_first())
    for (const auto& [key, used] : unwritten.first().second) all += used.sm_s;
  EXPECT_EQ(all, many);
  EXPECT_EQ(unwritten.size(), 0u);
}

/// Long names fill the file before anybody has more entries than are left apart.
TEST_F(Keeper, MakesRoomInAFileThatIsFull) {
  std::vector<std::string> lines;
  UsageWriter writer(
      file_, [&](const std::string& line) { lines.push_back(line); }, 1 << 20);
  constexpr std::uint32_t kUsers = 4;
  constexpr int kTimes = 300, kSlices = 10;
  for (int i = 0; i < kTimes; ++i) {
    Unwritten used;
    for (std::uint32_t uid = 0; uid < kUsers; ++uid)
      for (int slice = 0; slice < kSlices; ++slice)
        used.add({{{std::to_string(i * kSlices + slice) + std::string(500, 'x'), uid, "GPU-0"}, {.sm_s = 1}}},
                 kNow + 600 * i);
    writer.add(used, kNow + 600 * i);
    const auto written = writer.sums({.uid = 0});
    ASSERT_TRUE(written) << written.error().message;
  }
  const auto sums = writer.sums({});
  ASSERT_TRUE(sums) << sums.error().message;
  double all = 0;
  for (const auto& [key, used] : *sums) all += used.sm_s;
  EXPECT_EQ(all, kUsers * kTimes * kSlices);
  EXPECT_TRUE(sums->contains({std::to_string(kTimes * kSlices - 1) + std::string(500, 'x'), 0, "GPU-0"}));
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines[0].find("usage.db was full"), std::string::npos) << lines[0];
  for (const std::string& line : lines) EXPECT_EQ(line.find("is not kept"), std::string::npos) << line;
  EXPECT_LE(std::filesystem::file_size(file_), 1u << 20);
}

/// The daemon is killed: what was written stays, and what the next one adds comes to it.
TEST_F(Keeper, ReadsWhatADaemonLeftThatWasKilled) {
  auto left = UsageStore::open(file_);
  ASSERT_TRUE(left);
  ASSERT_TRUE(left->add(used(4), kNow));
  const std::string copy = directory_ + "/copy.db";
  for (const char* suffix : {"", "-wal"})  // as they are while the file is open
    std::filesystem::copy_file(file_ + suffix, copy + suffix);
  UsageKeeper next = keeper(copy);
  next.add(used(3), kNow);
  EXPECT_EQ(ask(next), 7);
}

}  // namespace
}  // namespace gpuctl::daemon::usage_keeper_test
