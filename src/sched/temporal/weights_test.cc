// Policies that take turns give time in proportion to weights.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sched/simulator/simulate.h"
#include "sched/testing/instant.h"

namespace gpuctl::sched::weights_test {
namespace {

using instant::Instant;
using instant::ms;
using instant::us;

/// The time that the launches of each application take alone, of all that ended, in parts of the whole.
std::vector<double> parts(const std::string& policy, const std::vector<Application>& applications) {
  Workload workload;
  workload.capsm = CapSM{4};
  workload.until = ms(4000);
  workload.preempt = us(20);
  workload.applications = applications;
  const Outcome outcome = simulate(
      workload, [&](const PolicyInputs& inputs) { return std::move(*make_job_policy(policy, inputs)); }, 1);
  std::vector<double> had(applications.size());
  double all = 0;
  for (const Launch& launch : outcome.launches) {
    had[launch.application] += static_cast<double>(launch.alone.count());
    all += static_cast<double>(launch.alone.count());
  }
  for (double& part : had) part /= all;
  return had;
}

Application endless(Time alone, std::uint32_t weight, std::uint32_t instances = 1) {
  Application application;
  application.alone = alone;
  application.weight = weight;
  application.instances = instances;
  application.endless = true;
  application.start = Time{};
  return application;
}

const std::vector<std::string> kByTurns{"rr", "cfs", "dprr", "frs", "ffs"};
const std::vector<std::string> kByWeight{"rr", "cfs", "dprr", "frs", "ffs", "share"};

/// Weights belong to programs, not to launches.
TEST(Weights, AProgramWithShortLaunchesHasAsMuchAsOneWithLongOnes) {
  for (const std::string& policy : kByWeight) {
    // An application of the simulator is a slice, so under share one has 2 SMs of 4, whatever its launches.
    const auto had = parts(policy, {endless(us(100), 100), endless(ms(40), 100)});
    EXPECT_NEAR(had[0], 0.5, 0.06) << policy;
    const auto thrice = parts(policy, {endless(us(100), 100), endless(ms(40), 300)});
    EXPECT_NEAR(thrice[0], 0.25, 0.08) << policy;
    const auto other = parts(policy, {endless(us(100), 300), endless(ms(40), 100)});
    EXPECT_NEAR(other[0], 0.75, 0.08) << policy;
  }
}

TEST(Weights, OfEqualLaunchesCountUnderEachPolicy) {
  for (const std::string& policy : kByWeight) {
    if (policy == "dprr") continue;  // its quotas also grow with the waiting
    EXPECT_NEAR(parts(policy, {endless(ms(40), 300), endless(ms(40), 100)})[0], 0.75, 0.06) << policy;
    EXPECT_NEAR(parts(policy, {endless(ms(3), 300), endless(ms(3), 100)})[0], 0.75, 0.05) << policy;
  }
}

/// The lightest has an epoch that is too long for it, and sits out as many as that costs.
TEST(Weights, CountUnderFfsHoweverUnequalTheyAre) {
  const auto had = parts("ffs", {endless(ms(4), 1), endless(ms(4), 100)});
  EXPECT_NEAR(had[0], 0.01, 0.005);
}

TEST(Weights, UnderShareJobsTakeTurnsByOwner) {
  // Twelve of one SM each, of which four run at once; some have launches far shorter than a turn.
  std::vector<Application> twelve;
  for (int i = 0; i < 12; ++i) {
    twelve.push_back(endless(i % 3 == 0 ? us(900) : ms(30), 100));
    twelve.back().need = CapSM{1};
  }
  for (const double had : parts("share", twelve)) EXPECT_NEAR(had, 1 / 12.0, 0.02);
}

TEST(Weights, AClientOfTwiceTheWeightGetsTwice) {
  for (const std::string& policy : kByTurns) {
    const auto had = parts(policy, {endless(ms(20), 200), endless(ms(20), 100)});
    EXPECT_NEAR(had[0], 2 / 3.0, 0.03) << policy;
  }
}

TEST(Weights, CountAmongMany) {
  for (const std::string& policy : kByTurns) {
    const auto had = parts(policy, {endless(ms(10), 500), endless(ms(10), 200), endless(ms(10), 100, 3)});
    const double near = policy == "dprr" ? 0.1 : 0.06;  // its quotas also grow with the waiting
    EXPECT_NEAR(had[0], 0.5, near) << policy;
    EXPECT_NEAR(had[1], 0.2, near) << policy;
    EXPECT_NEAR(had[2], 0.3, near) << policy;
  }
}

TEST(Weights, CountWhereLaunchesAreShorterThanATurn) {
  for (const char* policy : {"rr", "cfs", "frs"}) {
    const auto had = parts(policy, {endless(us(100), 200), endless(us(100), 100, 2)});
    EXPECT_NEAR(had[0], 0.5, 0.05) << policy;
  }
}

/// As where four clients of a slice share its weight.
TEST(Weights, FourJobsOfAQuarterOfTheWeightHaveWhatOneHas) {
  for (const std::string& policy : kByTurns) {
    const auto had = parts(policy, {endless(ms(10), 400), endless(ms(10), 100, 4)});
    EXPECT_NEAR(had[0], 0.5, 0.03) << policy;
  }
}

TEST(Weights, TheLightestIsServedInTheEnd) {
  for (const std::string policy : {"rr", "cfs", "dprr"}) {
    Instant d(policy.c_str());
    d.arrive(1, ms(1'000'000), 0, CapSM{15}, us(50), 1000);
    d.arrive(2, ms(1'000'000), 0, CapSM{15}, us(50), 1);
    int turns = 0;
    for (; turns < 1200 && d.runs() != 2; ++turns) d.at(d.next);
    EXPECT_LT(turns, 1200) << policy;
    EXPECT_EQ(turns > 10, policy != "dprr") << policy << ": that serves all before any twice";
    d.complete(1);
    EXPECT_EQ(d.runs(), 2u) << policy << ": nobody is left to wait for";
    d.arrive(3, ms(1000), 0, CapSM{15}, us(50), 1);
    for (int i = 0; i < 2 && d.runs() != 3; ++i) d.at(d.next);
    EXPECT_EQ(d.runs(), 3u) << policy << ": among the light ones all are equal";
  }
}

}  // namespace
}  // namespace gpuctl::sched::weights_test
