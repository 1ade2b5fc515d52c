#include "sched/joins.h"

#include <gtest/gtest.h>

#include <utility>

#include "sched/slice_tree.h"

namespace gpuctl::sched {
namespace {

const Caller kAdministrator{.uid = 0, .gids = {}};

SliceTree tree_with(const std::vector<std::pair<const char*, const char*>>& joins) {
  SliceTree tree(CapSM{132}, 0);
  for (const auto& [path, join] : joins) EXPECT_TRUE(tree.create(path, {.join = join}, kAdministrator)) << join;
  return tree;
}

std::string joined_by(const SliceTree& tree, std::uint32_t uid, std::vector<std::uint32_t> gids,
                      std::string_view cgroup, std::string_view exe = {}) {
  const Caller caller{.uid = uid, .gids = std::move(gids)};
  const auto may_join = [&](std::string_view slice) { return tree.may_join(slice, caller).has_value(); };
  return slice_to_join(tree.slices(), {.caller = caller, .cgroup = cgroup, .exe = exe, .may_join = may_join});
}

TEST(Joins, AUserAGroupOrAUnit) {
  const SliceTree tree =
      tree_with({{"alice", "user:1000"}, {"ml", "group:44,group:45"}, {"served", "unit:ollama.service"}});
  EXPECT_EQ(joined_by(tree, 1000, {}, ""), "alice");
  EXPECT_EQ(joined_by(tree, 1001, {7, 45}, ""), "ml");
  EXPECT_EQ(joined_by(tree, 1001, {7}, "/system.slice/ollama.service"), "served");
  EXPECT_EQ(joined_by(tree, 1001, {7}, "/system.slice/ollama.service.d"), "/");
  EXPECT_EQ(joined_by(tree, 1001, {7}, ""), "/");
}

TEST(Joins, AUnitComesBeforeAUserAndAUserBeforeAGroup) {
  const SliceTree tree =
      tree_with({{"a", "group:44"}, {"b", "user:1000"}, {"c", "unit:x.service"}, {"d", "unit:x.slice"}});
  EXPECT_EQ(joined_by(tree, 1000, {44}, "/x.slice/x.service/sub"), "c");
  EXPECT_EQ(joined_by(tree, 1000, {44}, "/x.slice/y.service"), "d");
  EXPECT_EQ(joined_by(tree, 1000, {44}, "/y.slice"), "b");
  EXPECT_EQ(joined_by(tree, 1001, {44}, "/y.slice"), "a");
}

TEST(Joins, ACgroupAndWhatIsBelowIt) {
  const SliceTree tree = tree_with({{"ml", "cgroup:/ml.slice"},
                                    {"job", "cgroup:/ml.slice/job.scope"},
                                    {"alice", "user:1000"},
                                    {"near", "unit:b.service"},
                                    {"hers", "cgroup:/user.slice/user-7.slice/user@7.service/app.slice"}});
  EXPECT_EQ(joined_by(tree, 1000, {}, "/ml.slice"), "ml");
  EXPECT_EQ(joined_by(tree, 1000, {}, "/ml.slice/other.scope/sub"), "ml");
  EXPECT_EQ(joined_by(tree, 1000, {}, "/ml.slice/job.scope/sub"), "job");
  EXPECT_EQ(joined_by(tree, 1000, {}, "/ml.slice/b.service"), "near");
  for (const char* elsewhere : {"/ml.slices", "/a/ml.slice", "/ml", ""})
    EXPECT_EQ(joined_by(tree, 1000, {}, elsewhere), "alice") << elsewhere;
  EXPECT_EQ(joined_by(tree, 1000, {}, "/user.slice/user-7.slice/user@7.service/app.slice/x"), "hers");
  EXPECT_EQ(joined_by(tree, 1000, {}, "/user.slice/user-8.slice/user@8.service/user-7.slice/user@7.service/app.slice"),
            "alice");
}

TEST(Joins, OfAUnitAndItsPathThePathCounts) {
  const SliceTree tree = tree_with({{"a", "unit:x.service"}, {"b", "cgroup:/x.slice/x.service"}});
  EXPECT_EQ(joined_by(tree, 1000, {}, "/x.slice/x.service"), "b");
  EXPECT_EQ(joined_by(tree, 1000, {}, "/y.slice/x.service"), "a");
}

TEST(Joins, AProgramComesBeforeWhereItRunsAndWhoseItIs) {
  SliceTree tree = tree_with({{"served", "unit:ollama.service,cgroup:/system.slice/ollama.service"},
                              {"alice", "user:1000"},
                              {"ollama", "exe:/usr/bin/ollama,exe:/opt/ollama/bin/ollama"}});
  ASSERT_TRUE(tree.change("ollama", {.owner_uid = 1000}, kAdministrator));
  const auto joined = [&](std::string_view exe) {
    return joined_by(tree, 1000, {}, "/system.slice/ollama.service", exe);
  };
  for (const char* exe : {"/usr/bin/ollama", "/opt/ollama/bin/ollama"}) EXPECT_EQ(joined(exe), "ollama") << exe;
  for (const char* exe : {"", "/usr/bin/ollama2", "/usr/bin", "ollama", "/usr/bin/ollama/x"})
    EXPECT_EQ(joined(exe), "served") << exe;
}

TEST(Joins, AProgramsWordTakesItNowhereWhereItMayNotBe) {
  SliceTree tree = tree_with({{"alice", "exe:/usr/bin/train"}, {"roots", "exe:/usr/bin/serve"}, {"bob", "user:1001"}});
  ASSERT_TRUE(tree.change("alice", {.owner_uid = 1000, .owner_gid = 50}, kAdministrator));
  const auto joined = [&](std::uint32_t uid, std::string_view exe, std::vector<std::uint32_t> gids = {}) {
    return joined_by(tree, uid, gids, "", exe);
  };
  EXPECT_EQ(joined(1000, "/usr/bin/train"), "alice");
  EXPECT_EQ(joined(1002, "/usr/bin/train", {50}), "alice");
  EXPECT_EQ(joined(0, "/usr/bin/train"), "alice");
  EXPECT_EQ(joined(0, "/usr/bin/serve"), "roots");
  EXPECT_EQ(joined(1001, "/usr/bin/train"), "bob") << "the next rule holds";
  EXPECT_EQ(joined(1002, "/usr/bin/serve"), "/");
}

TEST(Joins, WhomNothingNamesIsInTheSliceForThat) {
  const SliceTree tree = tree_with({{"alice", "user:1000"}, {"others", "none"}});
  const auto joined = [&](std::uint32_t uid, std::string_view otherwise) {
    return slice_to_join(tree.slices(), {.caller = {.uid = uid, .gids = {}}, .cgroup = ""}, otherwise);
  };
  EXPECT_EQ(joined(1001, "others"), "others");
  EXPECT_EQ(joined(1000, "others"), "alice");
  EXPECT_EQ(joined(1001, "gone"), "/");
  EXPECT_EQ(joined(1001, ""), "") << "it is refused";
  EXPECT_EQ(joined(1000, ""), "alice");
}

TEST(Joins, NamesThatUsersGiveTheirOwnUnitsTellNothing) {
  const SliceTree tree = tree_with({{"served", "unit:ollama.service"}, {"alice", "unit:user-1000.slice"}});
  const char* const own = "/user.slice/user-1000.slice/user@1000.service/app.slice/ollama.service";
  EXPECT_EQ(joined_by(tree, 1000, {}, own), "alice");
  EXPECT_EQ(joined_by(tree, 1001, {}, "/user.slice/user-1001.slice/user@1001.service/ollama.service"), "/");
}

TEST(Joins, NobodyIsNamedTwice) {
  SliceTree tree = tree_with({{"a", "user:1000,unit:x.service"}});
  const auto refused = tree.create("b", {.join = "group:1000,user:1000"}, kAdministrator);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "join: user 1000 joins a already");
  EXPECT_FALSE(tree.create("b", {.join = "user:01000"}, kAdministrator));
  ASSERT_TRUE(tree.create("b", {.join = "group:1000"}, kAdministrator));
  EXPECT_FALSE(tree.change("b", {.join = "unit:x.service"}, kAdministrator));
  const SliceChange none{.join = "none"}, theirs{.join = "user:1000"};
  const std::vector<SliceTree::Edit> exchange{{"a", &none}, {"b", &theirs}}, twice{{"a", &theirs}, {"b", &theirs}};
  std::size_t at = 0;
  EXPECT_FALSE(tree.apply(twice, kAdministrator, tree.capacity(), at));
  EXPECT_TRUE(tree.apply(exchange, kAdministrator, tree.capacity(), at));
  EXPECT_EQ(joined_by(tree, 1000, {}, ""), "b");
}

TEST(Joins, WhoDoesNotOwnTheRootTakesNobodysProgramsIn) {
  SliceTree tree(CapSM{132}, 0);
  ASSERT_TRUE(tree.create("alice", {.owner_uid = 1000}, kAdministrator));
  const Caller alice{.uid = 1000, .gids = {}};
  EXPECT_EQ(tree.create("alice/a", {.join = "user:1001"}, alice).error().code, SliceError::Code::permission_denied);
  ASSERT_TRUE(tree.create("alice/a", {.max = 8}, alice));
  EXPECT_EQ(tree.change("alice/a", {.join = "user:1001"}, alice).error().code, SliceError::Code::permission_denied);
  // What is said again changes nothing.
  EXPECT_TRUE(tree.change("alice/a", {.join = "none"}, alice));
}

TEST(Joins, WhatIsNoListIsRefused) {
  SliceTree tree(CapSM{132}, 0);
  for (const char* join : {"",
                           "user:alice",
                           "user:*",
                           "user:",
                           "unit:a/b",
                           "uid:5",
                           "user:1,user:1",
                           "user:1,",
                           "user:4294967295",
                           "group:-1",
                           "unit:a b",
                           "cgroup:ml",
                           "cgroup:/",
                           "cgroup:/a/",
                           "cgroup:/a//b",
                           "cgroup:/a b",
                           "exe:ollama",
                           "exe:/",
                           "exe:/usr/bin/",
                           "exe:/usr//bin/x",
                           "exe:/usr/../x",
                           "exe:/usr/./x",
                           "exe:/usr/x y",
                           "exe:"})
    EXPECT_EQ(tree.create("a", {.join = join}, kAdministrator).error().field, "join") << join;
}

std::string mandatory(std::string_view list, std::uint32_t uid, std::vector<std::uint32_t> gids = {},
                      std::string_view cgroup = "") {
  return mandatory_for(list, {.caller = {.uid = uid, .gids = std::move(gids)}, .cgroup = cgroup});
}

TEST(Mandatory, IsForWhomTheListNames) {
  for (const char* nobody : {"none", "", "user:alice", "exe:/usr/bin/python3"})
    EXPECT_EQ(mandatory(nobody, 1000), "") << nobody;
  EXPECT_EQ(mandatory("user:1000,group:44", 1000), "user:1000");
  EXPECT_EQ(mandatory("user:1000,group:44", 1001, {7, 44}), "group:44");
  EXPECT_EQ(mandatory("user:1000,group:44", 1001, {7}), "");
  EXPECT_EQ(mandatory("unit:slurm", 1001, {}, "/slurm/uid_1001/job_4"), "unit:slurm");
  EXPECT_EQ(mandatory("unit:slurm", 1001, {}, "/slurmd/slurm.d"), "");
  EXPECT_EQ(mandatory("cgroup:/slurm", 1001, {}, "/slurm/uid_1001/job_4"), "cgroup:/slurm");
  EXPECT_EQ(mandatory("cgroup:/slurm", 998, {}, "/slurm/uid_998/job_4"), "") << "a user of the system";
  EXPECT_EQ(mandatory("unit:a.service", 1001, {}, "/user.slice/user@1001.service/a.service"), "") << "the user's own";
}

TEST(Mandatory, EveryUserIsEachOrdinaryOne) {
  for (const std::uint32_t uid : {1000u, 60513u, 65536u, 4000001u})
    EXPECT_EQ(mandatory("user:*", uid), "user:*") << uid;
  for (const std::uint32_t uid : {0u, 999u, 61184u, 65519u, 65534u}) EXPECT_EQ(mandatory("user:*", uid), "") << uid;
}

TEST(Mandatory, RootAndUsersOfTheSystemAreNamedByTheirUserAlone) {
  for (const std::uint32_t uid : {0u, 998u, 65534u}) {
    EXPECT_EQ(mandatory("user:*,group:44,unit:system.slice", uid, {44}, "/system.slice/ollama.service"), "") << uid;
    const std::string own = "user:" + std::to_string(uid);
    EXPECT_EQ(mandatory("unit:system.slice," + own, uid, {}, "/system.slice/ollama.service"), own);
  }
}

}  // namespace
}  // namespace gpuctl::sched
