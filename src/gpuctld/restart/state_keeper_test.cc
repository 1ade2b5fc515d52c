#include "gpuctld/restart/state_keeper.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "gpuctld/config/state_file.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{30};

fs::path make_scratch() {
  std::string name = (fs::temp_directory_path() / "state-keeper.XXXXXX").string();
  return ::mkdtemp(name.data());
}

class StateKeeperTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(scratch_); }

  void save(const std::string& path) {
    sched::SliceTree tree(sched::CapSM{8}, 0);
    EXPECT_TRUE(tree.create(path, {}, {0, {}}));
    keeper_.save(tree.slices(), {});
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> paths;
    const LoadedState loaded = load_state(file()).value();
    for (const auto& [path, settings] : loaded.state.slices)
      if (path != "/") paths.push_back(path);
    return paths;
  }
  std::string file() const { return (scratch_ / "there" / "state.json").string(); }

  const fs::path scratch_ = make_scratch();
  boost::asio::io_context context_;
  std::vector<std::string> log_;
  StateKeeper keeper_{context_, file(), [this](const std::string& line) { log_.push_back(line); }};
};

using Paths = std::vector<std::string>;

TEST_F(StateKeeperTest, WritesAtOnce) {
  fs::create_directory(scratch_ / "there");
  save("a");
  EXPECT_EQ(kept(), Paths{"a"});
  EXPECT_EQ(keeper_.problem(), nullptr);
  EXPECT_TRUE(log_.empty());
}

TEST_F(StateKeeperTest, TriesAgainUntilTheLatestStateIsWritten) {
  save("a");
  save("b");
  ASSERT_NE(keeper_.problem(), nullptr);
  EXPECT_EQ(log_.size(), 1u) << "said once";
  context_.run_one_for(kPatience);
  ASSERT_NE(keeper_.problem(), nullptr);
  fs::create_directory(scratch_ / "there");
  context_.run_for(kPatience);
  EXPECT_EQ(keeper_.problem(), nullptr);
  EXPECT_EQ(kept(), Paths{"b"});
  EXPECT_EQ(log_.size(), 2u);
}

TEST_F(StateKeeperTest, ALaterChangeNeedNotWait) {
  save("a");
  fs::create_directory(scratch_ / "there");
  save("b");
  EXPECT_EQ(kept(), Paths{"b"});
  context_.run_for(kPatience);
  EXPECT_EQ(kept(), Paths{"b"});
}

TEST_F(StateKeeperTest, LeavesAFileThatEveryReleaseReads) {
  fs::create_directory(scratch_ / "there");
  save("a");
  save("b");
  const auto is_one_object = [&] {
    boost::system::error_code broken;
    boost::json::parse(load_state(file()).value().text, broken);
    return !broken;
  };
  EXPECT_FALSE(is_one_object()) << "it has a record of the change";
  keeper_.stop();
  EXPECT_TRUE(is_one_object());
  EXPECT_EQ(kept(), Paths{"b"});
}

TEST_F(StateKeeperTest, WritesNothingOfWhatItWasNotTold) {
  fs::create_directory(scratch_ / "there");
  keeper_.stop();
  EXPECT_FALSE(fs::exists(file()));
}

TEST_F(StateKeeperTest, TriesALastTimeAtTheEnd) {
  save("a");
  fs::create_directory(scratch_ / "there");
  keeper_.stop();
  EXPECT_EQ(kept(), Paths{"a"});
}

}  // namespace
}  // namespace gpuctl::daemon
