#include "gpuctld/restart/holdings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "gpuctld/config/state_file.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {
namespace {

constexpr char kUuid[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";

class HoldingsFile : public testing::Test {
 protected:
  HoldingsFile() {
    std::string pattern = testing::TempDir() + "gpuctld-held-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/attached.json";
  }
  ~HoldingsFile() override { std::filesystem::remove_all(directory_); }

  std::string directory_, file_;
};

TEST_F(HoldingsFile, ComeBackAsTheyWere) {
  EXPECT_EQ(load_holdings(file_).value(), Holdings{});
  const Holdings holdings{
      .attached = {{{77, 12345678901, 1000}, "batch/a", "GPU-1", {.sms = 132, .memory = 1ull << 40}},
                   {{78, 5, 0}, "/", "GPU-2", {.sms = 1}}},
      .worked = {{"batch/a", "GPU-1", 1ull << 50}},
      .moved = {{{77, 12345678901, 1000}, "ls/x", "w7oyfkaf57cccgmd"}, {{78, 5, 0}, "ls"}}};
  for (const Room room : {Room::kept, Room::kept, Room::given_back}) {
    ASSERT_TRUE(replace_file(file_, holdings_text(holdings).value(), room));
    EXPECT_EQ(load_holdings(file_).value(), holdings);
  }
  ASSERT_TRUE(replace_file(file_, holdings_text({}).value(), Room::kept));
  EXPECT_EQ(load_holdings(file_).value(), Holdings{});
}

TEST_F(HoldingsFile, OfAnOlderDaemonHaveNoMemory) {
  const auto holdings = understand_holdings(
      "{\"version\":1,\"attached\":[{\"pid\":7,\"start\":1,\"uid\":0,\"slice\":\"/"
      "\",\"device\":\"GPU-1\",\"sms\":3}]}");
  ASSERT_TRUE(holdings) << holdings.error().message;
  EXPECT_EQ(holdings->attached.at(0).promise, (Promise{.sms = 3}));
}

TEST_F(HoldingsFile, MoreThanCanBeReadAreNotWritten) {
  Holdings holdings;
  constexpr std::size_t kLongestPath = sched::kMaxSliceDepth * (sched::kMaxNameLength + 1) - 1;
  const std::string slice(kLongestPath, 'x');
  const ProcessIdentity process{1 << 22, 1ull << 50, ~0u - 1};
  holdings.attached.assign(kMostHoldings, {process, slice, kUuid, {ipc::kUnlimited, 1ull << 50}});
  holdings.worked.assign(sched::kMaxSlices * ipc::kMaxDevices, {slice, kUuid, 1ull << 60});
  holdings.moved.assign(Moved::kMost, {process, slice, "w7oyfkaf57cccgmd"});
  ASSERT_TRUE(replace_file(file_, holdings_text(holdings).value(), Room::kept));
  EXPECT_EQ(load_holdings(file_).value().attached.size(), kMostHoldings);
  holdings.attached.push_back(holdings.attached.back());
  EXPECT_FALSE(holdings_text(holdings));
}

/// A full disk keeps the daemon from no record: both files have their room.
TEST_F(HoldingsFile, AreWrittenIntoRoomThatIsThere) {
  const auto sizes = [&] {
    return std::pair(std::filesystem::file_size(file_), std::filesystem::file_size(file_ + ".new"));
  };
  const std::string text = holdings_text({}).value();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(replace_file(file_, text, Room::kept));
  const auto room = sizes();
  EXPECT_EQ(room.first, room.second);
  Holdings some;
  some.attached.assign(50, {{77, 1ull << 40, 1}, "batch/a", kUuid, {132, 1ull << 40}});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit full{room.first, before.rlim_max};  // nothing may be longer than it is
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &full), 0);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(replace_file(file_, holdings_text(some).value(), Room::kept));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(load_holdings(file_).value(), some);
  EXPECT_EQ(sizes(), room);
}

TEST_F(HoldingsFile, AreNotWrittenIntoWhatIsNotTheDaemonsOwn) {
  const std::string other = directory_ + "/other";
  for (const bool symbolic : {true, false}) {
    std::ofstream(other) << "precious";
    std::filesystem::remove(file_ + ".new");
    symbolic ? std::filesystem::create_symlink(other, file_ + ".new")
             : std::filesystem::create_hard_link(other, file_ + ".new");
    ASSERT_TRUE(replace_file(file_, "x", Room::kept));
    std::string text;
    std::ifstream(other) >> text;
    EXPECT_EQ(text, "precious");
  }
}

TEST_F(HoldingsFile, ABrokenFileIsAnErrorThatNamesIt) {
  for (const char* text : {"", "[]", "{\"version\":2,\"attached\":[]}",
                           "{\"version\":1,\"attached\":[{\"pid\":-1,\"start\":1,\"uid\":0,\"slice\":\"/\","
                           "\"device\":\"GPU-1\",\"sms\":3}]}"}) {
    std::ofstream(file_) << text;
    std::filesystem::permissions(file_, std::filesystem::perms::owner_read);
    const auto loaded = load_holdings(file_);
    ASSERT_FALSE(loaded) << text;
    EXPECT_EQ(loaded.error().message.find(file_), 0u) << loaded.error().message;
    std::filesystem::remove(file_);
  }
}

}  // namespace
}  // namespace gpuctl::daemon
