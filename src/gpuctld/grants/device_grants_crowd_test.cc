// Many clients over a long time: no SM is granted twice, and each client is served.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// On 24 SMs: clients come, go, change their demand, and are slow to leave what was taken from them.
class Crowd {
 public:
  struct Slow {
    FakeProgram program;
    std::string slice;
    std::uint32_t uses = 0;  ///< the most it was granted since it last left what was taken from it
    std::uint32_t may_use() const { return std::max(uses, program.granted()); }
  };

  /// `many_in_a`: clients come to "a", which has a reserve, too. Each of them may start in what is kept for it.
  Crowd(const char* reserve_mode, bool many_in_a)
      : scheduler({gpu(24)},
                  [&] {
                    sched::SliceTree tree(sched::CapSM{24}, 0);
                    EXPECT_TRUE(tree.create(
                        "a", {.reserve = 6, .reserve_mode = reserve_mode, .reserve_hold_ms = 1, .max = 6}, kRoot));
                    EXPECT_TRUE(tree.create("b", {.weight = 300}, kRoot));
                    return tree;
                  }(),
                  {.evict_deadline = std::chrono::hours(1), .longest_block_task = std::chrono::hours(1)}),
        many_in_a_(many_in_a) {
    // Each slice has a client at all times. Their weights differ, so all clients obey.
    for (const char* slice : {"a", "b"}) clients.push_back({FakeProgram(scheduler, slice), slice});
  }

  void step(std::uint64_t now_ns) {
    const char* const slices[] = {"b", "/", "a"};
    if (clients.size() < 5 && number(20) == 0) {
      const char* slice = slices[number(many_in_a_ ? 2 : 1)];
      clients.push_back({FakeProgram(scheduler, slice), slice});
    } else if (!clients.empty()) {
      const auto at = clients.begin() + number(static_cast<std::uint32_t>(clients.size() - 1));
      if (number(100) == 0 && at - clients.begin() >= 2) {
        scheduler.remove(*at->program.client, now_ns);
        clients.erase(at);
      } else if (number(2) == 0) {
        at->program.demand(number(1) * number(30));
      }
    }
    // A client runs on what it is granted when it has work, stays there a while, and says when it has left.
    for (Slow& client : clients) {
      const bool busy = ipc::load(client.program.stub->usage[0].demand) != 0;
      client.uses = busy ? client.may_use() : 0;
      if (!busy || number(5) != 0) continue;
      client.uses = client.program.granted();
      client.program.apply();
    }
    scheduler.update(now_ns);
  }

  std::uint32_t number(std::uint32_t most) {
    return static_cast<std::uint32_t>(random_.below(most + std::uint64_t{1}));
  }

  Scheduler scheduler;
  std::vector<Slow> clients;

 private:
  bool many_in_a_;
  Random random_{3};
};

TEST(ManyClients, NoSmIsEverInTwoHands) {
  Crowd crowd("active", false);
  std::uint32_t waits = 0;
  std::set<std::uint32_t> at_rest;  // what "a" has while it has no work
  for (std::uint64_t now = kMs; now < 5000 * kMs; now += kMs / 4) {
    crowd.step(now);
    std::uint32_t used = 0, counted = 0;
    for (const Crowd::Slow& client : crowd.clients) {
      used += client.may_use();
      const Client::Slot& slot = client.program.client->slots()[0];
      counted += slot.busy() ? slot.may_use() : slot.written;
    }
    ASSERT_LE(used, 24u) << "at " << now;
    const FakeProgram& in_a = crowd.clients[0].program;
    if (ipc::load(in_a.stub->usage[0].demand) == 0) at_rest.insert(in_a.granted());
    if (!crowd.scheduler.waiting()) continue;
    ASSERT_EQ(counted, 24u) << "somebody waits for nothing at " << now;
    ++waits;
  }
  EXPECT_GT(waits, 1000u);
  EXPECT_TRUE(at_rest.contains(0) && at_rest.contains(6)) << "the reserve is lent and kept";
}

TEST(ManyClients, WhatASliceSharesAtRestIsItsOwnAffair) {
  Crowd crowd("strict", true);
  std::uint32_t waits = 0, shared = 0;
  for (std::uint64_t now = 1; now < 20000; ++now) {
    crowd.step(now);
    std::uint32_t others = 0, reserve = 0;
    for (const Crowd::Slow& client : crowd.clients) {
      (client.slice == "a" ? reserve : others) += client.may_use();
      ASSERT_LE(client.slice == "a" ? client.may_use() : 0, 6u) << "at " << now;
    }
    ASSERT_LE(others, 18u) << "at " << now;
    shared += reserve > 6;
    waits += crowd.scheduler.waiting();
  }
  EXPECT_GT(waits, 1000u);
  EXPECT_GT(shared, 1000u);
}

TEST(ManyClients, ATurnIsNotOverBeforeTheHandover) {
  Scheduler scheduler({gpu(2)}, sched::SliceTree(sched::CapSM{2}, 0));
  std::vector<FakeProgram> programs;
  for (int i = 0; i < 5; ++i) programs.emplace_back(scheduler, "/").demand(2);
  std::vector<std::uint64_t> served_ms(programs.size(), 0), changed_ms(programs.size(), 0);
  std::vector<std::uint32_t> epochs(programs.size(), 0);
  for (std::uint64_t ms = 1; ms <= 3000; ++ms) {
    scheduler.update(ms * kMs);
    for (std::size_t i = 0; i < programs.size(); ++i) {
      if (std::exchange(epochs[i], programs[i].epoch()) != programs[i].epoch()) changed_ms[i] = ms;
      if (ms - changed_ms[i] >= 30) programs[i].apply();  // its block-tasks are longer than a turn
      served_ms[i] += programs[i].granted();
    }
  }
  for (const std::uint64_t served : served_ms) EXPECT_GT(served, 300u);
}

}  // namespace
}  // namespace gpuctl::daemon
