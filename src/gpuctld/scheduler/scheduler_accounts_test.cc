// What programs use, as the scheduler counts it for their slices.
#include <gtest/gtest.h>

#include "base/random.h"
#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::accounts_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;  // who is silent for long has no demand

/// A program that has work or none, as its page says.
struct Program : FakeProgram {
  using FakeProgram::FakeProgram;
  ipc::LatencyCounts& bursts() { return ipc::latency_at(*stub.get(), 0); }
  void works(std::uint32_t sms) {
    demand(sms);
    bursts().open = sms > 0;
  }
  void end_burst(std::uint64_t ns) {
    works(0);
    ++bursts().bursts_ended;
    bursts().burst_ns += ns;
  }
};

double sm_s(const Accounts& accounts, const std::string& slice) {
  double all = 0;
  for (const auto& [key, used] : accounts) all += key.slice == slice ? used.sm_s : 0;
  return all;
}

struct Scene {
  explicit Scene(const sched::SliceTree& tree) : scheduler({gpu(132)}, tree) {}
  void pass(std::uint64_t ms) {
    for (std::uint64_t i = 0; i < ms; ++i) scheduler.update(now_ns += kMs);
  }
  Accounts take() { return scheduler.take_accounts(now_ns); }

  Scheduler scheduler;
  std::uint64_t now_ns = kMs;
};

sched::SliceTree slices(std::vector<std::pair<std::string, ipc::SliceSettings>> of) {
  sched::SliceTree tree(sched::CapSM{132}, 0);
  for (const auto& [path, settings] : of) EXPECT_TRUE(tree.create(path, settings, kRoot));
  return tree;
}

TEST(AccountsInScheduler, WhoWorksAloneHasAllThatItCanFill) {
  Scene scene(slices({{"a", {}}}));
  Program program(scene.scheduler, "a");
  program.works(40);
  program.launch(3);
  scene.pass(10);
  program.end_burst(10 * kMs);
  scene.pass(1);
  const Accounts accounts = scene.take();
  ASSERT_EQ(accounts.size(), 1u);
  const auto& [key, used] = *accounts.begin();
  EXPECT_EQ(key, (AccountKey{"a", 1000, "GPU-0"}));
  EXPECT_NEAR(used.sm_s, 0.4, 1e-9);
  EXPECT_NEAR(used.work_s, 0.01, 1e-9);
  EXPECT_EQ(used.waited_s, 0);
  EXPECT_EQ(used.launches, 3);
  EXPECT_EQ(used.bursts, 1);
  EXPECT_TRUE(scene.take().empty()) << "taken once";
}

TEST(AccountsInScheduler, BelowAMaxItHasThatMuchAndWaits) {
  Scene scene(slices({{"m", {.max = 33}}}));
  Program program(scene.scheduler, "m");
  program.works(132);
  scene.pass(10);
  program.end_burst(10 * kMs);
  scene.pass(1);
  const Amounts used = scene.take().begin()->second;
  EXPECT_NEAR(used.sm_s, 0.33, 1e-9);
  EXPECT_NEAR(used.waited_s, 0.01, 1e-9);
}

/// Nothing divides the SMs, by weight alone or not at all: together two programs have what the GPU has.
TEST(AccountsInScheduler, ThoseWhoWorkAtOnceShareTheGpu) {
  for (const int weight : {100, 300}) {
    Scene scene(slices({{"a", {}}, {"b", {.weight = weight}}}));
    Program a(scene.scheduler, "a"), b(scene.scheduler, "b");
    a.works(132);
    b.works(132);
    scene.pass(20);
    a.end_burst(20 * kMs);
    scene.pass(20);
    b.end_burst(40 * kMs);
    scene.pass(1);
    const Accounts accounts = scene.take();
    EXPECT_NEAR(sm_s(accounts, "a") + sm_s(accounts, "b"), 0.04 * 132, 0.04 * 132 * 0.05) << weight;
    EXPECT_GT(sm_s(accounts, "b"), sm_s(accounts, "a"));
  }
}

TEST(AccountsInScheduler, TheDeadAndTheMovedKeepWhatTheyUsed) {
  Scene scene(slices({{"a", {}}, {"b", {}}}));
  Program program(scene.scheduler, "a");
  program.works(10);
  scene.pass(10);
  program.end_burst(10 * kMs);
  scene.scheduler.move({program.client}, "b", scene.now_ns);
  program.works(10);
  scene.pass(21);                                         // seen at the first look
  scene.scheduler.remove(*program.client, scene.now_ns);  // killed in a burst
  const Accounts accounts = scene.take();
  EXPECT_NEAR(sm_s(accounts, "a"), 0.1, 1e-9);
  EXPECT_NEAR(sm_s(accounts, "b"), 0.2, 1e-9);
}

TEST(AccountsInScheduler, ABurstCountsForEachSliceInWhichItWentOn) {
  Scene scene(slices({{"a", {}}, {"b", {}}}));
  Program program(scene.scheduler, "a");
  program.works(10);
  scene.pass(11);  // seen at the first look
  scene.scheduler.move({program.client}, "b", scene.now_ns);
  scene.pass(20);
  program.end_burst(30 * kMs);
  scene.pass(1);
  const Accounts accounts = scene.take();
  EXPECT_NEAR(sm_s(accounts, "a"), 0.1, 1e-9);
  EXPECT_NEAR(sm_s(accounts, "b"), 0.2, 1e-9);
}

/// What a program of the daemon before holds until it comes back.
TEST(AccountsInScheduler, WhoComesBackKeepsTheMemoryThatItHeld) {
  Scene scene(slices({{"a", {}}}));
  constexpr std::uint64_t kHeld = 1 << 20;
  Client& stand_in = scene.scheduler.add(Program::make("a", {0}), scene.now_ns);
  stand_in.stands_in = true;
  stand_in.inherit(0, {.sms = 4, .memory = kHeld}, 4, scene.now_ns, UINT64_MAX);
  scene.pass(1);
  scene.take();
  scene.pass(100);
  scene.scheduler.replace({&stand_in}, Program::make("a", {0}), false, scene.now_ns);
  double held = 0;
  for (const auto& [key, used] : scene.take()) held += used.memory_byte_s;
  EXPECT_NEAR(held, 0.1 * kHeld, 1);
}

/// All connections of a process move at once.
TEST(AccountsInScheduler, AllWhoMoveKeepWhatTheyUsed) {
  Scene scene(slices({{"a", {}}, {"b", {}}}));
  Program one(scene.scheduler, "a"), two(scene.scheduler, "a");
  for (Program* program : {&one, &two}) program->works(10);
  scene.pass(10);
  for (Program* program : {&one, &two}) program->end_burst(10 * kMs);
  scene.scheduler.move({one.client, two.client}, "b", scene.now_ns);
  scene.pass(5);
  const Accounts accounts = scene.take();
  EXPECT_NEAR(sm_s(accounts, "a"), 0.2, 1e-9);
  EXPECT_EQ(sm_s(accounts, "b"), 0);
}

/// However programs come, work, move and go, and whenever the accounts are taken: each burst counts once.
TEST(AccountsInScheduler, NothingIsLostAndNothingCountsTwice) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Scene scene(slices({{"a", {}}, {"a/b", {}}, {"c", {.weight = 7}}, {"d", {.max = 20}}}));
    const std::vector<std::string> paths{"a", "a/b", "c", "d"};
    struct Running {
      Program program;
      std::uint64_t since_ns = 0;  ///< 0: it has no work
    };
    std::list<Running> running;
    double expected_s = 0;
    std::int64_t launches = 0, bursts = 0;
    Amounts all;
    const auto take = [&] {
      for (const auto& [key, used] : scene.take()) all += used;
    };
    const auto end_burst = [&](Running& one) {
      if (one.since_ns == 0) return;
      const std::uint64_t ns = scene.now_ns - std::exchange(one.since_ns, 0);
      one.program.end_burst(ns);
      expected_s += static_cast<double>(ns) / 1e9;
      ++bursts;
    };
    for (int step = 0; step < 400; ++step) {
      if (running.size() < 5 && random.below(5) == 0)
        running.push_back({Program(scene.scheduler.add(Program::make(paths[random.below(4)], {0}), scene.now_ns))});
      for (auto one = running.begin(); one != running.end();) {
        const std::uint64_t what = random.below(12);
        if (what == 0) {
          end_burst(*one);
          scene.scheduler.remove(*one->program.client, scene.now_ns);
          one = running.erase(one);
          continue;
        }
        if (what == 1) scene.scheduler.move({one->program.client}, paths[random.below(4)], scene.now_ns);
        if (what < 6) end_burst(*one);
        if (what >= 6 && one->since_ns == 0) {
          one->program.works(1 + static_cast<std::uint32_t>(random.below(132)));
          one->program.launch(), ++launches;
          one->since_ns = scene.now_ns;
        }
        ++one;
      }
      scene.pass(random.below(4));
      if (random.below(9) == 0) take();
    }
    for (Running& one : running) end_burst(one);
    take();
    EXPECT_NEAR(all.work_s, expected_s, 1e-6) << "seed " << seed;
    EXPECT_EQ(all.launches, launches);
    EXPECT_EQ(all.bursts, bursts);
    EXPECT_LE(all.sm_s, 132.0 * static_cast<double>(scene.now_ns) / 1e9 * 1.05);
  }
}

}  // namespace
}  // namespace gpuctl::daemon::accounts_test
