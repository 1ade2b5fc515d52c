#include "gpuctl/line/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "ipc/codec.h"
#include "ipc/message.h"

namespace gpuctl::cli {
namespace {

/// The settings that assignments make, as JSON text, or the error.
std::string set(const std::vector<std::string>& assignments) {
  ipc::SliceSettings settings;
  for (const std::string& assignment : assignments)
    if (const auto applied = apply_assignment(assignment, settings); !applied) {
      EXPECT_EQ(applied.error().exit_status, kExitUsage);
      EXPECT_EQ(applied.error().message.find('\n'), std::string::npos);
      return applied.error().message;
    }
  return ipc::to_text(ipc::to_json(settings));
}

TEST(Settings, EveryKey) {
  EXPECT_EQ(
      set({"reserve=8", "reserve-mode=strict", "reserve-hold=50ms", "max=40", "weight=50", "priority=-3",
           "isolation=isolated", "memory-max=16G", "latency=1.3x", "policy=share", "frozen=yes", "owner=0:0"}),
      R"({"reserve":8,"reserve_mode":"strict","reserve_hold_ms":50,"max":40,"weight":50,"priority":-3,"isolation":"isolated",)"
      R"("memory_max":17179869184,"latency":"1.3x","policy":"share","frozen":"yes","owner_uid":0,"owner_gid":0})");
}

TEST(Settings, NoneLiftsALimit) {
  EXPECT_EQ(set({"max=none", "memory-max=none"}), R"({"max_unlimited":true,"memory_unlimited":true})");
  EXPECT_EQ(set({"max=unlimited", "memory-max=unlimited"}), R"({"max_unlimited":true,"memory_unlimited":true})");
  EXPECT_EQ(set({"max=0", "memory-max=0"}), R"({"max":0,"memory_max":0})");
  EXPECT_EQ(set({"reserve-hold=1.001s"}), R"({"reserve_hold_ms":1001})");
  EXPECT_EQ(set({"memory_max=1K", "reserve_mode=strict"}), R"({"reserve_mode":"strict","memory_max":1024})");
}

TEST(Settings, ErrorsNameTheKeyAndWhatWouldBeRight) {
  EXPECT_EQ(set({"max"}), "'max' is not KEY=VALUE; write for example max=40");
  EXPECT_EQ(set({"=3"}), "'=3' is not KEY=VALUE; write for example max=40");
  EXPECT_EQ(set({"wieght=3"}), "there is no setting 'wieght'; did you mean 'weight'?");
  EXPECT_EQ(set({"qqqqqq=3"}), "there is no setting 'qqqqqq'; gpuctl set --help lists them");
  EXPECT_EQ(set({"max=4x"}), "max: '4x' is not a number of SMs; give a whole number such as 8, or 'none' for no limit");
  EXPECT_EQ(set({"max=-1"}), "max: '-1' is not a number of SMs; give a whole number such as 8, or 'none' for no limit");
  EXPECT_EQ(set({"reserve=none"}), R"({"reserve":0})");
  EXPECT_EQ(set({"reserve="}), "reserve: '' is not a number of SMs; give a whole number such as 8");
  EXPECT_EQ(set({"weight=0"}), "weight: '0' is not a whole number of 1 or more such as 50");
  EXPECT_EQ(set({"priority=high"}), "priority: 'high' is not a whole number such as 10");
  EXPECT_EQ(set({"memory-max=lots"}),
            "memory-max: 'lots' is not a size; give bytes or a number with K, M, G or T such as 16G, or 'none'");
  EXPECT_EQ(set({"reserve-mode=lent"}), "reserve-mode: 'lent' is not one of strict|active");
  EXPECT_EQ(set({"reserve-mode=activ"}), "reserve-mode: 'activ' is not one of strict|active; did you mean 'active'?");
  EXPECT_EQ(set({"reserve-mode=lend"}),
            "reserve-mode: lend is no more; active with a reserve_hold of 1 ms took its place");
  EXPECT_EQ(set({"isolation=sometimes"}), "isolation: 'sometimes' is not one of auto|shared|isolated");
  EXPECT_EQ(set({"latency=5"}),
            "latency: '5' is not a target; give a time from 10us to 3600s such as 5ms, a multiple from 1x to 1000x "
            "such as 1.3x, or none");
  for (const char* value : {"100", "soon", "", "1.5ms", "-1s"})
    EXPECT_EQ(set({std::string("reserve-hold=") + value}),
              "reserve-hold: '" + std::string(value) +
                  "' is not a time; give whole milliseconds or seconds such as 100ms or 2s");
  EXPECT_EQ(set({"reserve-hold=0s"}), "reserve-hold: '0s' is not between 1ms and 3600s");
  EXPECT_EQ(set({"reserve-hold=3601s"}), "reserve-hold: '3601s' is not between 1ms and 3600s");
  EXPECT_EQ(set({"reserve-hold=1s", "reserve_hold=2s"}), "reserve-hold: is given twice; give it once");
  EXPECT_EQ(set({"owner=no-such-user"}), "owner: there is no user 'no-such-user'; give a user's name or number");
  EXPECT_EQ(set({"owner=0:no-such-group"}), "owner: there is no group 'no-such-group'; give a group's name or number");
  EXPECT_EQ(set({"owner=:0"}), "owner: ':0' names no user; give USER or USER:GROUP");
  EXPECT_EQ(set({"owner=-1"}), "owner: there is no user '-1'; give a user's name or number");
  EXPECT_EQ(set({"max=4", "max=none"}), "max: is given twice; give it once");
}

TEST(Settings, OwnersByNameAndNumber) {
  EXPECT_EQ(set({"owner=root"}), R"({"owner_uid":0,"owner_gid":0})");
  EXPECT_EQ(set({"owner=4000000000"}), R"({"owner_uid":4000000000,"owner_gid":-1})");
  EXPECT_EQ(set({"owner=4000000000:root"}), R"({"owner_uid":4000000000,"owner_gid":0})");
  EXPECT_EQ(user_name(0), "root");
  EXPECT_EQ(user_name(4000000000), "4000000000");
  EXPECT_EQ(group_name(ipc::kNoGroup), "-");
  EXPECT_EQ(group_name(0xffffffff), "-");
}

TEST(Settings, SlicePaths) {
  EXPECT_EQ(*slice_path("ls"), "ls");
  EXPECT_EQ(*slice_path("/batch/train/"), "batch/train");
  EXPECT_EQ(*slice_path("/"), "/");
  EXPECT_EQ(*slice_path("//"), "/");
  EXPECT_FALSE(slice_path(""));
}

}  // namespace
}  // namespace gpuctl::cli
