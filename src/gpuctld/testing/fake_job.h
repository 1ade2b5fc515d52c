// For tests of policies for jobs: clients that report launches.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {

inline constexpr std::uint64_t kMs = 1'000'000;

/// 132 SMs: "high" with a reserve of 8, "low", and "low/sub".
inline sched::SliceTree tree_with(const std::string& policy) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  EXPECT_TRUE(tree.create("high", {.reserve = 8, .reserve_mode = "strict", .priority = 10}, kRoot));
  EXPECT_TRUE(tree.create("low", {.weight = 200}, kRoot));
  EXPECT_TRUE(tree.create("low/sub", {.priority = 50}, kRoot));
  return tree;
}

/// A client whose oldest launch is given, or none (0).
struct FakeJob : FakeProgram {
  using FakeProgram::FakeProgram;
  void head(std::uint64_t launch, std::uint32_t blocks = 132, std::uint32_t task_us = 1000) {
    ipc::Head& head = stub->head[0];
    ipc::store(head.version, head.version + 1);
    head.launch = launch;
    head.kernel = kernel;
    head.issued_ns = launch;
    head.total = blocks;
    head.claimed = 0;
    head.threads = 256;
    head.per_sm = 1;
    head.task_ns = task_us * 1000;
    ipc::store(head.version, head.version + 1);
    demand(launch == 0 ? 0 : std::min(blocks, 132u));
  }
  std::uint64_t kernel = 7;
  std::string_view state() const { return job_state(client->slots()[0]); }
};

/// Says that a launch of the client's kernel ended.
inline void ended(FakeJob& job, std::uint64_t launch, std::uint32_t blocks, std::uint64_t start_ns,
                  std::uint64_t done_ns) {
  const std::uint32_t written = ipc::load(job.stub->records_written);
  ipc::record_at(*job.stub.get(), written) = {.kernel = job.kernel,
                                              .issued_ns = launch,
                                              .start_ns = start_ns,
                                              .done_ns = done_ns,
                                              .total = blocks,
                                              .threads = 256,
                                              .per_sm = 1};
  ipc::store(job.stub->records_written, written + 1);
}

/// Updates until every client has what was decided.
inline void settle(Scheduler& scheduler, std::initializer_list<FakeJob*> jobs, std::uint64_t now_ns) {
  for (int i = 0; i < 4; ++i) {
    for (FakeJob* job : jobs) {
      job->apply();
      ipc::store(job->stub->usage[0].holding, job->granted());
    }
    scheduler.update(now_ns + static_cast<std::uint64_t>(i));
  }
}

}  // namespace gpuctl::daemon
