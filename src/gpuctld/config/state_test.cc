#include "gpuctld/config/state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "gpuctld/config/state_writer.h"

namespace gpuctl::daemon {
namespace {

constexpr sched::Caller kRoot{0, {}};

class StateTest : public testing::Test {
 protected:
  StateTest() {
    std::string pattern = testing::TempDir() + "gpuctld-state-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    file_ = directory_ + "/state.json";
  }
  ~StateTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_, file_;
};

sched::SliceTree tree_of(std::uint32_t sms) {
  return sched::SliceTree(sched::CapSM{sms}, 0);
}

TEST_F(StateTest, SlicesComeBackAsTheyWere) {
  sched::SliceTree tree = tree_of(132);
  ASSERT_TRUE(tree.create(
      "ls", {.reserve = 8, .reserve_mode = "strict", .reserve_hold_ms = 7, .weight = 3, .priority = -7, .owner_uid = 5},
      kRoot));
  ASSERT_TRUE(tree.create("ls/a", {.reserve = 2, .max = 20, .memory_max = 1ll << 40, .owner_gid = 9}, kRoot));
  ASSERT_TRUE(tree.change("/", {.max = 100}, kRoot));
  ASSERT_TRUE(StateWriter(file_).write(tree.slices(), {{"ls", "{}"}}));

  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);

  const auto state = load_state(file_);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_TRUE(state->left_out.empty()) << state->left_out[0];
  EXPECT_EQ(state->state.configured.at("ls"), "{}");
  sched::SliceTree restored = tree_of(132);
  std::vector<std::string> notes;
  restore_slices(state->state, restored, notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  EXPECT_EQ(restored.slices(), tree.slices());
}

TEST_F(StateTest, AStateWithoutHoldsKeepsItsModes) {
  std::ofstream(file_) << R"({"version":1,"slices":[{"path":"a","settings":{"reserve":4,"reserve_mode":"strict"}},)"
                       << R"({"path":"b","settings":{"reserve":4,"reserve_mode":"active"}}],"configured":[]})";
  const auto state = load_state(file_);
  ASSERT_TRUE(state) << state.error().message;
  sched::SliceTree restored = tree_of(132);
  std::vector<std::string> notes;
  restore_slices(state->state, restored, notes);
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(restored.find("a")->reserve_mode, sched::ReserveMode::strict);
  EXPECT_EQ(restored.find("b")->reserve_mode, sched::ReserveMode::active);
  EXPECT_EQ(restored.find("a")->reserve_hold, sched::kReserveHold);
}

TEST_F(StateTest, TheFormerReserveModeComesBackAsWhatTookItsPlace) {
  const std::string text =
      R"({"version":1,"slices":[{"path":"ls","settings":{"reserve":4,"reserve_mode":"lend","reserve_hold_ms":250}}],)"
      R"("configured":[{"path":"ls","settings":"{\"reserve\":4,\"reserve_mode\":\"lend\"}"}]})";
  LoadedState loaded = understand_state(text);
  EXPECT_TRUE(loaded.left_out.empty()) << loaded.left_out[0];
  EXPECT_EQ(loaded.notes, std::vector<std::string>{"slice ls: reserve_mode: lend is no more; active with a "
                                                   "reserve_hold of 1 ms took its place"});
  sched::SliceTree tree = tree_of(132);
  std::vector<std::string> notes;
  restore_slices(loaded.state, tree, notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  EXPECT_EQ(tree.find("ls")->reserve_mode, sched::ReserveMode::active);
  EXPECT_EQ(tree.find("ls")->reserve_hold, std::chrono::milliseconds(1));

  // The configuration says the same as before, so what was set at run time stays.
  Config config;
  config.slices.push_back({"ls", {.reserve = 4, .reserve_mode = "active", .reserve_hold_ms = 1}, "f:1:1", {}});
  ASSERT_TRUE(tree.change("ls", {.weight = 7}, kRoot));
  ASSERT_TRUE(tree.change("ls", {.reserve = 5}, kRoot));
  ASSERT_TRUE(apply_config(config, false, 0, loaded.state.configured, tree));
  EXPECT_EQ(tree.find("ls")->reserve, sched::CapSM{5});
}

TEST_F(StateTest, ASettingThatIsNotPossibleIsDroppedAlone) {
  State state;
  state.slices = {{"a", {.weight = 0, .priority = 7}}, {"a/b", {.max = 20, .policy = "none such"}}, {"c d", {}}};
  sched::SliceTree tree = tree_of(132);
  std::vector<std::string> notes;
  restore_slices(state, tree, notes);
  ASSERT_EQ(notes.size(), 3u);
  EXPECT_EQ(notes[0].find("slice a: weight"), 0u) << notes[0];
  EXPECT_EQ(notes[1].find("slice a/b: policy"), 0u) << notes[1];
  EXPECT_EQ(notes[2].find("slice c d is not restored: "), 0u) << notes[2];
  ASSERT_NE(tree.find("a/b"), nullptr);
  EXPECT_EQ(tree.find("a")->priority, 7);
  EXPECT_EQ(tree.find("a")->weight, 100u);
  EXPECT_EQ(tree.find("a/b")->max, sched::CapSM{20});
}

TEST_F(StateTest, AReserveOfALargerGpuComesBack) {
  sched::SliceTree big = tree_of(132);
  ASSERT_TRUE(big.create("ls", {.reserve = 100, .weight = 7}, kRoot));
  ASSERT_TRUE(big.create("ls/a", {.reserve = 90}, kRoot));
  ASSERT_TRUE(big.create("other", {.reserve = 32}, kRoot));
  sched::SliceTree small = tree_of(8);
  std::vector<std::string> notes;
  ASSERT_TRUE(StateWriter(file_).write(big.slices(), {}));
  restore_slices(load_state(file_)->state, small, notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  for (const char* path : {"ls", "ls/a", "other"})
    EXPECT_EQ(small.find(path)->reserve, big.find(path)->reserve) << path;
}

TEST_F(StateTest, AReserveThatFitsNoGpuIsDropped) {
  State state;
  state.slices = {{"ls", {.reserve = 200, .weight = 7}}, {"other", {.reserve = 100}}};
  sched::SliceTree tree = tree_of(132);
  std::vector<std::string> notes;
  restore_slices(state, tree, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(tree.find("ls")->reserve, sched::CapSM{200});
  EXPECT_EQ(tree.find("other")->reserve, sched::CapSM{0});
}

Config config_with(std::int64_t reserve) {
  Config config;
  config.slices.push_back({"ls", {.reserve = reserve}, "f:1:1", {{"reserve", "f:2:11"}}});
  return config;
}

TEST(ApplyConfig, WhatWasSetAtRunTimeHoldsUntilTheConfigurationChanges) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_with(8), false, 0, configured, tree));
  ASSERT_TRUE(tree.change("ls", {.reserve = 20}, kRoot));
  ASSERT_TRUE(apply_config(config_with(8), false, 0, configured, tree));
  EXPECT_EQ(tree.find("ls")->reserve, sched::CapSM{20});
  ASSERT_TRUE(apply_config(config_with(9), false, 0, configured, tree));
  EXPECT_EQ(tree.find("ls")->reserve, sched::CapSM{9});
  ASSERT_TRUE(tree.change("ls", {.reserve = 20}, kRoot));
  ASSERT_TRUE(apply_config(config_with(9), true, 0, configured, tree));
  EXPECT_EQ(tree.find("ls")->reserve, sched::CapSM{9});
}

Config config_of(const std::string& path, sched::SliceChange change) {
  Config config;
  config.slices.push_back({path, std::move(change), "f:1:1", {}});
  return config;
}

TEST(ApplyConfig, WhatItNoLongerSaysGoesBackToItsDefault) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(
      config_of("a", {.reserve = 8, .max = 40, .weight = 7, .memory_max = 1, .policy = "hpf", .owner_gid = 5}), false,
      0, configured, tree));
  ASSERT_TRUE(tree.change("a", {.weight = 9, .priority = 3}, kRoot));  // live: the weight, and a key it never had
  ASSERT_TRUE(apply_config(config_of("a", {.reserve = 8}), true, 0, configured, tree));
  const sched::Slice& slice = *tree.find("a");
  EXPECT_EQ(slice.reserve, sched::CapSM{8});
  EXPECT_EQ(slice.max, sched::kUnlimitedCapSM);
  EXPECT_EQ(slice.weight, 100u);
  EXPECT_FALSE(slice.memory_max);
  EXPECT_EQ(slice.job_policy, "");
  EXPECT_EQ(slice.owner_gid, sched::kNobody);
  EXPECT_EQ(slice.priority, 3) << "nobody said in the files what it is";

  ASSERT_TRUE(tree.change("a", {.max = 50}, kRoot));
  ASSERT_TRUE(apply_config(Config(), true, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{0}) << "the section is gone, the slice is there";
  EXPECT_EQ(tree.find("a")->max, sched::CapSM{50}) << "set since the files said nothing of it";
  EXPECT_TRUE(configured.empty());
}

TEST(ApplyConfig, TheRootGoesBackToItsFirstOwner) {
  sched::SliceTree tree(sched::CapSM{132}, 1000);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_of("/", {.max = 40, .owner_uid = 5}), false, 1000, configured, tree));
  ASSERT_TRUE(apply_config(Config(), false, 1000, configured, tree));
  EXPECT_EQ(tree.find("/")->owner_uid, 1000u);
  EXPECT_EQ(tree.find("/")->max, sched::kUnlimitedCapSM);
}

TEST(ApplyConfig, WhatSlicesBelowNeedStays) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_of("a", {.reserve = 8}), false, 0, configured, tree));
  ASSERT_TRUE(tree.create("a/b", {.reserve = 4}, kRoot));
  ASSERT_TRUE(apply_config(config_of("a", {.weight = 7}), false, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{8});
  EXPECT_EQ(tree.find("a")->weight, 7u);
}

Config config_with_all(std::vector<std::pair<std::string, sched::SliceChange>> slices) {
  Config config;
  for (auto& [path, change] : slices) {
    const std::string place = path + ":" + std::to_string(config.slices.size());
    config.slices.push_back({path, change, place, {{"reserve", place + ":reserve"}}});
  }
  return config;
}

TEST(ApplyConfig, SlicesMayExchangeReserves) {
  for (const std::uint32_t sms : {8u, 256u}) {
    sched::SliceTree tree = tree_of(sms);
    std::map<std::string, std::string> configured;
    const std::int64_t most = 250, rest = 6;
    ASSERT_TRUE(apply_config(config_with_all({{"a", {.reserve = rest}}, {"b", {.reserve = most}}}), false, 0,
                             configured, tree));
    ASSERT_TRUE(apply_config(config_with_all({{"a", {.reserve = most}}, {"b", {.reserve = rest}}}), false, 0,
                             configured, tree));
    EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{250});
    EXPECT_EQ(tree.find("b")->reserve, sched::CapSM{6});
  }
}

TEST(ApplyConfig, ASliceAndThatBelowItMayShrinkTogether) {
  sched::SliceTree tree = tree_of(8);
  std::map<std::string, std::string> configured;
  const auto both = [](std::int64_t sms) {
    return config_with_all({{"a", {.reserve = sms}}, {"a/x", {.reserve = sms}}});
  };
  ASSERT_TRUE(apply_config(both(6), false, 0, configured, tree));
  ASSERT_TRUE(apply_config(both(4), true, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{4});
  EXPECT_EQ(tree.find("a/x")->reserve, sched::CapSM{4});
}

TEST(ApplyConfig, AReserveThatIsNoLongerSaidIsFreeForOthersAtOnce) {
  sched::SliceTree tree = tree_of(8);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(
      apply_config(config_with_all({{"a", {.reserve = 6}}, {"b", {.reserve = 250}}}), false, 0, configured, tree));
  ASSERT_TRUE(apply_config(config_with_all({{"a", {.reserve = 256}}}), true, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{256});
  EXPECT_EQ(tree.find("b")->reserve, sched::CapSM{0});
  // What is below needs it, so it stays, and the other one does not fit.
  ASSERT_TRUE(apply_config(config_with_all({{"b", {.reserve = 200}}}), true, 0, configured, tree));
  ASSERT_TRUE(tree.create("b/x", {.reserve = 200}, kRoot));
  const auto refused = apply_config(config_with_all({{"a", {.reserve = 100}}}), true, 0, configured, tree);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("slice.\"a\".reserve"), std::string::npos) << refused.error().message;
}

TEST(ApplyConfig, AReserveThatTheGpuDoesNotHaveIsNoMistake) {
  sched::SliceTree tree = tree_of(8);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(
      apply_config(config_with_all({{"a", {.reserve = 100}}, {"b", {.reserve = 30}}}), false, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->reserve, sched::CapSM{100});
  EXPECT_EQ(tree.find("b")->reserve, sched::CapSM{30});
}

TEST(NoteSaved, WhatIsSetAfterwardsGoesBeforeTheFiles) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_of("a", {.max = 4}), false, 0, configured, tree));
  ASSERT_TRUE(tree.create("b", {}, kRoot));
  for (const std::int64_t weight : {7, 8}) {
    const sched::SliceChange change{.max = 4, .weight = weight, .frozen = "no", .owner_gid = -1};
    const Config saved = config_with_all({{"/", {.max_unlimited = true}}, {"a", change}, {"b", {.weight = weight}}});
    for (const char* path : {"a", "b"}) ASSERT_TRUE(tree.change(path, {.weight = weight}, kRoot));
    note_saved(saved, 0, tree, configured);
    for (const char* path : {"a", "b"}) ASSERT_TRUE(tree.change(path, {.max = 1, .frozen = "yes"}, kRoot));
    const sched::Slices before = tree.slices();
    ASSERT_TRUE(apply_config(saved, false, 0, configured, tree));
    EXPECT_EQ(tree.slices(), before);
    for (const char* path : {"a", "b"}) ASSERT_TRUE(tree.change(path, {.max = 4, .frozen = "no"}, kRoot));
  }
}

TEST(NoteSaved, WhatDiffersIsStillToBeApplied) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_with_all({{"a", {.max = 4}}, {"b", {.reserve = 8}}}), false, 0, configured, tree));
  const Config other = config_with_all({{"a", {.max = 5}}, {"b", {.weight = 100}}, {"new", {}}});
  note_saved(other, 0, tree, configured);
  ASSERT_TRUE(apply_config(other, false, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->max, sched::CapSM{5});
  EXPECT_EQ(tree.find("b")->reserve, sched::CapSM{0}) << "a key that is gone differs too";
  EXPECT_NE(tree.find("new"), nullptr);
}

TEST(NoteSaved, AFileThatIsGoneWithItsSliceSaysNothingOfALaterOneOfThatName) {
  sched::SliceTree tree = tree_of(132);
  std::map<std::string, std::string> configured;
  ASSERT_TRUE(apply_config(config_with_all({{"a", {.max = 4}}, {"b", {.max = 4}}}), false, 0, configured, tree));
  ASSERT_TRUE(tree.remove("a", 0, kRoot));
  note_saved(Config(), 0, tree, configured);
  ASSERT_TRUE(tree.create("a", {.max = 2}, kRoot));
  ASSERT_TRUE(apply_config(Config(), false, 0, configured, tree));
  EXPECT_EQ(tree.find("a")->max, sched::CapSM{2});
  EXPECT_EQ(tree.find("b")->max, sched::kUnlimitedCapSM) << "it was still there";
}

TEST(ApplyConfig, IsAllOrNothingAndNamesThePlace) {
  sched::SliceTree tree = tree_of(8);
  std::map<std::string, std::string> configured;
  Config config = config_with(200);
  config.slices.push_back({"other", {.reserve = 57}, "f:3:1", {{"reserve", "f:4:11"}}});
  const auto applied = apply_config(config, true, 0, configured, tree);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().message,
            "f:4:11: slice.\"other\".reserve: reserve of slice other does not fit: 57 asked, 56 available");
  EXPECT_EQ(tree.find("ls"), nullptr);
  EXPECT_TRUE(configured.empty());
  EXPECT_EQ(apply_config({.daemon = {}, .devices = {}, .slices = {{"a/b", {}, "f:7:2", {}}}}, true, 0, configured, tree)
                .error()
                .message,
            "f:7:2: slice.\"a/b\": no such slice: a");
  EXPECT_EQ(apply_config({.daemon = {}, .devices = {}, .slices = {{"a b", {}, "f:8:2", {}}}}, true, 0, configured, tree)
                .error()
                .message,
            "f:8:2: slice.\"a b\": names between slashes are 1 to 64 of A-Z a-z 0-9 _ . -");
}

}  // namespace
}  // namespace gpuctl::daemon
