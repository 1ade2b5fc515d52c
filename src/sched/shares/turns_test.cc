// More programs with work than SMs: who gets how much, and how long somebody waits. Random trees, 500 turns each, which
// are 10 s in the daemon.
#include "sched/shares/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "sched/allocator.h"
#include "sched/slice.h"

namespace gpuctl::sched::turns_test {
namespace {

constexpr std::chrono::nanoseconds kTurn = std::chrono::milliseconds{20};
constexpr int kTurns = 500;

struct Crowd {
  std::vector<NodeInput> nodes;
  std::vector<ClientInput> clients;
  CapSM capacity{};

  bool is_leaf(std::size_t node) const {
    return std::ranges::none_of(nodes, [&](const NodeInput& n) { return n.parent == static_cast<std::int32_t>(node); });
  }
};

NodeInput slice(std::int32_t parent, std::uint32_t weight = 100, std::uint32_t max = kUnlimitedCapSM.count) {
  return {.parent = parent, .strict = false, .max = CapSM{max}, .weight = weight, .policy = &policies().front()};
}

Crowd random_crowd(Random& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::uint32_t>(random.below(n)); };
  Crowd crowd{.nodes = {slice(-1)}, .clients = {}, .capacity = CapSM{1 + below(8)}};
  const std::uint32_t sms = crowd.capacity.count, heaviest = std::vector<std::uint32_t>{1, 4, 100}[below(3)];
  std::vector<std::uint32_t> unreserved{sms};
  for (std::uint32_t more = below(8); more > 0; --more) {
    const std::uint32_t parent = below(crowd.nodes.size());
    NodeInput node = slice(static_cast<std::int32_t>(parent), 1 + below(heaviest));
    if (below(4) == 0) node.max = CapSM{1 + below(sms)};
    if (below(4) == 0) node.reserve = std::min(CapSM{below(unreserved[parent] + 1)}, node.max);
    node.strict = below(2) == 0;
    unreserved[parent] -= node.reserve.count;
    unreserved.push_back(node.reserve.count);
    crowd.nodes.push_back(node);
  }
  for (std::uint32_t more = sms + 1 + below(2 * sms + 2); more > 0; --more)
    crowd.clients.push_back({.node = below(crowd.nodes.size()), .demand = CapSM{1 + below(2 * sms)}});
  return crowd;
}

/// What each client has over so many turns.
struct Turns {
  explicit Turns(Crowd of) : crowd(std::move(of)), accounts(crowd.clients.size()) { decide(); }

  void decide() { allocator.decide(crowd.nodes, crowd.clients, crowd.capacity, decision); }
  void pass(std::chrono::nanoseconds time) {
    charge(crowd.nodes, decision, time, kTurn);
    for (std::size_t i = 0; i < accounts.size(); ++i)
      accounts[i].charge(decision.clients[i].due, decision.clients[i].given(), time, kTurn);
  }
  void end() {
    end_turn(crowd.nodes);
    for (std::size_t i = 0; i < accounts.size(); ++i)
      accounts[i].end_turn(), crowd.clients[i].credit = accounts[i].credit;
    decide();
  }
  std::vector<std::uint32_t> given() const {
    std::vector<std::uint32_t> all;
    for (const ClientDecision& client : decision.clients) all.push_back(client.given().count);
    return all;
  }

  Crowd crowd;
  std::vector<TurnAccount> accounts;
  Allocator allocator;
  Decision decision;
};

/// Weighted max-min in real numbers: the model.
std::vector<double> fill(const std::vector<double>& wants, const std::vector<double>& weights, double amount) {
  const auto claims = std::ranges::count_if(wants, [](double want) { return want > 0; });
  const double least = amount >= static_cast<double>(claims) - 1e-9 ? 1 : 0;
  const auto at = [&](std::size_t i, double level) {
    return wants[i] > 0 ? std::clamp(level * weights[i], std::min(least, wants[i]), wants[i]) : 0;
  };
  double low = 0, high = 1e6;  // the water level
  for (int step = 0; step < 200; ++step) {
    const double level = (low + high) / 2;
    double sum = 0;
    for (std::size_t i = 0; i < wants.size(); ++i) sum += at(i, level);
    (sum > amount ? high : low) = level;
  }
  std::vector<double> parts;
  for (std::size_t i = 0; i < wants.size(); ++i) parts.push_back(at(i, low));
  return parts;
}

struct Model {
  explicit Model(const Crowd& of) : crowd(of), due(of.clients.size()) { divide(0, of.capacity.count); }

  double own(std::size_t node) const {
    double sum = 0;
    for (const ClientInput& client : crowd.clients)
      if (client.node == node) sum += std::min(client.demand, crowd.capacity).count;
    return sum;
  }
  double want(std::size_t node) const {
    double sum = own(node);
    for (std::size_t c = 1; c < crowd.nodes.size(); ++c)
      if (crowd.nodes[c].parent == static_cast<std::int32_t>(node)) sum += want(c);
    const NodeInput& input = crowd.nodes[node];
    const double max = std::min(input.max, crowd.capacity).count;
    return std::max(std::min(sum, max), input.strict ? std::min<double>(input.reserve.count, max) : 0);
  }
  void divide(std::size_t node, double amount) {
    std::vector<double> floors, wants, weights;
    std::vector<std::size_t> children;
    for (std::size_t c = crowd.nodes.size(); c-- > 1;)
      if (crowd.nodes[c].parent == static_cast<std::int32_t>(node)) children.insert(children.begin(), c);
    for (const std::size_t c : children) {
      floors.push_back(std::min<double>(crowd.nodes[c].reserve.count, want(c)));
      wants.push_back(want(c) - floors.back());
      weights.push_back(crowd.nodes[c].weight);
      amount -= floors.back();
    }
    floors.push_back(0), wants.push_back(own(node)), weights.push_back(kWeightDefault);
    const std::vector<double> parts = fill(wants, weights, amount);
    for (std::size_t i = 0; i < children.size(); ++i) divide(children[i], floors[i] + parts[i]);
    std::vector<double> demands;
    for (const ClientInput& client : crowd.clients)
      demands.push_back(client.node == node ? std::min(client.demand, crowd.capacity).count : 0);
    const std::vector<double> each = fill(demands, std::vector<double>(demands.size(), 1), parts.back());
    for (std::size_t i = 0; i < each.size(); ++i) due[i] += each[i];
  }

  const Crowd& crowd;
  std::vector<double> due;
};

/// The most turns that a client may have to wait: at its node and at each above, so many of that node's turns as it has
/// claimants for its weight, the heaviest being 1, and one more.
double longest_wait(const Turns& turns, std::size_t client) {
  const auto& [nodes, clients] = std::pair(turns.decision.nodes, turns.decision.clients);
  double most = 1;
  const auto among = [&](Due own, const std::vector<Due>& all) {
    if (own >= kWholeSm) return;
    const auto claimants = std::ranges::count_if(all, [](Due due) { return due > 0; });
    most *= static_cast<double>(claimants) * static_cast<double>(std::min(std::ranges::max(all), kWholeSm)) /
                static_cast<double>(own) +
            1;
  };
  std::size_t node = turns.crowd.clients[client].node;
  std::vector<Due> here;
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (turns.crowd.clients[i].node == node) here.push_back(clients[i].due);
  among(clients[client].due, here);
  for (bool own = !turns.crowd.is_leaf(node);; own = false) {
    const std::int32_t above = own ? static_cast<std::int32_t>(node) : turns.crowd.nodes[node].parent;
    if (above < 0) return most;
    here = {nodes[static_cast<std::size_t>(above)].own_due};
    for (std::size_t c = 1; c < nodes.size(); ++c)
      if (turns.crowd.nodes[c].parent == above) here.push_back(nodes[c].due);
    among(own ? nodes[node].own_due : nodes[node].due, here);
    node = static_cast<std::size_t>(above);
  }
}

TEST(Turns, GiveEachWhatItIsDueAndLetNobodyWaitLong) {
  int crowds = 0, waiting = 0, weighted = 0;
  for (std::uint64_t seed = 1; crowds < 1000; ++seed) {
    Random random(seed);
    Turns turns(random_crowd(random));
    if (!turns.decision.takes_turns) continue;
    ++crowds;
    const Model model(turns.crowd);
    const std::size_t count = turns.crowd.clients.size();
    std::vector<double> had(count);
    std::vector<int> waits(count), longest(count);
    for (int turn = 0; turn < kTurns; ++turn) {
      for (std::size_t i = 0; i < count; ++i) {
        const CapSM given = turns.decision.clients[i].given();
        had[i] += given.count;
        waits[i] = given > CapSM{} ? 0 : waits[i] + 1;
        longest[i] = std::max(longest[i], waits[i]);
      }
      turns.pass(kTurn);
      turns.end();
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double due = static_cast<double>(turns.decision.clients[i].due) / kWholeSm;
      ASSERT_NEAR(due, model.due[i], 1e-4) << "seed " << seed << " client " << i;
      ASSERT_NEAR(had[i], due * kTurns, std::max(0.02 * due * kTurns, 2.0)) << "seed " << seed << " client " << i;
      if (due == 0) continue;
      ASSERT_LE(longest[i], longest_wait(turns, i)) << "seed " << seed << " client " << i;
      waiting += turns.decision.clients[i].waits_for_turns();
      weighted += due != 1 / std::round(1 / due);
    }
  }
  EXPECT_GT(waiting, 5000);
  EXPECT_GT(weighted, 2000) << "few would be due anything but an equal part";
}

/// Who wants nothing changes nothing for others, turn by turn: idle clients, slices without clients, and suspended ones
/// whose clients wait.
TEST(Turns, WhoMayHaveNothingNowShiftsNothing) {
  int differ = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const Crowd alone = random_crowd(random);
    Crowd crowded = alone;
    std::vector<std::size_t> at;  // of each client of `alone`
    for (std::size_t i = 0; i < alone.clients.size(); ++i) at.push_back(i);
    for (std::uint64_t more = 1 + random.below(20); more > 0; --more) {
      const auto node = static_cast<std::uint32_t>(random.below(crowded.nodes.size()));
      // A first slice below clients would be beside them.
      const bool empty = random.below(2) == 0 && !crowded.is_leaf(node);
      if (empty)
        crowded.nodes.push_back(slice(static_cast<std::int32_t>(node), 1 + random.below(100), random.below(2)));
      const auto where = empty ? static_cast<std::uint32_t>(crowded.nodes.size() - 1) : node;
      const CapSM demand{empty && crowded.nodes.back().max == CapSM{} ? 8u : 0u};
      const std::size_t place = random.below(crowded.clients.size() + 1);
      crowded.clients.insert(crowded.clients.begin() + static_cast<std::ptrdiff_t>(place),
                             {.node = where, .demand = demand});
      for (std::size_t& index : at) index += index >= place;
    }
    Turns few(alone), many(crowded);
    EXPECT_EQ(few.decision.takes_turns, many.decision.takes_turns) << seed;
    for (int turn = 0; turn < 50; ++turn) {
      const auto before = few.given(), of_many = many.given();
      for (std::size_t i = 0; i < at.size(); ++i)
        ASSERT_EQ(before[i], of_many[at[i]]) << "seed " << seed << " turn " << turn << " client " << i;
      for (Turns* both : {&few, &many}) both->pass(kTurn), both->end();
      differ += few.given() != before;
    }
  }
  EXPECT_GT(differ, 1000) << "nobody had a turn";
}

TEST(Turns, NobodyMovesWithinOne) {
  Turns turns({.nodes = {slice(-1)}, .clients = {{0, CapSM{8}}, {0, CapSM{8}}, {0, CapSM{8}}}, .capacity = CapSM{1}});
  const auto first = turns.given();
  for (int part = 0; part < 4; ++part) {
    turns.pass(kTurn / 4);
    turns.decide();
    EXPECT_EQ(turns.given(), first);
  }
  turns.end();
  EXPECT_NE(turns.given(), first);
}

/// Who works for a tenth of each turn pays for that time, and for no more.
TEST(Turns, AreChargedByTime) {
  Turns turns({.nodes = {slice(-1)}, .clients = {{0, CapSM{8}}, {0, CapSM{8}}}, .capacity = CapSM{1}});
  double had[2] = {0, 0};
  const auto pass = [&](std::chrono::nanoseconds time) {
    for (std::size_t i : {0u, 1u}) had[i] += turns.given()[i] * static_cast<double>(time.count());
    turns.pass(time);
  };
  for (int turn = 0; turn < 100; ++turn) {
    for (const bool both : {true, false}) {
      turns.crowd.clients[0].demand = CapSM{both ? 8u : 0u};
      turns.decide();
      pass(both ? kTurn / 10 : kTurn * 9 / 10);
    }
    turns.end();
  }
  EXPECT_NEAR(had[0] / (had[0] + had[1]), 0.05, 0.01);
}

TEST(Turns, WhoIsDueNothingMakesNobodyTakeTurns) {
  // A suspended slice, and one beside reserves that take all.
  Turns suspended({.nodes = {slice(-1), slice(0), slice(0, 100, 0)},
                   .clients = {{1, CapSM{8}}, {2, CapSM{8}}},
                   .capacity = CapSM{3}});
  EXPECT_FALSE(suspended.decision.takes_turns);
  Turns reserved({.nodes = {slice(-1), slice(0), slice(0)}, .clients = {{2, CapSM{8}}}, .capacity = CapSM{3}});
  reserved.crowd.nodes[1].reserve = CapSM{3};
  reserved.crowd.nodes[1].strict = true;
  reserved.decide();
  EXPECT_FALSE(reserved.decision.takes_turns);
  reserved.crowd.nodes[1].reserve = CapSM{2};
  reserved.crowd.clients.push_back({2, CapSM{8}});
  reserved.accounts.resize(2);
  reserved.decide();
  EXPECT_TRUE(reserved.decision.takes_turns);
}

}  // namespace
}  // namespace gpuctl::sched::turns_test
