#include "sched/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sched/slice.h"

namespace gpuctl::sched {
namespace {

const Policy* const kShare = &policies().front();

NodeInput node(std::int32_t parent, std::uint32_t reserve = 0, bool strict = true) {
  return {.parent = parent, .reserve = CapSM{reserve}, .strict = strict, .weight = 100, .policy = kShare};
}

SmSet range(std::uint32_t first, std::uint32_t last) {
  return SmSet::first(last + 1) - SmSet::first(first);
}

/// A device with its tree and clients, decided and placed together.
struct Device {
  explicit Device(std::uint32_t sms, std::vector<NodeInput> tree) : placement(sms), nodes(std::move(tree)) {}

  void place() {
    allocator.decide(nodes, clients, placement.capacity(), turn, decision);
    placement.place(nodes, clients, decision);
  }
  void demand(std::size_t client, std::uint32_t sms) {
    clients[client].demand = CapSM{sms};
    place();
  }
  SmSet grant(std::size_t c) const { return placement.own(c) | placement.at_rest(clients[c].node); }
  SmSet held_by(std::size_t n) const {
    SmSet held = placement.at_rest(n);
    for (std::size_t c = 0; c < clients.size(); ++c)
      if (clients[c].node == n) held |= placement.own(c);
    return held;
  }

  Placement placement;
  std::vector<NodeInput> nodes;
  std::vector<ClientInput> clients;
  Allocator allocator;
  Decision decision;
  std::uint64_t turn = 0;
};

TEST(Placement, ReservesStandAtTheTop) {
  Device device(132, {node(-1), node(0, 8), node(0)});
  device.clients = {{2, CapSM{132}}};
  device.place();
  EXPECT_EQ(device.placement.at_rest(1), range(124, 131));
  EXPECT_EQ(device.grant(0), range(0, 123));
}

TEST(Placement, AClientTakesFromItsLeafsReserveAndGivesItBack) {
  Device device(132, {node(-1), node(0, 8), node(0)});
  device.clients = {{1, CapSM{0}}, {1, CapSM{0}}, {2, CapSM{132}}};
  device.place();
  EXPECT_EQ(device.grant(0), range(124, 131));
  EXPECT_EQ(device.grant(1), range(124, 131));
  device.demand(0, 3);
  EXPECT_EQ(device.placement.own(0).size(), 3u);
  EXPECT_EQ(device.grant(0), range(124, 131));
  EXPECT_EQ(device.grant(1), range(124, 131) - device.placement.own(0));
  EXPECT_EQ(device.grant(2), range(0, 123));
  device.demand(0, 0);
  EXPECT_EQ(device.grant(1), range(124, 131));
}

TEST(Placement, ALentReserveComesBackFromTheTop) {
  Device device(132, {node(-1), node(0, 8, false), node(0)});
  device.clients = {{1, CapSM{0}}, {2, CapSM{132}}};
  device.place();
  EXPECT_EQ(device.grant(1), range(0, 131));
  device.demand(0, 8);
  EXPECT_EQ(device.grant(0), range(124, 131));
  EXPECT_EQ(device.grant(1), range(0, 123));
  device.demand(0, 0);
  EXPECT_EQ(device.grant(1), range(0, 131));
}

TEST(Placement, OthersAreNotMovedWhenOneGoes) {
  Device device(12, {node(-1), node(0)});
  device.clients = {{1, CapSM{12}}, {1, CapSM{12}}, {1, CapSM{4}}};
  device.place();
  const SmSet first = device.grant(0), last = device.grant(2);
  EXPECT_EQ(first.size(), 4u);
  device.clients.erase(device.clients.begin() + 1);
  const std::int32_t nodes[] = {0, 1}, clients[] = {0, 2};
  device.placement.carry_over(nodes, clients);
  device.place();
  EXPECT_EQ(device.grant(0) & first, first);
  EXPECT_EQ(device.grant(0).size(), 8u);
  EXPECT_EQ(device.grant(1), last);
}

TEST(Placement, SmsThatNoSetCanNameAreNotGranted) {
  Device device(300, {node(-1)});
  device.clients = {{0, CapSM{300}}};
  device.place();
  EXPECT_EQ(device.placement.capacity(), CapSM{kMaxSms});
  EXPECT_EQ(device.grant(0), SmSet::everything());
}

/// What was kept, and what came and went, is exactly what the sizes force.
void expect_stable(const SmSet& before, const SmSet& after) {
  const std::uint32_t kept = (before & after).size();
  EXPECT_EQ(kept, std::min(before.size(), after.size()));
}

/// Random demands, reserves, and comings and goings of clients and slices, one after the other on one device.
class RandomDevice : public Device {
 public:
  explicit RandomDevice(std::uint64_t seed) : Device(1, {}), random_(seed) {
    const std::uint32_t sms = number(1, 150);
    placement = Placement(sms);
    nodes = {node(-1)};
    nodes[0].reserve = CapSM{sms};
    for (std::uint32_t left = number(0, 6); left > 0; --left) add_node();
    for (std::uint32_t left = number(1, 8); left > 0; --left) add_client();
    place();
  }

  void step() {
    std::vector<SmSet> own, rest, held;
    for (std::size_t c = 0; c < clients.size(); ++c) own.push_back(placement.own(c));
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      rest.push_back(placement.at_rest(n));
      held.push_back(held_by(n));
    }
    std::vector<std::int32_t> node_was(nodes.size()), client_was(clients.size());
    for (std::size_t n = 0; n < nodes.size(); ++n) node_was[n] = static_cast<std::int32_t>(n);
    for (std::size_t c = 0; c < clients.size(); ++c) client_was[c] = static_cast<std::int32_t>(c);
    bool gone = false;  // then what a node holds is not comparable: it shrank already
    switch (number(0, 5)) {
      case 0:
        gone = !clients.empty();
        if (gone) {
          const auto which = static_cast<std::ptrdiff_t>(number(0, static_cast<std::uint32_t>(clients.size()) - 1));
          clients.erase(clients.begin() + which);
          client_was.erase(client_was.begin() + which);
        }
        break;
      case 1:
        add_client();
        client_was.push_back(-1);
        break;
      case 2:
        add_node();
        node_was.push_back(-1);
        break;
      default:
        for (ClientInput& client : clients)
          if (number(0, 2) == 0) client.demand = CapSM{number(0, 1) * number(0, 160)};
        turn = number(0, 9);
    }
    placement.carry_over(node_was, client_was);
    place();

    SmSet taken;
    std::uint32_t sum = 0;
    const auto add = [&](const SmSet& part) {
      EXPECT_TRUE((taken & part).empty());
      taken |= part;
      sum += part.size();
    };
    for (std::size_t c = 0; c < clients.size(); ++c) {
      add(placement.own(c));
      EXPECT_EQ(placement.own(c).size(), decision.clients[c].own.count);
      EXPECT_EQ(grant(c).size(), decision.clients[c].grant.count);
      if (client_was[c] >= 0) expect_stable(own[static_cast<std::size_t>(client_was[c])], placement.own(c));
    }
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      add(placement.at_rest(n));
      if (node_was[n] < 0) continue;
      expect_stable(rest[n], placement.at_rest(n));
      if (!gone) expect_stable(held[n], held_by(n));
    }
    EXPECT_EQ(taken - placement.device(), SmSet{});
    EXPECT_EQ(sum, taken.size());
    granted_ += sum;
  }

  std::uint64_t granted() const { return granted_; }

 private:
  std::uint32_t number(std::uint32_t least, std::uint32_t most) {
    return std::uniform_int_distribution<std::uint32_t>(least, most)(random_);
  }
  void add_client() {
    clients.push_back({number(0, static_cast<std::uint32_t>(nodes.size()) - 1), CapSM{number(0, 1) * number(0, 160)}});
  }
  /// Below any node, reserving what its siblings left.
  void add_node() {
    const std::uint32_t parent = number(0, static_cast<std::uint32_t>(nodes.size()) - 1);
    std::uint32_t left = nodes[parent].reserve.count;
    for (const NodeInput& other : nodes)
      if (other.parent == static_cast<std::int32_t>(parent)) left -= other.reserve.count;
    nodes.push_back(node(static_cast<std::int32_t>(parent), number(0, 1) * number(0, left), number(0, 1) == 0));
    if (number(0, 3) == 0) nodes.back().max = CapSM{std::max(nodes.back().reserve.count, number(1, 100))};
  }

  std::mt19937_64 random_;
  std::uint64_t granted_ = 0;
};

TEST(Placement, RandomSequencesKeepSizesDisjointnessAndStability) {
  std::uint64_t granted = 0;
  for (std::uint64_t seed = 0; seed < 300 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomDevice device(seed);
    for (int i = 0; i < 60 && !testing::Test::HasFailure(); ++i) device.step();
    granted += device.granted();
  }
  EXPECT_GT(granted, 100'000u);
}

TEST(Placement, TheSameSequenceGivesTheSameSets) {
  RandomDevice a(7), b(7);
  for (int i = 0; i < 50; ++i) {
    a.step();
    b.step();
    for (std::size_t c = 0; c < a.clients.size(); ++c) EXPECT_EQ(a.grant(c), b.grant(c));
  }
}

}  // namespace
}  // namespace gpuctl::sched
