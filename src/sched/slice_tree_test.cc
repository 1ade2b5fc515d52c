#include "sched/slice_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpuctl::sched::slice_tree_test {
namespace {

using Code = SliceError::Code;
constexpr Caller kRoot{0, {}};

SliceTree tree_of_132() {
  return SliceTree(CapSM{132}, 0);
}

SliceChange reserve(std::int64_t sms) {
  return {.reserve = sms};
}

Code code_of(const SliceResult<void>& result) {
  EXPECT_TRUE(result.has_error());
  return result.error().code;
}

TEST(SliceTree, CreatesWithDefaults) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("batch", {}, kRoot));
  const Slice* slice = tree.find("batch");
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->reserve, CapSM{0});
  EXPECT_EQ(slice->max, kUnlimitedCapSM);
  EXPECT_EQ(slice->weight, 100u);
  EXPECT_EQ(slice->policy->name, "share");
  EXPECT_EQ(slice->reserve_mode, ReserveMode::active);
  EXPECT_EQ(slice->reserve_hold, std::chrono::milliseconds(100));
  EXPECT_EQ(tree.find("/")->reserve_mode, ReserveMode::strict);  // the whole GPU
}

TEST(SliceTree, RefusesBadPaths) {
  SliceTree tree = tree_of_132();
  for (const char* path : {"", "a b", "a//b", "/a", "a/", "..", ".", "ä", "a/../b"})
    EXPECT_EQ(code_of(tree.create(path, {}, kRoot)), Code::invalid_value) << path;
  EXPECT_EQ(code_of(tree.create(std::string(65, 'x'), {}, kRoot)), Code::invalid_value);
  EXPECT_TRUE(tree.create(std::string(64, 'x'), {}, kRoot));
  EXPECT_EQ(code_of(tree.create("/", {}, kRoot)), Code::slice_exists);
  EXPECT_EQ(tree.slices().size(), 2u);
}

TEST(SliceTree, WhatIsBelowASliceComesRightBehindIt) {
  SliceTree tree = tree_of_132();
  const std::vector<std::string> paths{"a", "a/a", "a/a/z", "a/b", "a-b", "a-b/a", "a.b", "a0", "aa", "aa/b", "b"};
  for (const std::string& path : paths) ASSERT_TRUE(tree.create(path, {}, kRoot)) << path;
  std::vector<std::string> found;
  for (const auto& [path, slice] : tree.slices()) found.push_back(path);
  ASSERT_EQ(found.front(), "/");
  EXPECT_EQ(std::vector(found.begin() + 1, found.end()), paths);
  const std::vector<Effective> effective = tree.effective();
  for (std::size_t n = 1; n < found.size(); ++n)
    EXPECT_EQ(found[static_cast<std::size_t>(effective[n].parent)], parent_path(found[n]));
}

TEST(SliceTree, NeedsTheParentFirstAndNoTwin) {
  SliceTree tree = tree_of_132();
  const auto orphan = tree.create("a/b", {}, kRoot);
  EXPECT_EQ(code_of(orphan), Code::no_such_slice);
  EXPECT_EQ(orphan.error().path, "a");
  ASSERT_TRUE(tree.create("a", {}, kRoot));
  ASSERT_TRUE(tree.create("a/b", {}, kRoot));
  EXPECT_EQ(code_of(tree.create("a", {}, kRoot)), Code::slice_exists);
}

TEST(SliceTree, DepthIsBounded) {
  SliceTree tree = tree_of_132();
  std::string path = "d";
  for (std::size_t depth = 1; depth <= kMaxSliceDepth; ++depth, path += "/d") ASSERT_TRUE(tree.create(path, {}, kRoot));
  EXPECT_EQ(code_of(tree.create(path, {}, kRoot)), Code::invalid_value);
}

TEST(SliceTree, NodesComeParentsFirstWhateverTheNames) {
  SliceTree tree = tree_of_132();
  for (const char* path : {"a-b", "a", "a/z", "a.c", "a/b", "-x", "a/b/c"})
    ASSERT_TRUE(tree.create(path, {}, kRoot)) << path;
  const auto nodes = tree.nodes();
  ASSERT_EQ(nodes.size(), 8u);
  EXPECT_EQ(nodes[0].parent, -1);
  for (std::size_t i = 1; i < nodes.size(); ++i) EXPECT_LT(nodes[i].parent, static_cast<int>(i));
  EXPECT_EQ(tree.slices().begin()->first, "/");
}

TEST(SliceTree, ReservesMustFit) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("ls", reserve(100), kRoot));
  const auto result = tree.create("other", reserve(40), kRoot);
  ASSERT_EQ(code_of(result), Code::reserve_does_not_fit);
  EXPECT_EQ(result.error().asked, 40);
  EXPECT_EQ(result.error().available, 32);
  EXPECT_EQ(tree.find("other"), nullptr);
  ASSERT_TRUE(tree.create("ls/a", reserve(60), kRoot));
  EXPECT_EQ(code_of(tree.create("ls/b", reserve(41), kRoot)), Code::reserve_does_not_fit);
  ASSERT_TRUE(tree.create("ls/b", reserve(40), kRoot));
  EXPECT_EQ(code_of(tree.change("ls", reserve(99), kRoot)), Code::invalid_value);
  EXPECT_EQ(code_of(tree.change("ls", reserve(133), kRoot)), Code::reserve_does_not_fit);
  EXPECT_TRUE(tree.change("ls", reserve(132), kRoot));
}

TEST(SliceTree, ReserveStaysWithinMax) {
  SliceTree tree = tree_of_132();
  EXPECT_EQ(code_of(tree.create("a", {.reserve = 10, .max = 9}, kRoot)), Code::invalid_value);
  ASSERT_TRUE(tree.create("a", {.reserve = 10, .max = 10}, kRoot));
  const auto result = tree.change("a", {.max = 9}, kRoot);
  EXPECT_EQ(code_of(result), Code::invalid_value);
  EXPECT_EQ(result.error().field, "max");
  ASSERT_TRUE(tree.change("a", {.max_unlimited = true}, kRoot));
  EXPECT_EQ(tree.find("a")->max, kUnlimitedCapSM);
}

TEST(SliceTree, AChangeIsAllOrNothing) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("a", {.weight = 7}, kRoot));
  EXPECT_TRUE(tree.change("a", {.max = 50, .weight = 0}, kRoot).has_error());
  EXPECT_EQ(tree.find("a")->max, kUnlimitedCapSM);
  EXPECT_EQ(tree.find("a")->weight, 7u);
}

TEST(SliceTree, TheAllocatorLearnsWhichReservesLapse) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("a", {.reserve = 4, .reserve_mode = "active", .reserve_hold_ms = 20}, kRoot));
  ASSERT_TRUE(tree.create("b", {.reserve = 4, .reserve_mode = "strict", .reserve_hold_ms = 20}, kRoot));
  ASSERT_TRUE(tree.create("c", {}, kRoot));  // no reserve
  const std::vector<NodeInput> nodes = tree.nodes();
  EXPECT_EQ(nodes[1].hold, std::chrono::milliseconds(20));
  EXPECT_FALSE(nodes[1].keeps_reserve());
  EXPECT_TRUE(nodes[2].keeps_reserve());
  EXPECT_FALSE(nodes[3].keeps_reserve());
  for (const std::size_t other : {2u, 3u}) EXPECT_EQ(nodes[other].hold.count(), 0);
}

TEST(SliceTree, NamesTheFieldAtFault) {
  SliceTree tree = tree_of_132();
  const auto field = [&](const SliceChange& change) { return tree.create("x", change, kRoot).error().field; };
  EXPECT_EQ(field({.reserve = -1}), "reserve");
  EXPECT_EQ(field({.reserve_mode = "maybe"}), "reserve_mode");
  EXPECT_EQ(tree.create("x", {.reserve_mode = "lend"}, kRoot).error().message(),
            "reserve_mode: lend is no more; active with a reserve_hold of 1 ms took its place");
  EXPECT_EQ(field({.reserve_hold_ms = 0}), "reserve_hold_ms");
  EXPECT_EQ(field({.reserve_hold_ms = 3'600'001}), "reserve_hold_ms");
  EXPECT_EQ(field({.max = 1 << 24}), "max");
  EXPECT_EQ(field({.max = 1, .max_unlimited = true}), "max");
  EXPECT_EQ(field({.weight = 10001}), "weight");
  EXPECT_EQ(field({.priority = 101}), "priority");
  EXPECT_EQ(field({.memory_max = -5}), "memory_max");
  EXPECT_EQ(field({.owner_uid = -1}), "owner_uid");
  EXPECT_EQ(field({.owner_gid = -2}), "owner_gid");
  const auto unknown = tree.create("x", {.policy = "best"}, kRoot);
  EXPECT_EQ(unknown.error().field, "policy");
  EXPECT_NE(unknown.error().reason.find("share"), std::string::npos);
  EXPECT_EQ(tree.find("x"), nullptr);
}

TEST(SliceTree, RemoveRefusesTheBusy) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("a", {}, kRoot));
  ASSERT_TRUE(tree.create("a/b", {}, kRoot));
  const auto busy = tree.remove("a", 3, kRoot);
  ASSERT_EQ(code_of(busy), Code::slice_busy);
  EXPECT_EQ(busy.error().clients, 3);
  EXPECT_EQ(busy.error().children, 1);
  EXPECT_TRUE(tree.remove("a/b", 0, kRoot));
  EXPECT_TRUE(tree.remove("a", 0, kRoot));
  EXPECT_EQ(code_of(tree.remove("a", 0, kRoot)), Code::no_such_slice);
  EXPECT_EQ(code_of(tree.remove("/", 0, kRoot)), Code::invalid_value);
}

TEST(SliceTree, RemoveAllTakesWhatIsBelowOrNothing) {
  SliceTree tree = tree_of_132();
  for (const char* path : {"a", "a/b", "a/b/c", "a-b", "z"}) ASSERT_TRUE(tree.create(path, {}, kRoot));
  const auto busy = tree.remove_all("a", 2, kRoot);
  ASSERT_EQ(code_of(busy), Code::slice_busy);
  EXPECT_EQ(busy.error().clients, 2);
  EXPECT_EQ(tree.slices().size(), 6u);
  EXPECT_EQ(code_of(tree.remove_all("a", 0, {1000, {}})), Code::permission_denied);
  EXPECT_EQ(code_of(tree.remove_all("no", 0, kRoot)), Code::no_such_slice);
  EXPECT_EQ(code_of(tree.remove_all("/", 0, kRoot)), Code::invalid_value);
  EXPECT_TRUE(tree.remove_all("a", 0, kRoot));
  EXPECT_EQ(tree.slices().size(), 3u);
  EXPECT_NE(tree.find("a-b"), nullptr);
}

TEST(SliceTree, TheRootIsTheGpu) {
  SliceTree tree = tree_of_132();
  EXPECT_EQ(code_of(tree.change("/", {.reserve = 4}, kRoot)), Code::invalid_value);
  EXPECT_EQ(code_of(tree.change("/", {.weight = 4}, kRoot)), Code::invalid_value);
  ASSERT_TRUE(tree.create("ls", reserve(8), kRoot));
  EXPECT_TRUE(tree.change("/", {.max = 7}, kRoot).has_error());
  ASSERT_TRUE(tree.change("/", {.max = 50}, kRoot));
  EXPECT_EQ(tree.find("/")->reserve, CapSM{132});
  EXPECT_EQ(code_of(tree.create("more", reserve(43), kRoot)), Code::reserve_does_not_fit);
}

TEST(SliceTreeRights, OwnersRuleBelowTheirSliceOnly) {
  SliceTree tree = tree_of_132();
  const Caller alice{1000, {}}, bob{1001, {}};
  ASSERT_TRUE(tree.create("alice", {.reserve = 20, .owner_uid = 1000}, kRoot));
  EXPECT_EQ(code_of(tree.create("mine", {}, alice)), Code::permission_denied);
  EXPECT_EQ(code_of(tree.change("alice", reserve(30), alice)), Code::permission_denied);
  EXPECT_EQ(code_of(tree.remove("alice", 0, alice)), Code::permission_denied);
  ASSERT_TRUE(tree.create("alice/a", reserve(5), alice));
  EXPECT_EQ(tree.find("alice/a")->owner_uid, 1000u);
  EXPECT_EQ(tree.find("alice/a")->owner_gid, kNobody);
  ASSERT_TRUE(tree.change("alice/a", reserve(20), alice));
  EXPECT_EQ(code_of(tree.change("alice/a", reserve(1), bob)), Code::permission_denied);
  EXPECT_EQ(code_of(tree.create("alice/b", {}, bob)), Code::permission_denied);
  EXPECT_TRUE(tree.change("alice", {.policy = "share"}, alice));
  EXPECT_TRUE(tree.remove("alice/a", 0, alice));
}

TEST(SliceTreeRights, AGroupMayOwn) {
  SliceTree tree = tree_of_132();
  const std::uint32_t gids[] = {50, 60};
  const Caller member{1000, gids}, outsider{1000, {}};
  ASSERT_TRUE(tree.create("lab", {.owner_gid = 60}, kRoot));
  EXPECT_TRUE(tree.create("lab/x", {}, member));
  EXPECT_EQ(code_of(tree.create("lab/y", {}, Caller{1001, {}})), Code::permission_denied);
  ASSERT_TRUE(tree.change("lab", {.owner_gid = -1}, kRoot));
  EXPECT_EQ(code_of(tree.create("lab/z", {}, outsider)), Code::permission_denied);
}

TEST(SliceTreeRights, AnEditNeedsThemForWhatDiffers) {
  SliceTree tree = tree_of_132();
  ASSERT_TRUE(tree.create("alice", {.reserve = 20, .owner_uid = 1000}, kRoot));
  ASSERT_TRUE(tree.create("other", {.weight = 7}, kRoot));
  const SliceChange same{.reserve = 20, .weight = 100, .policy = "share"}, policy{.reserve = 20, .policy = "hpf"},
      weight{.weight = 8, .policy = "share"}, other{.weight = 7}, child{.reserve = 5}, root{};
  const auto applied = [&](const std::vector<SliceTree::Edit>& edits) {
    std::size_t at = 0;
    return tree.apply(edits, Caller{1000, {}}, tree.capacity(), at);
  };
  EXPECT_TRUE(applied({{"/", &root}, {"alice", &same}, {"alice/x", &child}, {"other", &other}}));
  EXPECT_EQ(tree.find("alice/x")->owner_uid, 1000u);
  EXPECT_EQ(code_of(applied({{"alice", &weight}, {"alice/y", &child}})), Code::permission_denied);
  EXPECT_EQ(code_of(applied({{"alice/y", &child}, {"other", &weight}})), Code::permission_denied);
  EXPECT_EQ(tree.find("alice/y"), nullptr);
  EXPECT_TRUE(applied({{"alice", &policy}, {"other", &other}})) << "as by change()";
  EXPECT_EQ(tree.find("alice")->job_policy, "hpf");
}

TEST(SliceTreeRights, WhoMayJoin) {
  SliceTree tree = tree_of_132();
  const Caller alice{1000, {}}, bob{1001, {}};
  ASSERT_TRUE(tree.create("alice", {.owner_uid = 1000}, kRoot));
  EXPECT_TRUE(tree.may_join("/", bob));
  EXPECT_TRUE(tree.may_join("alice", alice));
  EXPECT_TRUE(tree.may_join("alice", kRoot));
  EXPECT_EQ(code_of(tree.may_join("alice", bob)), Code::permission_denied);
  EXPECT_EQ(code_of(tree.may_join("nowhere", bob)), Code::no_such_slice);
}

TEST(SliceTreeRights, APrivateInstanceBelongsToWhoStartedIt) {
  SliceTree tree(CapSM{8}, 1000);
  EXPECT_TRUE(tree.create("ls", reserve(2), Caller{1000, {}}));
  EXPECT_EQ(code_of(tree.create("x", {}, Caller{1001, {}})), Code::permission_denied);
}

TEST(SliceTree, AnOwnerMakesSoManySlicesAndRootTheRest) {
  SliceTree tree = tree_of_132();
  const Caller owner{1000, {}};
  ASSERT_TRUE(tree.create("mine", {.owner_uid = 1000}, kRoot));
  ASSERT_TRUE(tree.create("too", {.owner_uid = 1000}, kRoot));
  std::size_t made = 0;
  SliceResult<void> refused;
  while ((refused = tree.create((made % 2 == 0 ? "mine/s" : "too/s") + std::to_string(made), {}, owner))) {
    // Giving a slice away makes no room for another.
    ASSERT_TRUE(tree.change((made % 2 == 0 ? "mine/s" : "too/s") + std::to_string(made), {.owner_uid = 7}, owner));
    ++made;
  }
  EXPECT_EQ(made, kMaxSlicesPerOwner);
  EXPECT_EQ(refused.error().message(), "path: too many slices: below what a user owns there may be at most 100");
  EXPECT_TRUE(tree.create("mine/by-root", {}, kRoot));
  for (std::uint32_t n = 0; tree.slices().size() < kMaxSlices - kSlicesKeptForRoot; ++n)
    ASSERT_TRUE(tree.create("other" + std::to_string(n), {.owner_uid = 2000}, kRoot));
  EXPECT_EQ(code_of(tree.create("other0/s", {}, {2000, {}})), Code::invalid_value) << "the last ones are root's";
  EXPECT_TRUE(tree.create("other0/s", {}, kRoot));
}

/// To give slices to somebody takes nothing from them.
TEST(SliceTree, NobodyUsesUpWhatAnotherOneMayHave) {
  SliceTree tree = tree_of_132();
  const Caller attacker{7, {}}, victim{8, {}};
  ASSERT_TRUE(tree.create("theirs", {.owner_uid = 7}, kRoot));
  ASSERT_TRUE(tree.create("mine", {.owner_uid = 8}, kRoot));
  ASSERT_TRUE(tree.create("theirs/gift", {.owner_uid = 8}, attacker));
  std::size_t made = 1;
  while (tree.create("theirs/gift/s" + std::to_string(made), {.owner_uid = 8}, attacker)) ++made;
  EXPECT_EQ(made, kMaxSlicesPerOwner);
  for (std::size_t i = 0; i < kMaxSlicesPerOwner; ++i)
    ASSERT_TRUE(tree.create("mine/s" + std::to_string(i), {}, victim)) << i;
  EXPECT_EQ(code_of(tree.create("mine/s", {}, victim)), Code::invalid_value);
}

/// The outcome of edits to a tree of 8 SMs with the slices a (4 of them), a/x (4) and b (2).
SliceResult<void> edited(const std::vector<std::pair<std::string, SliceChange>>& changes, std::size_t& at,
                         SliceTree& tree) {
  EXPECT_TRUE(tree.create("a", reserve(4), kRoot));
  EXPECT_TRUE(tree.create("a/x", reserve(4), kRoot));
  EXPECT_TRUE(tree.create("b", reserve(2), kRoot));
  std::vector<SliceTree::Edit> edits;
  for (const auto& [path, change] : changes) edits.push_back({path, &change});
  return tree.apply(edits, kRoot, CapSM{8}, at);
}

TEST(SliceTree, OnlyWhatFollowsFromAllEditsIsAdmitted) {
  using Changes = std::vector<std::pair<std::string, SliceChange>>;
  std::size_t at = 0;
  for (const Changes& changes :
       {Changes{{"a", reserve(2)}, {"a/x", reserve(2)}, {"b", reserve(6)}},
        Changes{{"b", reserve(4)}, {"a", reserve(4)}},
        Changes{{"a", reserve(6)}, {"a/x", reserve(6)}, {"b", reserve(1)}, {"c", reserve(1)}},
        Changes{{"/", {.max = 3}}, {"a", reserve(1)}, {"a/x", reserve(1)}, {"b", reserve(2)}}}) {
    SliceTree tree(CapSM{8}, 0);
    EXPECT_TRUE(edited(changes, at, tree));
    for (const auto& [path, change] : changes)
      EXPECT_EQ(tree.find(path)->reserve.count, change.reserve.value_or(8)) << path;
  }
}

TEST(SliceTree, AnEditThatIsRefusedIsNamedAndNothingChanges) {
  const auto refused = [](const std::vector<std::pair<std::string, SliceChange>>& changes) {
    SliceTree tree(CapSM{8}, 0);
    std::size_t at = 0;
    const auto result = edited(changes, at, tree);
    EXPECT_FALSE(result);
    EXPECT_EQ(tree.find("b")->reserve, CapSM{2});
    EXPECT_EQ(tree.slices().size(), 4u);
    return std::to_string(at) + ": " + result.error().message();
  };
  EXPECT_EQ(refused({{"b", reserve(1)}, {"a", reserve(3)}}), "1: reserve: below the 4 SMs that its children reserve");
  EXPECT_EQ(refused({{"b", reserve(1)}, {"c", reserve(4)}}),
            "1: reserve of slice c does not fit: 4 asked, 3 available");
  EXPECT_EQ(refused({{"/", {.max = 3}}, {"b", reserve(1)}}), "0: max: below the 4 SMs that its children reserve");
  EXPECT_EQ(refused({{"b", reserve(0)}, {"a/y", reserve(1)}}),
            "1: reserve of slice a/y does not fit: 1 asked, 0 available");
}

TEST(SliceTree, NoMoreMemoryIsKeptThanThereIs) {
  SliceTree tree({{.index = 0, .sms = CapSM{132}, .memory = 100}, {.index = 1, .sms = CapSM{132}, .memory = 80}}, 0);
  const Caller root{0, {}};
  ASSERT_TRUE(tree.create("a", {.memory_min = 60}, root));
  const auto refused = tree.create("b", {.memory_min = 41}, root);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "memory_min: 41 cannot be kept: 40 of GPU 0 is left");
  const auto unnamed = tree.create("b", {.memory_min_per_gpu = "1:30"}, root);
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().message(), "memory_min: 30 cannot be kept: 20 of GPU 1 is left");
  ASSERT_TRUE(tree.create("b", {.memory_min_per_gpu = "0:30"}, root));
  EXPECT_FALSE(tree.change("b", {.memory_min_per_gpu = "0:41"}, root));
  EXPECT_FALSE(tree.change("a", {.memory_min = 55, .memory_max = 50}, root));
  ASSERT_TRUE(tree.create("a/x", {.memory_min = 50}, root));
  EXPECT_FALSE(tree.create("a/y", {.memory_min = 11}, root));
  EXPECT_FALSE(tree.change("a", {.memory_min = 49}, root));
  // Exchanged at once.
  const SliceChange less{.memory_min = 20}, more{.memory_min = 40};
  ASSERT_TRUE(tree.create("a/y", {.memory_min = 10}, root));
  std::size_t at = 0;
  const std::vector<SliceTree::Edit> edits{{"a/y", &more}, {"a/x", &less}};
  ASSERT_TRUE(tree.apply(edits, root, tree.capacity(), at));
  EXPECT_EQ(tree.find("a/y")->memory_min, 40u);
  const std::vector<SliceTree::Edit> worse{{"a/x", &more}};
  EXPECT_FALSE(tree.apply(worse, root, tree.capacity(), at));
  EXPECT_EQ(tree.find("a/x")->memory_min, 20u);
}

TEST(SliceTree, NoMoreMemoryIsKeptForASliceThanItMayHaveWhicheverIsSet) {
  SliceTree tree({{.index = 0, .sms = CapSM{132}, .memory = 100}}, 0);
  const Caller root{0, {}};
  const std::string reason = "memory_min: 60 is above memory_max 50 of GPU 0";
  EXPECT_EQ(tree.create("b", {.memory_min = 60, .memory_max = 50}, root).error().message(), reason);
  ASSERT_TRUE(tree.create("a", {.memory_min = 60}, root));
  for (const SliceChange& change : {SliceChange{.memory_max = 50}, SliceChange{.memory_max_per_gpu = "50%"}}) {
    const auto refused = tree.change("a", change, root);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), reason);
  }
  EXPECT_TRUE(tree.change("a", {.memory_max = 60}, root));
  EXPECT_TRUE(tree.change("a", {.memory_min = 40, .memory_max = 40}, root));
}

TEST(SliceTree, MemoryHasToFitTheGpusWithTheMostMemoryNotThoseWithTheMostSms) {
  const Caller root{0, {}};
  const GpuSize l40s{.index = 0, .sms = CapSM{142}, .memory = 48}, h100{.index = 1, .sms = CapSM{132}, .memory = 80};
  SliceTree tree({l40s, h100}, 0);
  ASSERT_TRUE(tree.create("a", {.memory_min = 60}, root)) << "what fits one GPU and not another stops nothing";
  EXPECT_FALSE(tree.create("b", {.memory_min = 60}, root));
  ASSERT_TRUE(tree.create("b", {.memory_min_per_gpu = "1:20"}, root));
  EXPECT_FALSE(tree.change("b", {.memory_min_per_gpu = "1:21"}, root));
}

/// Of a GPU with fewer SMs too.
TEST(SliceTree, MemoryThatASliceKeepsOfAGpuByNameHasToFitIt) {
  const Caller root{0, {}};
  for (const std::uint64_t other : {80u, 100u}) {
    SliceTree tree({{.index = 0, .sms = CapSM{8}, .memory = other}, {.index = 1, .sms = CapSM{6}, .memory = 80}}, 0);
    ASSERT_TRUE(tree.create("a", {.memory_min_per_gpu = "1:60"}, root));
    const auto refused = tree.create("b", {.memory_min_per_gpu = "1:60"}, root);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message(), "memory_min: 60 cannot be kept: 20 of GPU 1 is left");
  }
}

}  // namespace
}  // namespace gpuctl::sched::slice_tree_test
