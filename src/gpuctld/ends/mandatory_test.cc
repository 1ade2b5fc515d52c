#include "gpuctld/ends/mandatory.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kSinceNs = 7'000'000'000, kDueNs = kSinceNs + 10'000'000'000;

TEST(Mandatory, AProgramIsEndedOnceItWasToldOfForLongEnough) {
  Unmanaged program{.user = {.pid = 4, .driver = true}, .since_ns = kSinceNs, .mandatory = "user:*"};
  EXPECT_EQ(next_step(program, kSinceNs), UnmanagedStep::wait);
  EXPECT_EQ(next_step(program, kDueNs - 1), UnmanagedStep::wait);
  EXPECT_EQ(next_step(program, kDueNs), UnmanagedStep::end);
  program.ended = true;
  EXPECT_EQ(next_step(program, kDueNs), UnmanagedStep::leave) << "one that cannot end is not ended again and again";
}

TEST(Mandatory, WhoIsNotNamedOrMayHaveInheritedTheDeviceIsLeft) {
  const Unmanaged free{.user = {.pid = 4, .driver = true}, .since_ns = kSinceNs};
  EXPECT_EQ(next_step(free, kDueNs), UnmanagedStep::leave);
  const Unmanaged child{.user = {.pid = 4, .driver = false}, .since_ns = kSinceNs, .mandatory = "user:*"};
  EXPECT_EQ(next_step(child, kDueNs), UnmanagedStep::leave);
}

TEST(Mandatory, WhoRenamesItselfIsStillTheOneThatWasToldOf) {
  const GpuUser user{.pid = 4, .start = 70, .uid = 7, .name = "train", .cgroup = "/x", .driver = true};
  const std::vector<Unmanaged> before{
      {.user = user, .since_ns = kSinceNs, .mandatory = "user:*", .ended = true},
      {.user = {.pid = 5, .start = 71, .uid = 7}, .since_ns = kSinceNs + 1, .mandatory = "user:*"}};
  GpuUser renamed = user;
  renamed.name = "other";
  renamed.cgroup = "/y";
  const Unmanaged program = as_seen(before, renamed);
  EXPECT_EQ(program.since_ns, kSinceNs) << "it is not told of again, and has no more time";
  EXPECT_TRUE(program.ended);
  EXPECT_EQ(program.user.name, "other");
  EXPECT_EQ(program.user.cgroup, "/y");

  GpuUser of_another = user;
  of_another.uid = 8;
  EXPECT_EQ(as_seen(before, of_another).since_ns, kSinceNs);
  EXPECT_FALSE(as_seen(before, of_another).ended);
  GpuUser later = user;  // with the same number
  later.start = 72;
  EXPECT_EQ(as_seen(before, later).since_ns, 0u);
}

}  // namespace
}  // namespace gpuctl::daemon
