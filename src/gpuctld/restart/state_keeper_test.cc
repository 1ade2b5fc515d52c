#include "gpuctld/restart/state_keeper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

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

  static State with(const std::string& path) {
    State state;
    state.slices = {{path, {}}};
    return state;
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> paths;
    const LoadedState loaded = load_state(file()).value();
    for (const auto& [path, settings] : loaded.state.slices) paths.push_back(path);
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
  keeper_.save(with("a"));
  EXPECT_EQ(kept(), Paths{"a"});
  EXPECT_EQ(keeper_.problem(), nullptr);
  EXPECT_TRUE(log_.empty());
}

TEST_F(StateKeeperTest, TriesAgainUntilTheLatestStateIsWritten) {
  keeper_.save(with("a"));
  keeper_.save(with("b"));
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
  keeper_.save(with("a"));
  fs::create_directory(scratch_ / "there");
  keeper_.save(with("b"));
  EXPECT_EQ(kept(), Paths{"b"});
  context_.run_for(kPatience);
  EXPECT_EQ(kept(), Paths{"b"});
}

TEST_F(StateKeeperTest, TriesALastTimeAtTheEnd) {
  keeper_.save(with("a"));
  fs::create_directory(scratch_ / "there");
  keeper_.stop();
  EXPECT_EQ(kept(), Paths{"a"});
}

}  // namespace
}  // namespace gpuctl::daemon
