// In which clients workers end (ipc::kWorkersEnd).
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

sched::SliceTree two_levels() {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.create("high", {.priority = 10}, kRoot));
  EXPECT_TRUE(tree.create("low", {}, kRoot));
  return tree;
}

/// Microseconds; 0: workers do not end.
std::uint32_t worker_time(const FakeProgram& program, std::size_t slot = 0) {
  if ((ipc::load(program.stub->grant[slot].flags) & ipc::kWorkersEnd) == 0) return 0;
  return ipc::load(program.stub->worker_time_us);
}

Conditions ends_after(std::int64_t us, bool always = false) {
  return {.worker_time = std::chrono::microseconds(us), .always_end_workers = always};
}

TEST(WorkerTime, IsThatOfClientsThatOthersOutrank) {
  Scheduler scheduler({gpu(132)}, two_levels(), ends_after(200));
  FakeProgram low(scheduler, "low"), equal(scheduler, "low");
  EXPECT_EQ(worker_time(low), 0u);  // a slice without a client outranks nobody
  {
    FakeProgram high(scheduler, "high");
    EXPECT_EQ(worker_time(low), 200u);
    EXPECT_EQ(worker_time(equal), 200u);
    EXPECT_EQ(worker_time(high), 0u);
    scheduler.remove(*high.client, 2);
  }
  EXPECT_EQ(worker_time(low), 0u);
}

TEST(WorkerTime, IsThatOfTheDeviceOnWhichTheyDo) {
  Scheduler scheduler({gpu(132), gpu(132, 1)}, two_levels(), ends_after(200));
  FakeProgram low(scheduler, "low", {0, 1}), high(scheduler, "high", {1});
  EXPECT_EQ(worker_time(low, 0), 0u);
  EXPECT_EQ(worker_time(low, 1), 200u);
}

TEST(WorkerTime, IsThatOfAllIfTheAdministratorWantsIt) {
  Scheduler scheduler({gpu(132)}, two_levels(), ends_after(100, true));
  FakeProgram high(scheduler, "high");
  EXPECT_EQ(worker_time(high), 100u);
}

TEST(WorkerTime, FollowsTheConfiguration) {
  Scheduler scheduler({gpu(132)}, two_levels());
  FakeProgram low(scheduler, "low"), high(scheduler, "high");
  EXPECT_EQ(worker_time(low), 0u);
  for (const std::int64_t us : {200, 50, 0}) {
    scheduler.set_conditions(ends_after(us), 2);
    EXPECT_EQ(worker_time(low), us);
  }
}

}  // namespace
}  // namespace gpuctl::daemon
