#include "sched/group_limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/slice_tree.h"

namespace gpuctl::sched::group_limits_test {
namespace {

constexpr std::uint64_t kGroupGiB = std::uint64_t{1} << 30;

/// "/group SLICE N" of each, by path.
std::vector<std::string> groups(const std::vector<std::pair<const char*, const char*>>& joins,
                                const std::vector<GroupedProgram>& programs) {
  SliceTree tree(CapSM{132}, 0);
  for (const auto& [path, join] : joins) {
    SliceSettings settings;
    if (*join != '\0') settings.join = join;
    EXPECT_TRUE(tree.create(path, settings, Caller{.uid = 0, .gids = {}})) << path;
  }
  std::vector<std::string> found;
  for (const auto& [group, of] : groups_of_slices(tree.slices(), programs))
    found.push_back(group + " " + of.slice + " " + std::to_string(of.programs));
  return found;
}

using Groups = std::vector<std::string>;

TEST(GroupLimits, AUnitOrACgroupThatTheSliceNames) {
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", "cgroup:/ml.slice"}}, {{"/system.slice/x.service", "a"},
                                                                          {"/system.slice/x.service/sub", "a"},
                                                                          {"/ml.slice/job.scope", "b"},
                                                                          {"/system.slice/y.service", "/"}}),
            (Groups{"/ml.slice b 1", "/system.slice/x.service a 2"}));
}

TEST(GroupLimits, NotTheUnitOfAUserOrOfOneWhoNamesNone) {
  EXPECT_EQ(groups({{"a", "user:1000"}}, {{"/user.slice/user-1000.slice/session-1.scope", "a"}}), Groups());
  EXPECT_EQ(groups({{"a", "unit:x.service"}}, {{"/user.slice/user@7.service/x.service", "a"}}), Groups());
  EXPECT_EQ(groups({{"a", "unit:x.service"}}, {{"", "a"}}), Groups());
}

TEST(GroupLimits, TheScopeOfARun) {
  const std::string scope = "/user.slice/user@7.service/app.slice/gpuctl-run-12-0a1b2c3d.scope";
  EXPECT_EQ(groups({{"a", ""}}, {{scope, "a"}, {scope + "/sub", "a"}}), Groups{scope + " a 2"});
  EXPECT_EQ(groups({{"a", ""}}, {{"/gpuctl-run-1-2.service", "a"}, {"/run-1-2.scope", "a"}}), Groups());
}

TEST(GroupLimits, NotWhereAProgramOfAnotherSliceIs) {
  const std::string scope = "/gpuctl-run-12-0a1b2c3d.scope";
  EXPECT_EQ(groups({{"a", ""}, {"b", ""}}, {{scope, "a"}, {scope, "b"}}), Groups());
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "a"}, {"/x.service/sub", "b"}}), Groups());
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "b"}}), Groups()) << "moved";
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "a"}, {"/x.service.d", "b"}}),
            Groups{"/x.service a 1"});
}

TEST(GroupLimits, SlicesBelowItsOwnHaveItsLimitToo) {
  const std::string scope = "/gpuctl-run-12-0a1b2c3d.scope";
  EXPECT_EQ(groups({{"a", ""}, {"a/b", ""}}, {{scope, "a/b"}, {scope, "a"}}), Groups{scope + " a 2"});
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"a/b", ""}}, {{"/x.service", "a/b"}}), Groups{"/x.service a 1"});
  EXPECT_EQ(groups({{"a", "cgroup:/x.slice"}, {"a/b", "unit:y.service"}}, {{"/x.slice/y.service", "a/b"}}),
            (Groups{"/x.slice a 1", "/x.slice/y.service a/b 1"}));
}

/// With 2 GiB for what a program takes uncounted.
const GpuSize kLargeGpu{.sms = CapSM{128}, .memory = 140 * kGroupGiB};

TEST(GroupLimits, LeaveRoomForWhatTheLibraryDoesNotCount) {
  EXPECT_EQ(driver_limit(16 * kGroupGiB, 0, 1, kLargeGpu), (DriverLimit{0, 20 * kGroupGiB}));
  EXPECT_EQ(driver_limit(16 * kGroupGiB, 4 * kGroupGiB, 3, kLargeGpu), (DriverLimit{4 * kGroupGiB, 24 * kGroupGiB}));
  EXPECT_EQ(driver_limit(0, 30 * kGroupGiB, 1, kLargeGpu), (DriverLimit{0, 4 * kGroupGiB})) << "soft above hard";
}

TEST(GroupLimits, AreNoneWhereTheGpuIsNoLarger) {
  EXPECT_FALSE(driver_limit({}, kGroupGiB, 1, kLargeGpu).limits());
  EXPECT_FALSE(driver_limit(140 * kGroupGiB, 0, 1, kLargeGpu).limits());
  EXPECT_FALSE(driver_limit(136 * kGroupGiB, 0, 1, kLargeGpu).limits());
  EXPECT_TRUE(driver_limit(136 * kGroupGiB - 1, 0, 1, kLargeGpu).limits());
  EXPECT_FALSE(driver_limit(kNoDriverLimit, 0, 1, kLargeGpu).limits());
}

}  // namespace
}  // namespace gpuctl::sched::group_limits_test
