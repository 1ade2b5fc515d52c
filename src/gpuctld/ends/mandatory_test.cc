#include "gpuctld/ends/mandatory.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kToldNs = 7'000'000'000, kDueNs = kToldNs + 10'000'000'000;

TEST(Mandatory, AProgramIsEndedOnceItWasToldOfForLongEnough) {
  Unmanaged program{.user = {.pid = 4, .driver = true}, .told_ns = kToldNs, .mandatory = "user:*"};
  EXPECT_EQ(next_step(program, kToldNs), UnmanagedStep::wait);
  EXPECT_EQ(next_step(program, kDueNs - 1), UnmanagedStep::wait);
  EXPECT_EQ(next_step(program, kDueNs), UnmanagedStep::end);
  program.ended = true;
  EXPECT_EQ(next_step(program, kDueNs), UnmanagedStep::leave) << "one that cannot end is not ended again and again";
}

TEST(Mandatory, WhoIsNotNamedOrMayHaveInheritedTheDeviceIsLeft) {
  const Unmanaged free{.user = {.pid = 4, .driver = true}, .told_ns = kToldNs};
  EXPECT_EQ(next_step(free, kDueNs), UnmanagedStep::leave);
  const Unmanaged child{.user = {.pid = 4, .driver = false}, .told_ns = kToldNs, .mandatory = "user:*"};
  EXPECT_EQ(next_step(child, kDueNs), UnmanagedStep::leave);
}

}  // namespace
}  // namespace gpuctl::daemon
