// For tests of the scheduler: a client as the scheduler sees it, with the program's own view of the stub page.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gpuctld/scheduler/scheduler.h"
#include "ipc/stub_map.h"

namespace gpuctl::daemon {

inline constexpr sched::Caller kRoot{0, {}};

inline Gpu gpu(std::uint32_t sms, int index = 0) {
  return {index, "Test GPU", "GPU-" + std::to_string(index), true, sms, 1u << 30};
}

/// 132 SMs: "ls" with a reserve of 8, and "batch" with a lower priority.
inline sched::SliceTree ls_and_batch(sched::ReserveMode mode, std::int64_t hold_ms = sched::kReserveHold.count()) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  EXPECT_TRUE(tree.create(
      "ls", {.reserve = 8, .reserve_mode = std::string(sched::mode_name(mode)), .reserve_hold_ms = hold_ms}, kRoot));
  EXPECT_TRUE(tree.create("batch", {.weight = 101, .priority = -5}, kRoot));  // another weight, so that both obey
  return tree;
}

/// The same: the reserve is lent while "ls" does nothing, from a millisecond after its last work on.
inline sched::SliceTree briefly_held_ls_and_batch() {
  return ls_and_batch(sched::ReserveMode::active, 1);
}

struct FakeProgram {
  FakeProgram(Scheduler& scheduler, const std::string& slice, std::vector<int> devices = {0})
      : FakeProgram(scheduler.add(make(slice, std::move(devices)), 1)) {}
  explicit FakeProgram(Client& added) : client(&added), stub(ipc::StubMap::map(client->memfd()).value()) {}

  static Client make(const std::string& slice, std::vector<int> devices) {
    return std::move(Client::create({4711, 1000, "program"}, slice, std::move(devices)).value());
  }
  std::uint32_t granted(std::size_t slot = 0) const { return ipc::load(stub->grant[slot].polled.capsm); }
  std::uint32_t decided() const { return client->slots()[0].decided; }
  std::uint32_t idle(std::size_t slot = 0) const { return ipc::load(stub->grant[slot].idle); }
  std::uint32_t guaranteed(std::size_t slot = 0) const { return ipc::load(stub->guaranteed_sms[slot]); }
  bool memory_limited() const { return (ipc::load(stub->grant[0].flags) & ipc::kMemoryLimited) != 0; }
  bool alone(std::size_t slot = 0) const { return (ipc::load(stub->grant[slot].flags) & ipc::kAlone) != 0; }
  bool settled() const { return (ipc::load(stub->grant[0].flags) & ipc::kSettled) != 0; }
  ipc::Mode mode() const { return ipc::mode_of(ipc::load(stub->grant[0].flags)); }
  std::uint32_t epoch(std::size_t slot = 0) const { return ipc::load(stub->grant[slot].epoch); }
  void demand(std::uint32_t sms, std::size_t slot = 0) { ipc::store(stub->usage[slot].demand, sms); }
  /// Launches that ended before their demand was read.
  void launch(std::uint64_t count = 1, std::size_t slot = 0) {
    ipc::store(stub->usage[slot].launches, ipc::load(stub->usage[slot].launches) + count);
  }
  /// Says that it uses no more than its grant.
  void apply() { ipc::store(stub->usage[0].applied_epoch, epoch()); }

  Client* client;
  ipc::StubMap stub;
};

/// Nothing is in force for it.
inline bool is_free(const FakeProgram& program) {
  return program.mode() == ipc::Mode::free;
}

}  // namespace gpuctl::daemon
