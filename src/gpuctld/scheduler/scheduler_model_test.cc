// Random worlds of slices and programs, with more work than SMs as a rule, beside a small model of what the documents
// promise: bounds hold at every moment, and what must not matter does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "gpuctld/testing/obedient.h"
#include "sched/testing/random_slices.h"

namespace gpuctl::daemon::model_test {
namespace {

using sched::CapSM;

constexpr std::uint32_t kSms = 8;

struct Case {
  sched::SliceTree tree{CapSM{kSms}, 0};
  std::vector<std::pair<std::string, std::uint32_t>> programs;  ///< slice, what it wants
};

Case random_case(Random& random) {
  const auto below = [&](std::uint64_t n) { return random.below(n); };
  const auto settings = [&] {
    sched::SliceChange change{.weight = 1 + static_cast<std::uint32_t>(below(500))};
    if (below(3) == 0) change.max = static_cast<std::uint32_t>(below(kSms + 1));
    if (below(3) == 0) change.reserve = static_cast<std::uint32_t>(below(kSms / 2));
    change.reserve_mode = below(2) == 0 ? "strict" : "active";
    change.reserve_hold_ms = 1 + *change.weight % 20;
    return change;
  };
  Case made;
  add_random_slices(made.tree, "/", 1 + below(7), kRoot, below, settings);
  std::vector<std::string> paths;
  for (const auto& [path, slice] : made.tree.slices()) paths.push_back(path);
  for (std::uint64_t count = 1 + below(14); count > 0; --count)
    made.programs.emplace_back(paths[below(paths.size())],
                               static_cast<std::uint32_t>(below(4) == 0 ? 0 : 1 + below(kSms)));
  return made;
}

/// Nothing beyond the device, beyond a max, or of a strict reserve of others; and nobody on another's SMs.
void check(const World& world, std::uint64_t seed) {
  const auto& slices = world.scheduler.tree().slices();
  const std::vector<sched::Effective>& effective = world.scheduler.effective();
  const auto used = [&](const auto& counts) {
    std::uint32_t sum = 0;
    for (const Obedient& one : world.programs)
      if (counts(one.program.client->slice())) sum += one.uses();
    return sum;
  };
  ASSERT_LE(used([](const std::string&) { return true; }), kSms) << seed;
  for (auto bounds = effective.begin(); const auto& [path, slice] : slices) {
    const sched::Effective& own = *bounds++;
    ASSERT_LE(used([&](const std::string& of) { return sched::in_or_below(of, path); }), own.max.count) << seed << path;
    if (path != "/" && own.reserve_mode == sched::ReserveMode::strict && own.reserve > CapSM{})
      ASSERT_LE(used([&](const std::string& of) { return !sched::in_or_below(of, path); }), kSms - own.reserve.count)
          << seed << path;
  }
  std::set<std::uint32_t> taken;
  for (const Obedient& one : world.programs)
    for (std::uint32_t i = 0; i < one.uses(); ++i)
      ASSERT_TRUE(taken.insert(one.program.stub->grant[0].first + i).second) << seed;
}

TEST(SchedulerModel, BoundsHoldAtEveryMoment) {
  int waited = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Case made = random_case(random);
    World world(made.tree, kSms);
    for (const auto& [slice, wants] : made.programs) world.add(slice, wants);
    for (int step = 0; step < 25; ++step) {
      if (random.below(4) == 0 && world.programs.size() > 1) {
        world.scheduler.remove(*world.programs.front().program.client, world.now);
        world.programs.pop_front();
      } else if (random.below(4) == 0) {
        world.add(world.programs.front().program.client->slice(), kSms);
      } else if (random.below(4) == 0) {
        sched::SliceTree tree = world.scheduler.tree();
        const auto& [path, slice] = *tree.slices().rbegin();
        if (tree.change(std::string(path), {.max = static_cast<std::uint32_t>(random.below(kSms + 1))}, kRoot))
          world.scheduler.set_tree(tree, world.now);
      }
      for (Obedient& one : world.programs)
        if (random.below(3) == 0) world.want(one, static_cast<std::uint32_t>(random.below(kSms + 1)));
      // A program has left what it is told to leave when it says so, a millisecond later.
      world.pass(3);
      world.pass(30, [&] { check(world, seed); });
      for (const Obedient& one : world.programs) waited += one.longest_wait > 20;
    }
  }
  EXPECT_GT(waited, 100) << "SMs were not scarce";
}

/// Who may have SMs has its turn; who may have none never has one and makes nobody move.
TEST(SchedulerModel, WhoMayHaveSmsHasThem) {
  int scarce = 0, never = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random(seed);
    const Case made = random_case(random);
    World world(made.tree, kSms);
    for (const auto& [slice, wants] : made.programs) world.add(slice, wants);
    world.pass(50);
    world.forget();
    world.pass(3'000);
    bool moves = false, waits = false;
    for (const Obedient& one : world.programs) {
      moves |= one.program.epoch() != one.epoch;
      waits |= one.had > 0 && one.longest_wait > 0;
      never += one.wants > 0 && one.had == 0;
    }
    EXPECT_LE(moves, waits) << seed << ": grants change only where somebody has turns";
    scarce += waits;
    // Where a slice had two turns for each of its programs with work, each of these had one.
    std::map<std::string, std::pair<double, int>> had;
    for (const Obedient& one : world.programs)
      if (one.wants > 0) had[one.program.client->slice()].first += one.had, ++had[one.program.client->slice()].second;
    for (const Obedient& one : world.programs) {
      const auto [sum, programs] = had[one.program.client->slice()];
      if (one.wants > 0 && sum > 2 * 25 * programs) {
        EXPECT_GT(one.had, 0) << seed << ": of the programs of " << one.program.client->slice();
      }
    }
  }
  EXPECT_GT(scarce, 30);
  EXPECT_GT(never, 10) << "no slice was suspended or squeezed out";
}

/// What each slice has over three seconds, in SMs.
std::map<std::string, double> had_by_slice(const Case& made) {
  World world(made.tree, kSms);
  for (const auto& [slice, wants] : made.programs) world.add(slice, wants);
  world.pass(50);
  world.forget();
  world.pass(3'000);
  std::map<std::string, double> had;
  for (const Obedient& one : world.programs)
    if (one.wants > 0) had[one.program.client->slice()] += one.had / 3'000;
  return had;
}

TEST(SchedulerModel, WhatMustNotMatterDoesNot) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Case made = random_case(random);
    const auto expected = had_by_slice(made);
    const auto same = [&](const char* what, const Case& other) {
      for (const auto& [slice, had] : had_by_slice(other)) {
        ASSERT_NEAR(had, expected.at(slice), 0.05) << "seed " << seed << ": " << what << ", " << slice;
        ++compared;
      }
    };
    Case idle = made;
    idle.programs.insert(idle.programs.begin() + static_cast<std::ptrdiff_t>(random.below(made.programs.size() + 1)),
                         {made.programs[random.below(made.programs.size())].first, 0});
    same("an idle program", idle);
    Case empty = made;
    ASSERT_TRUE(empty.tree.create(random.below(2) == 0 ? "a-first" : "z-last", {.weight = 7777}, kRoot));
    same("an empty slice", empty);
    Case order = made;
    std::reverse(order.programs.begin(), order.programs.end());
    same("the order of attachment", order);
  }
  EXPECT_GT(compared, 300);
}

}  // namespace
}  // namespace gpuctl::daemon::model_test
