#include "gpuctld/config/state_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "base/random.h"
#include "gpuctld/config/state.h"
#include "gpuctld/config/state_file.h"
#include "sched/slice_tree.h"

namespace gpuctl::daemon::state_writer_test {

namespace fs = std::filesystem;

constexpr sched::Caller kRoot{0, {}};

sched::SliceTree fresh_tree() {
  return sched::SliceTree(sched::CapSM{132}, 0);
}

/// What the next daemon makes of it.
sched::Slices slices_of(const LoadedState& loaded) {
  sched::SliceTree tree = fresh_tree();
  std::vector<std::string> notes;
  restore_slices(loaded.state, tree, notes);
  EXPECT_TRUE(notes.empty()) << notes[0];
  return tree.slices();
}

class StateWriterTest : public testing::Test {
 protected:
  StateWriterTest() { writer_.emplace(file_); }
  ~StateWriterTest() override { fs::remove_all(directory_); }

  static std::string make_directory() {
    std::string pattern = testing::TempDir() + "gpuctld-state-XXXXXX";
    return ::mkdtemp(pattern.data());
  }
  void write() { ASSERT_TRUE(writer_->write(tree_.slices(), configured_)); }
  void set_weight(const std::string& path, std::int64_t weight) {
    ASSERT_TRUE(tree_.change(path, {.weight = weight}, kRoot));
    write();
  }
  std::string text() const { return load_state(file_)->text; }
  /// Of the file: 0 if it was written anew and not changed since.
  static std::ptrdiff_t records(const std::string& text) { return std::ranges::count(text, '\n') - 1; }
  void expect_kept() const {
    const LoadedState loaded = load_state(file_).value();
    EXPECT_TRUE(loaded.left_out.empty()) << loaded.left_out[0];
    EXPECT_EQ(slices_of(loaded), tree_.slices());
    EXPECT_EQ(loaded.state.configured, configured_);
  }

  const std::string directory_ = make_directory(), file_ = directory_ + "/state.json";
  sched::SliceTree tree_ = fresh_tree();
  std::map<std::string, std::string> configured_;
  std::optional<StateWriter> writer_;
};

TEST_F(StateWriterTest, AChangeIsALineBehindTheRest) {
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(tree_.create("slice-" + std::to_string(i), {}, kRoot));
  write();
  const std::string before = text();
  EXPECT_EQ(records(before), 0);
  write();
  EXPECT_EQ(text(), before) << "nothing is new";
  set_weight("slice-7", 9);
  const std::string after = text();
  ASSERT_TRUE(after.starts_with(before));
  EXPECT_EQ(records(after), 1);
  EXPECT_LT(after.size() - before.size(), before.size() / 100);
  expect_kept();
}

TEST_F(StateWriterTest, WhatIsReadIsTheTreeAfterEachChange) {
  Random random(7);
  const auto one_of = [&](std::initializer_list<const char*> names) {
    return std::string(names.begin()[random.below(names.size())]);
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string path = one_of({"a", "b", "a/x", "a/y", "b/x", "a/x/deep", "c"});
    const std::int64_t weight = 1 + static_cast<std::int64_t>(random.below(100));
    switch (random.below(6)) {
      case 0:
        (void)tree_.remove_all(path, 0, kRoot);
        break;
      case 1:  // as `gpuctl apply` renames one: another one goes and it comes, in one step
        (void)tree_.remove_all(one_of({"a", "b", "c"}), 0, kRoot);
        [[fallthrough]];
      case 2:
        (void)tree_.create(path, {.reserve = 1, .weight = weight}, kRoot);
        break;
      case 3:
        (void)tree_.change("/", {.max = weight + 30}, kRoot);
        break;
      default:
        (void)tree_.change(path, {.weight = weight, .policy = one_of({"share", "hpf"})}, kRoot);
    }
    if (random.below(100) == 0) configured_["a"] = std::to_string(i);
    write();
    expect_kept();
    if (random.below(100) == 0) writer_.emplace(file_);  // the next daemon
  }
}

/// Wherever a daemon was killed, or its machine lost power, in writing a change: the change counts or it does not.
TEST_F(StateWriterTest, AChangeThatIsNotWholeDoesNotCount) {
  ASSERT_TRUE(tree_.create("a", {.reserve = 4}, kRoot));
  write();
  set_weight("a", 5);
  const sched::Slices before = tree_.slices();
  const std::string without = text();
  ASSERT_TRUE(tree_.create("a/b", {.reserve = 2}, kRoot));
  set_weight("a", 6);
  const std::string with = text();
  for (std::size_t size = without.size(); size < with.size(); ++size) {
    for (const std::string& end : {std::string(), std::string(with.size() - size, '\0'), std::string("\n")}) {
      const std::string torn_text = with.substr(0, size) + end;
      if (torn_text == with) continue;
      const LoadedState loaded = understand_state(torn_text);
      ASSERT_EQ(slices_of(loaded), before) << size;
      const bool torn = size > without.size() || end.starts_with('\0');
      ASSERT_EQ(loaded.left_out,
                torn ? std::vector<std::string>{"change 2 and what follows, because it is not whole; left out"}
                     : std::vector<std::string>())
          << size;
    }
  }
  std::string damaged = with;
  damaged[without.size() - 10] ^= 1;
  const LoadedState loaded = understand_state(damaged);
  EXPECT_EQ(loaded.left_out, std::vector<std::string>{"change 1 and what follows, because it is not whole; left out"});
  EXPECT_EQ(slices_of(loaded).at("a").weight, 100u);
}

TEST_F(StateWriterTest, AWrongFieldOfAChangeIsLeftOutAlone) {
  const LoadedState loaded = understand_state(
      "{\"version\":1,\"slices\":[{\"path\":\"a\",\"settings\":{}}],\"configured\":[]}\n" +
      state_record(R"({"gone":[{"path":7}],"slices":[{"path":"a","settings":{"weight":7,"max":"x"}}]})"));
  EXPECT_EQ(loaded.left_out,
            (std::vector<std::string>{"change 1: gone[0].path must be a string, not an integer; left out",
                                      "change 1: slices[0].settings.max must be an integer, not a string; left out"}));
  ASSERT_EQ(loaded.state.slices.size(), 1u);
  EXPECT_EQ(loaded.state.slices[0].second, (ipc::SliceSettings{.weight = 7}));
}

TEST_F(StateWriterTest, ManyChangesLeaveASmallFile) {
  ASSERT_TRUE(tree_.create("a", {}, kRoot));
  write();
  const std::size_t whole = text().size();
  bool anew = false;
  for (int i = 0; i < 1000; ++i) {
    set_weight("a", 1 + i % 100);
    const std::string now = text();
    ASSERT_LE(now.size(), whole + (64u << 10) + 10) << i;
    anew |= i > 0 && records(now) == 0;
  }
  EXPECT_TRUE(anew);
  expect_kept();
  ASSERT_TRUE(writer_->write_whole());
  EXPECT_EQ(records(text()), 0);
  expect_kept();
}

TEST_F(StateWriterTest, AFileThatSomebodyTouchedIsWrittenAnew) {
  ASSERT_TRUE(tree_.create("a", {}, kRoot));
  write();
  std::ofstream(file_, std::ios::app) << "7 {";
  set_weight("a", 7);
  expect_kept();
  fs::remove(file_);
  set_weight("a", 8);
  expect_kept();
  fs::rename(file_, file_ + ".2");
  fs::copy_file(file_ + ".2", file_);
  set_weight("a", 9);
  EXPECT_EQ(records(text()), 0);
  expect_kept();
}

/// Files may become no larger meanwhile.
class NoRoom {
 public:
  explicit NoRoom(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit now{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &now);
  }
  ~NoRoom() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(StateWriterTest, AChangeThatTheDiskHasNoRoomForIsMissingAlone) {
  ASSERT_TRUE(tree_.create("a", {}, kRoot));
  write();
  set_weight("a", 5);
  const std::string before = text();
  fs::create_directories(file_ + ".new/full");
  {
    const NoRoom no_room(before.size() + 20);
    for (int i = 6; i < 300; ++i) {
      ASSERT_TRUE(tree_.change("a", {.weight = i}, kRoot));
      EXPECT_FALSE(writer_->write(tree_.slices(), configured_));
      ASSERT_EQ(text(), before) << "a part of it is taken back";
    }
    fs::remove_all(file_ + ".new");
    const NoRoom none(20);
    EXPECT_FALSE(writer_->write());
    EXPECT_EQ(text(), before);
  }
  EXPECT_TRUE(writer_->write());
  expect_kept();
}

}  // namespace gpuctl::daemon::state_writer_test
