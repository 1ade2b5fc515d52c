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
    found.push_back(group + " " + (of.slice.empty() ? "-" : of.slice) + " " + std::to_string(of.programs));
  return found;
}

using Groups = std::vector<std::string>;

TEST(GroupLimits, AUnitOrACgroupThatTheSliceNames) {
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", "cgroup:/ml.slice"}}, {{"/system.slice/x.service", "a"},
                                                                          {"/system.slice/x.service/sub", "a"},
                                                                          {"/ml.slice/job.scope", "b"},
                                                                          {"/system.slice/y.service", "/"}}),
            (Groups{"/ml.slice b 1", "/system.slice/x.service a 2"}));
  EXPECT_EQ(groups({{"a", "unit:x.service,cgroup:/x.service"}}, {{"/x.service", "a"}}), Groups{"/x.service a 1"});
}

TEST(GroupLimits, NotWhatHasTheNameOfTheUnitElsewhere) {
  EXPECT_EQ(groups({{"a", "unit:x.service"}}, {{"/user.slice/user-7.slice/user@7.service/x.service", "a"},
                                               {"/user.slice/user@7.service/app.slice/x.service", "a"},
                                               {"/system.slice/y.service/x.service", "a"},
                                               {"/machine.slice/m.scope/system.slice/x.service", "a"}}),
            Groups());
}

TEST(GroupLimits, NotWhereNoneIsNamed) {
  EXPECT_EQ(groups({{"a", "user:1000"}}, {{"/user.slice/user-1000.slice/session-1.scope", "a"}}), Groups());
  EXPECT_EQ(groups({{"a", "unit:x.service"}}, {{"", "a"}, {"x.service", "a"}, {"/", "a"}}), Groups());
  EXPECT_EQ(groups({{"a", ""}}, {{"/user.slice/user@7.service/app.slice/gpuctl-run-12-0a1b2c3d.scope", "a"}}),
            Groups());
}

TEST(GroupLimits, AreOfNoSliceWhereAProgramOfAnotherOneIs) {
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "a"}, {"/x.service/sub", "b"}}),
            Groups{"/x.service - 2"});
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "b"}}), Groups{"/x.service - 1"}) << "moved";
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"b", ""}}, {{"/x.service", "a"}, {"/x.service.d", "b"}}),
            Groups{"/x.service a 1"});
}

TEST(GroupLimits, SlicesBelowItsOwnHaveItsLimitToo) {
  EXPECT_EQ(groups({{"a", "unit:x.service"}, {"a/b", ""}}, {{"/x.service", "a/b"}, {"/x.service", "a"}}),
            Groups{"/x.service a 2"});
  EXPECT_EQ(groups({{"a", "cgroup:/x.slice"}, {"a/b", "unit:y.service"}}, {{"/x.slice/y.service", "a/b"}}),
            (Groups{"/x.slice a 1", "/x.slice/y.service a/b 1"}));
  EXPECT_EQ(groups({{"a", "cgroup:/x.service"}, {"a/b", "unit:x.service"}}, {{"/x.service", "a/b"}}),
            Groups{"/x.service a/b 1"});
}

/// With 2 GiB for what a program takes uncounted.
const GpuSize kLargeGpu{.sms = CapSM{128}, .memory = 140 * kGroupGiB};

TEST(GroupLimits, LeaveRoomForWhatTheLibraryDoesNotCount) {
  for (const auto& [programs, gib] : {std::pair{0, 18}, {1, 20}, {2, 24}, {3, 24}, {4, 32}, {7, 32}})
    EXPECT_EQ(driver_limit(16 * kGroupGiB, static_cast<std::size_t>(programs), kLargeGpu),
              static_cast<std::uint64_t>(gib) * kGroupGiB)
        << programs;
}

TEST(GroupLimits, AreNoneWhereTheGpuIsNoLarger) {
  EXPECT_EQ(driver_limit({}, 1, kLargeGpu), kNoDriverLimit);
  EXPECT_EQ(driver_limit(140 * kGroupGiB, 1, kLargeGpu), kNoDriverLimit);
  EXPECT_EQ(driver_limit(136 * kGroupGiB, 1, kLargeGpu), kNoDriverLimit);
  EXPECT_EQ(driver_limit(136 * kGroupGiB - 1, 1, kLargeGpu), 140 * kGroupGiB - 1);
  EXPECT_EQ(driver_limit(kNoDriverLimit, 1, kLargeGpu), kNoDriverLimit);
}

}  // namespace
}  // namespace gpuctl::sched::group_limits_test
