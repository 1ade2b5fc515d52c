// Whatever the owner of a subtree does inside it, what others get stays within the subtree's own bounds. Checked on
// random trees: the subtree is made anew at random, and all else stays as it is.
#include <gtest/gtest.h>

#include "base/random.h"
#include "sched/effective/effective.h"
#include "sched/effective/levels.h"
#include "sched/effective/weight_parts.h"
#include "sched/testing/random_slices.h"

namespace gpuctl::sched::bounded_test {
namespace {

constexpr Caller kRoot{0, {}};
constexpr Caller kOwner{1000, {}};
constexpr CapSM kDevice{132};
constexpr const char* kPolicies[] = {"share", "hpf", "ffs"};

std::int64_t in(Random& random, std::int64_t least, std::int64_t most) {
  return least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
}

SliceChange random_settings(Random& random, int reserve) {
  SliceChange change{.reserve = in(random, 0, reserve),
                     .reserve_mode = std::string(kReserveModes[random.below(2)]),
                     .reserve_hold_ms = in(random, 1, 1000),
                     .weight = in(random, 1, 1000),
                     .priority = in(random, -100, 100)};
  if (random.below(3) == 0) change.max = in(random, 30, 150);
  if (random.below(3) == 0) change.memory_max = in(random, 0, 1000);
  return change;
}

/// A tree in which kOwner owns the slice "own", and its clients: two in each slice.
struct Case {
  SliceTree tree{kDevice, 0};

  explicit Case(std::uint64_t seed) {
    Random random(seed);
    grow(random, "/", 4, kRoot);
    SliceChange change = random_settings(random, 40);
    change.owner_uid = kOwner.uid;
    change.max_unlimited = !change.max;
    while (!tree.create("own", change, kRoot)) change.reserve = *change.reserve / 2;
    const char* policy = random.below(3) == 0 ? kPolicies[random.below(3)] : kPolicies[0];
    EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  }
  /// Makes up to `count` slices at random places below `top`.
  void grow(Random& random, const std::string& top, std::uint64_t count, const Caller& caller) {
    add_random_slices(
        tree, top, random.below(count + 1), caller, [&](std::uint64_t n) { return random.below(n); },
        [&] { return random_settings(random, 40); });
  }
  static bool is_own(const std::string& path) { return path == "own" || path.starts_with("own/"); }

  /// Two clients of each slice outside of "own" have some demand; all inside can use the whole device, and do.
  std::vector<ClientInput> clients() const {
    std::vector<ClientInput> clients;
    std::uint32_t node = 0;
    for (const auto& [path, slice] : tree.slices()) {
      const auto some = static_cast<std::uint32_t>(std::hash<std::string>{}(path) % 50);
      for (const std::uint32_t more : {0u, 7u})
        clients.push_back({.node = node, .demand = is_own(path) ? kDevice : CapSM{some + more}});
      ++node;
    }
    return clients;
  }
  /// Of each client: what `value` says, for those outside of "own".
  template <class T, class Value>
  std::vector<T> outside(const std::vector<ClientInput>& clients, Value value) const {
    std::vector<bool> own;
    for (const auto& [path, slice] : tree.slices()) own.push_back(is_own(path));
    std::vector<T> found;
    for (std::size_t c = 0; c < clients.size(); ++c)
      if (!own[clients[c].node]) found.push_back(value(c));
    return found;
  }
};

Decision decide(const Case& one, const std::vector<ClientInput>& clients) {
  std::vector<NodeInput> nodes = one.tree.nodes();
  for (NodeInput& node : nodes) node.active = node.may_keep_reserve();
  Allocator allocator;
  Decision decision;
  allocator.decide(nodes, clients, kDevice, decision);
  return decision;
}

/// Runs `check(before, after)` for many trees, `after` with another inside of "own".
template <class Check>
void for_random_trees(Check check) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    Case before(seed), after(seed);
    Random inside(seed * 977);
    before.grow(inside, "own", 3, kOwner);
    after.grow(inside, "own", 12, kOwner);
    EXPECT_TRUE(after.tree.change("own", {.policy = kPolicies[inside.below(3)]}, kOwner));
    SCOPED_TRACE("seed " + std::to_string(seed));
    check(before, after);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Bounded, NoSliceHasMoreThanAnySliceAboveIt) {
  for_random_trees([](const Case&, const Case& one) {
    const std::vector<Effective> all = effective_settings(one.tree.slices());
    for (std::size_t n = 1; n < all.size(); ++n) {
      for (std::int32_t a = all[n].parent; a >= 0; a = all[static_cast<std::size_t>(a)].parent) {
        const Effective& above = all[static_cast<std::size_t>(a)];
        EXPECT_LE(all[n].max, above.max);
        EXPECT_LE(all[n].reserve, above.reserve);
        EXPECT_GE(all[n].reserve_mode, above.reserve_mode) << "a later mode keeps less";
        EXPECT_LE(all[n].memory_max.value_or(UINT64_MAX), above.memory_max.value_or(UINT64_MAX));
        EXPECT_LE(all[n].priority, a > 0 ? above.priority : kPriorityMax);
        const bool ruled = all[n].ruler >= 0 && a > all[n].ruler;
        EXPECT_LE(all[n].turn_priority, ruled ? above.turn_priority : kPriorityMax);
      }
    }
  });
}

/// The inside uses all that it is given, before and after; so what is given to it must be the same.
TEST(Bounded, TheSmsOfOthersAreTheSame) {
  std::size_t compared = 0;
  for_random_trees([&](const Case& before, const Case& after) {
    const auto grants = [](const Case& one, std::vector<std::uint32_t>& found) {
      const std::vector<ClientInput> clients = one.clients();
      const Decision decision = decide(one, clients);
      const auto own = std::distance(one.tree.slices().begin(), one.tree.slices().find("own"));
      found = one.outside<std::uint32_t>(clients, [&](std::size_t c) { return decision.clients[c].grant.count; });
      const Slice& slice = *one.tree.find("own");
      return decision.nodes[static_cast<std::size_t>(own)].demand >= std::min(slice.max, kDevice);
    };
    std::vector<std::uint32_t> had, has;
    const bool full_before = grants(before, had), full_after = grants(after, has);
    if (!full_before || !full_after) return;  // limits inside leave some of its SMs to others
    ++compared;
    EXPECT_EQ(had, has);
  });
  EXPECT_GT(compared, 200u);
}

TEST(Bounded, AnIdleSubtreeKeepsFromOthersNoMoreThanItsOwnReserve) {
  for_random_trees([](const Case& before, const Case& after) {
    const auto idle = [](const Case& one) {
      std::vector<ClientInput> clients = one.clients();
      const auto own =
          static_cast<std::size_t>(std::distance(one.tree.slices().begin(), one.tree.slices().find("own")));
      const std::vector<Effective> all = effective_settings(one.tree.slices());
      for (ClientInput& client : clients)
        for (auto n = static_cast<std::int32_t>(client.node); n >= 0; n = all[static_cast<std::size_t>(n)].parent)
          if (static_cast<std::size_t>(n) == own) client.demand = CapSM{};
      std::vector<NodeInput> nodes = one.tree.nodes();  // nobody is active
      Allocator allocator;
      Decision decision;
      allocator.decide(nodes, clients, kDevice, decision);
      return decision.nodes[own].given;
    };
    EXPECT_EQ(idle(before), idle(after));
  });
}

TEST(Bounded, TheLevelsOfOthersAreTheSame) {
  for_random_trees([](const Case& before, const Case& after) {
    const auto levels = [](const Case& one) {
      const std::vector<ClientInput> clients = one.clients();
      const std::vector<NodeInput> nodes = one.tree.nodes();
      std::vector<LevelClient> asked;
      for (const ClientInput& client : clients) asked.push_back({client.node, nodes[client.node].priority});
      const std::vector<LevelRange> found = levels_of(nodes, asked);
      return one.outside<LevelRange>(clients, [&](std::size_t c) { return found[c]; });
    };
    EXPECT_EQ(levels(before), levels(after));
  });
}

TEST(Bounded, ThePartsOfTheTurnsOfOthersAreTheSame) {
  for_random_trees([](const Case& before, const Case& after) {
    const auto parts = [](const Case& one) {
      const std::vector<ClientInput> clients = one.clients();
      const std::vector<NodeInput> nodes = one.tree.nodes();
      std::vector<std::uint32_t> own(nodes.size(), 0);
      for (const ClientInput& client : clients) ++own[client.node];
      WeightParts scratch;
      const std::span<const double> found = scratch.compute(nodes, own);
      return one.outside<double>(clients, [&](std::size_t c) { return found[clients[c].node]; });
    };
    EXPECT_EQ(parts(before), parts(after));
  });
}

/// In the order of priorities nobody inside is before those whom its slice does not come before.
TEST(Bounded, NobodyInsideOvertakesWhomItsSliceDoesNot) {
  for_random_trees([](const Case&, const Case& one) {
    const std::vector<Effective> all = effective_settings(one.tree.slices());
    const auto own = std::distance(one.tree.slices().begin(), one.tree.slices().find("own"));
    const Effective& slice = all[static_cast<std::size_t>(own)];
    std::size_t n = 0;
    for (const auto& [path, settings] : one.tree.slices()) {
      const Effective& inner = all[n++];
      if (!Case::is_own(path)) continue;
      EXPECT_LE(inner.priority, slice.priority);
      EXPECT_LE(inner.turn_priority, slice.ruler == 0 ? slice.turn_priority : kPriorityMax);
    }
  });
}

}  // namespace
}  // namespace gpuctl::sched::bounded_test
