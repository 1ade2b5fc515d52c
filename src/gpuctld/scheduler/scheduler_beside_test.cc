// Programs that share each SM have more than the GPU together, as far as an SM suffices for their workers.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_job.h"

namespace gpuctl::daemon {
namespace {

/// An SM holds four workers of the first kernel, by shared memory, and eight of the second, by warps.
constexpr ipc::WorkerNeeds kMemory{32, 16, 4, 0, 48 * 1024}, kThreads{256, 32, 8, 0, 0};
constexpr DaemonOptions kByCapacity{.always_preemptible = true, .placement = Placement::capacity};

Gpu h100() {
  Gpu gpu = daemon::gpu(132);
  gpu.software = false;
  gpu.compute_capability = "9.0";
  return gpu;
}

/// "a" and "b", with nothing set.
sched::SliceTree two(const std::string& policy = "share") {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  for (const char* path : {"a", "b"}) EXPECT_TRUE(tree.create(path, {}, kRoot));
  return tree;
}

void tell(FakeProgram& program, const ipc::WorkerNeeds& needs) {
  ipc::Needs& page = ipc::needs_at(*program.stub.get(), 0);
  page.kinds[0] = needs;
  ipc::store(page.count, 1u);
}

struct Two {
  explicit Two(const std::string& policy = "share", const DaemonOptions& options = kByCapacity)
      : scheduler({h100()}, two(policy), options), a(scheduler, "a"), b(scheduler, "b") {
    b.kernel = 8;
    a.head(1, 13200);
    b.head(1, 13200);
    tell(a, kMemory);
    tell(b, kThreads);
    settle(scheduler, {&a, &b}, 1 * kMs);
  }
  std::pair<std::uint32_t, std::uint32_t> granted() const { return {a.granted(), b.granted()}; }

  Scheduler scheduler;
  FakeJob a, b;
};

using Grants = std::pair<std::uint32_t, std::uint32_t>;

/// Whether the client's page says that its kernels share each SM.
bool shares(const FakeProgram& program) {
  return program.mode() == ipc::Mode::capacity;
}

TEST(Placement, SaysWhetherProgramsShareEachSm) {
  Scheduler scheduler({h100()}, ls_and_batch(sched::ReserveMode::strict), kByCapacity);
  FakeProgram batch(scheduler, "batch");
  EXPECT_TRUE(shares(batch));
  EXPECT_EQ(batch.granted(), 124u) << "amounts stay as they are";
  scheduler.set_time_sliced(true, 2);
  EXPECT_FALSE(shares(batch)) << "programs are never on the GPU together";
  scheduler.set_time_sliced(false, 3);
  EXPECT_TRUE(shares(batch));
  scheduler.set_options({}, 4);
  EXPECT_FALSE(shares(batch));
}

TEST(Placement, StaysByCapacityInAStorm) {
  Scheduler scheduler({h100()}, ls_and_batch(sched::ReserveMode::strict), kByCapacity);
  FakeProgram batch(scheduler, "batch");
  batch.demand(132);
  Random random(1);
  scheduler.storm(random, 2);
  EXPECT_TRUE(shares(batch));
}

TEST(Placement, IsByCapacityByDefaultUnderAPolicyThatIsBetterSo) {
  Scheduler scheduler({h100()}, two("sim"));
  FakeProgram program(scheduler, "a");
  EXPECT_TRUE(shares(program));
  scheduler.set_options({.placement = Placement::sms}, 2);
  EXPECT_FALSE(shares(program));
  scheduler.set_all(scheduler.tree(), {}, true, 3);
  EXPECT_FALSE(shares(program)) << "programs are never on the GPU together";
  scheduler.set_time_sliced(false, 4);
  EXPECT_TRUE(shares(program));
  scheduler.set_tree(two("srt"), 5);
  EXPECT_FALSE(shares(program));
}

TEST(Beside, WhatFitsOnAnSmIsGranted) {
  Two two;
  EXPECT_EQ(two.granted(), (Grants{132, 115}));
  tell(two.a, kThreads);
  settle(two.scheduler, {&two.a, &two.b}, 2 * kMs);
  EXPECT_EQ(two.granted(), (Grants{66, 66}));
  tell(two.a, {32, 16, 3, 0, 48 * 1024});
  settle(two.scheduler, {&two.a, &two.b}, 3 * kMs);
  EXPECT_EQ(two.granted(), (Grants{66, 66})) << "an SM would hold four, so something that counts was not told";
  EXPECT_EQ(Two("share", {.always_preemptible = true}).granted(), (Grants{66, 66})) << "whole SMs";
}

TEST(Beside, AKernelThatTakesMoreHasItWhenTheOthersHaveLeft) {
  Two two;
  tell(two.a, kThreads);
  two.scheduler.update(2 * kMs);
  EXPECT_EQ(two.granted(), (Grants{66, 66}));
  two.a.apply();  // the second one may still use 115
  two.a.demand(132);
  tell(two.b, kMemory);
  two.scheduler.update(2 * kMs + 1000);
  EXPECT_EQ(two.a.decided(), 115u);
  EXPECT_EQ(two.a.granted(), 115u) << "a worker more or less of the other kernel does not matter to it";
}

TEST(Beside, UnderSimToo) {
  Two two("sim:refine_ms=0:floor=0");
  const auto [a, b] = two.granted();
  EXPECT_GT(a + b, 132u);
  EXPECT_EQ(a, 132u);
  EXPECT_EQ(b, 115u);
}

}  // namespace
}  // namespace gpuctl::daemon
