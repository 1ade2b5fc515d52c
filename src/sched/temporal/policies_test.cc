// Tests each policy against its paper, in situations small enough to work out by hand.
#include <gtest/gtest.h>

#include <map>

#include "sched/policy/owners.h"
#include "sched/testing/instant.h"

namespace gpuctl::sched::policies_test {
namespace {

using instant::Instant;
using instant::ms;
using instant::us;

TEST(Hpf, EvictsForAHigherPriorityWhateverIsLeft) {
  Instant d("hpf");
  d.arrive(1, ms(10), 0);
  d.now = us(9990);
  d.arrive(2, ms(50), 1);
  EXPECT_EQ(d.runs(), 2u);
  d.arrive(3, us(10), 0);
  EXPECT_EQ(d.runs(), 2u);
}

TEST(Hpf, AmongEqualsEvictsOnlyIfItPaysForItself) {
  Instant d("hpf");
  d.arrive(1, us(1000));
  d.now = us(500);
  d.arrive(2, us(450));  // 500 left against 450 + 50
  EXPECT_EQ(d.runs(), 1u);
  d.arrive(3, us(449));
  EXPECT_EQ(d.runs(), 3u);
  d.now = us(949);
  d.complete(3);
  EXPECT_EQ(d.runs(), 2u);  // 450 against the 500 of job 1
}

TEST(Hpf, SpatialTakesOnlyWhatTheWaitingJobFills) {
  Instant d("hpf:spatial");
  d.arrive(1, ms(10), 0);
  d.arrive(2, us(80), 1, CapSM{5});
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 10}, {2, 5}}));
  d.arrive(3, us(80), 1, CapSM{12});
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{2, 5}, {3, 10}}));
  d.complete(3);
  d.complete(2);
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 15}}));
}

TEST(Hpf, SpatialTakesExtraSmsFromLowerPrioritiesAlone) {
  Instant d("hpf:spatial:extra=3");
  d.arrive(1, ms(10), 0);
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 15}}));
  d.arrive(2, us(80), 1, CapSM{5});
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 7}, {2, 8}}));
  d.arrive(3, us(90), 1, CapSM{9});  // takes what job 2 does not fill, and the SM that is left
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{2, 6}, {3, 9}}));
  d.complete(3);
  d.arrive(4, us(80), 2, CapSM{4});
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{2, 8}, {4, 7}}));
}

TEST(Hpf, SpatialWithMoreExtraThanThereAreSmsYieldsAll) {
  Instant d("hpf:spatial:extra=100");
  d.arrive(1, ms(10), 0);
  d.arrive(2, us(80), 1, CapSM{1});
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{2, 15}}));
}

TEST(JobPolicies, SomeGoByPriorityWhateverElseIsThere) {
  const auto decides = [](const char* policy) { return (*make_job_policy(policy))->priority_decides(); };
  for (const char* policy : {"hpf", "hpf:spatial", "piv"}) EXPECT_TRUE(decides(policy)) << policy;
  for (const char* policy :
       {"hpf:protect_ms=5", "hpf:spatial:extra=1", "piv:protect_ms=5", "dprr", "srt", "fcfs", "sim"})
    EXPECT_FALSE(decides(policy)) << policy;
}

TEST(Ffs, GivesEpochsByWeightWithinTheOverhead) {
  Instant d("ffs:max_overhead=0.1");
  d.arrive(1, ms(100), 0, CapSM{15}, us(60), 2);
  d.arrive(2, ms(100), 0, CapSM{15}, us(30), 1);
  // The first epoch began when job 1 was alone: 60 / (0.1 x 2) x 2. From then on T = 90 us / (0.1 x 3) = 300 us.
  EXPECT_EQ(d.next, us(600));
  d.at(d.next);
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, us(600 + 300));
  d.at(d.next);
  EXPECT_EQ(d.runs(), 1u);
  EXPECT_EQ(d.next, us(900 + 600));
}

TEST(Ffs, LetsAStreamGoOnInItsEpochWithItsNextKernel) {
  Instant d("ffs:max_overhead=0.1");
  d.arrive(1, us(200), 0, CapSM{15}, us(60), 2);
  d.arrive(2, ms(100), 0, CapSM{15}, us(30), 1);
  d.now = us(200);
  d.scheduler.complete(1, d.now);
  d.scheduler.arrive({3, 1, 0, 0, 0, 2, CapSM{15}, us(200), us(60)}, d.now);  // the same owner, at once
  d.ask();
  EXPECT_EQ(d.runs(), 3u);
  EXPECT_EQ(d.next, us(600));
}

TEST(Piv, EvictsAtOnceForHigherNeverForEqual) {
  Instant d("piv");
  d.arrive(1, ms(10), 3);
  d.arrive(2, us(10), 3);
  EXPECT_EQ(d.runs(), 1u);
  d.arrive(3, ms(90), 4);
  EXPECT_EQ(d.runs(), 3u);
  d.complete(3);
  EXPECT_EQ(d.runs(), 1u);  // back at the head of its priority
}

TEST(Dprr, GivesQuotasByPriorityAndServesAllBeforeAnyTwice) {
  Instant d("dprr");
  d.arrive(1, ms(100), 3);
  EXPECT_EQ(d.next, ms(2));  // (3 + 1) / 2
  d.arrive(2, ms(100), 9);
  EXPECT_EQ(d.runs(), 1u);  // the quota is not cut
  d.at(ms(2));
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, ms(2) + us(6000));  // 9, and 2 for 2 ms of waiting: (11 + 1) / 2
  d.at(ms(8));
  EXPECT_EQ(d.runs(), 2u);  // both are in the inactive queue: it becomes the active one, and priorities begin anew
  EXPECT_EQ(d.next, ms(13));
}

TEST(Dprr, RaisesByTwentyAtMost) {
  Instant d("dprr");
  d.arrive(1, ms(1000), 100);  // quota 50.5 ms
  d.arrive(2, ms(100), 0);
  d.at(us(50'500));
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, us(50'500 + 10'500));  // (20 + 1) / 2
}

TEST(Sjf, LooksAtTheWholeDurationAndSrtAtWhatIsLeft) {
  Instant sjf("sjf"), srt("srt");
  for (Instant* d : {&sjf, &srt}) {
    d->arrive(1, ms(10));
    d->now = ms(9);
    d->arrive(2, ms(5));
  }
  EXPECT_EQ(sjf.runs(), 2u);
  EXPECT_EQ(srt.runs(), 1u);
}

TEST(Sjf, PutsOnlyThoseThatWaitInOrderIfEachRunsToItsEnd) {
  Instant d("sjf:to_end");
  d.arrive(1, ms(10));
  d.now = ms(1);
  d.arrive(2, ms(5));
  d.arrive(3, ms(2));
  EXPECT_EQ(d.runs(), 1u);
  d.complete(1);
  EXPECT_EQ(d.runs(), 3u);
}

TEST(Rr, TakesTurnsInTheOrderOfArrival) {
  Instant d("rr:quantum_ms=2");
  for (JobId id = 1; id <= 3; ++id) d.arrive(id, ms(100));
  std::vector<JobId> order;
  for (int i = 0; i < 5; ++i) {
    order.push_back(d.runs());
    EXPECT_EQ(d.next, d.now + ms(2));
    d.at(d.next);
  }
  EXPECT_EQ(order, (std::vector<JobId>{1, 2, 3, 1, 2}));
}

TEST(Cfs, DividesTheEpochAndPrefersWhoWaitedLongest) {
  Instant d("cfs:epoch_ms=4");
  d.arrive(1, ms(100));
  d.now = ms(1);
  d.arrive(2, ms(100));
  d.now = ms(2);
  d.arrive(3, ms(100));
  d.at(ms(4));
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, ms(4) + Time{4'000'000 / 3});
  d.at(d.next);
  EXPECT_EQ(d.runs(), 3u);
  d.at(d.next);
  EXPECT_EQ(d.runs(), 1u);  // before any job has a second part
}

TEST(Frs, RunsTheSlowestUntilTheFastestIsAsSlow) {
  Instant d("frs:quantum_ms=0.1");
  d.arrive(1, ms(10));
  d.arrive(2, ms(2));
  // At 0 both have IS = 1, and the first job comes first. IS_max T_e' - T_r' - t' = 0, so it gets the least quantum.
  // Then job 2 has (0.1 + 2) / 2 = 1.05 and runs until job 1 has that too: 1.05 x 10 - 9.9 - 0.1 = 0.5 ms.
  EXPECT_EQ(d.runs(), 1u);
  EXPECT_EQ(d.next, us(100));
  d.at(us(100));
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, us(600));
}

TEST(Frs, CountsWhatIsBehindALaunchOnce) {
  Burst burst;
  for (int launch = 0; launch < 10; ++launch) {
    Job job;
    job.arrived = ms(launch);
    job.predicted = ms(10 - launch);
    job.behind = ms(9 - launch);
    burst.arrived(job.arrived);
    burst.left(job, ms(launch + 1));
  }
  EXPECT_EQ(burst.alone, ms(10));
  EXPECT_EQ(burst.turnaround, ms(10));
}

TEST(Frs, AnApplicationGoesOnWhereMoreOfItIsExpected) {
  Burst burst;
  Job job;
  job.predicted = ms(10);
  job.behind = ms(9);
  burst.arrived(job.arrived);
  burst.left(job, ms(3));
  burst.arrived(ms(4));
  EXPECT_EQ(burst.turnaround, ms(3)) << "its program prepared the next launch for a moment";
  job.predicted = ms(1);
  job.behind = Time{0};
  burst.left(job, ms(5));
  burst.arrived(ms(6));
  EXPECT_EQ(burst.turnaround, Time{0});
}

/// Programs by turns, which always have work: one of bursts of 2000 launches, one of bursts of 10, all of 1 ms.
TEST(Frs, OneWithLongBurstsDoesNotStarve) {
  for (const Time pause : {Time{0}, us(100)}) {
    Instant d("frs");
    struct Program {
      int launches, at;
      Time left, ran, comes;
    };
    std::map<JobId, Program> programs{{1, {2000, 0, {}, {}, {}}}, {2, {10, 0, {}, {}, {}}}};
    const auto behind = [](const Program& program) { return ms(program.launches - 1 - program.at); };
    while (d.now < ms(4000)) {
      for (auto& [id, program] : programs) {
        if (program.left > Time{0} || d.now < program.comes) continue;
        program.left = ms(1);
        d.scheduler.arrive(
            {.id = id, .owner = id, .need = CapSM{15}, .predicted = ms(1) + behind(program), .behind = behind(program)},
            d.now);
      }
      d.ask();
      const JobId runs = d.runs();
      d.at(d.now + us(50));
      if (runs == 0) continue;
      Program& program = programs.at(runs);
      program.ran += us(50), program.left -= us(50);
      if (program.left > Time{0}) continue;
      d.complete(runs);
      program.at = (program.at + 1) % program.launches;
      program.comes = d.now + pause;
    }
    EXPECT_GT(programs.at(1).ran, ms(1400)) << pause.count() << " ns between launches";
    EXPECT_GT(programs.at(2).ran, ms(1400)) << pause.count() << " ns between launches";
  }
}

TEST(Sim, IsTheGreedyAlgorithm) {
  // Job 1: 1 -> 12 ms, 2 -> 8, 4 -> 6. Job 2: 1 -> 10 ms, 2 -> 5, 3 -> 4. Five CapSM.
  // (1, 1): 1 is longest -> (2, 1): 2 is longest with 10 -> (2, 2): 1 with 8 -> 4 + 2 does not fit, 1 is settled.
  // 2 with 5 -> (2, 3): full.
  const std::vector<CurvePoint> one{{CapSM{1}, ms(12)}, {CapSM{2}, ms(8)}, {CapSM{4}, ms(6)}};
  const std::vector<CurvePoint> two{{CapSM{1}, ms(10)}, {CapSM{2}, ms(5)}, {CapSM{3}, ms(4)}};
  Instant d("sim", CapSM{5},
            {[&](std::uint32_t kernel) { return std::span<const CurvePoint>(kernel == 1 ? one : two); }});
  d.arrive(1, ms(6));
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 4}}));
  d.arrive(2, ms(4));
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 2}, {2, 3}}));
  d.scheduler.tail(2, d.now);  // its last block-task is claimed: the rest is for job 1
  d.ask();
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 4}}));
}

TEST(Sim, LeavesEachAPartOfAnEqualShareIfItCanUseSoMuch) {
  const std::vector<CurvePoint> flat{{CapSM{1}, ms(12)}, {CapSM{3}, ms(8)}};
  const CurveSource curves = [&](std::uint32_t kernel) {
    return kernel == 1 ? std::span<const CurvePoint>(flat) : std::span<const CurvePoint>{};
  };
  const auto divided = [&](const char* policy) {
    Instant d(policy, CapSM{12}, {curves});
    d.arrive(1, ms(1));  // of no use beyond 3
    d.arrive(2, ms(1));  // short: the long one would have nearly all
    d.arrive(3, ms(1000));
    return d.running();
  };
  EXPECT_EQ(divided("sim:floor=0"), (std::map<JobId, std::uint32_t>{{1, 1}, {2, 1}, {3, 10}}));
  EXPECT_EQ(divided("sim:floor=0.5"), (std::map<JobId, std::uint32_t>{{1, 2}, {2, 2}, {3, 8}}));
  EXPECT_EQ(divided("sim:floor=1"), (std::map<JobId, std::uint32_t>{{1, 3}, {2, 4}, {3, 5}}));
}

TEST(Sim, WithMoreJobsThanSmsGivesOneToTheFirst) {
  Instant d("sim", CapSM{2});
  for (JobId id = 1; id <= 4; ++id) d.arrive(id, ms(5));
  EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 1}, {2, 1}}));
}

TEST(Share, DecidesAsSmGuardsAlgorithmOne) {
  // 13 SMs; the latency-sensitive slice has 8 reserved, the batch slice a quota of 10.
  for (const bool strict : {true, false}) {
    PolicyInputs inputs;
    inputs.slices = {{.reserve = CapSM{8}, .strict = strict}, {.max = CapSM{10}}};
    Instant d("share", CapSM{13}, inputs);
    const auto arrive = [&](JobId id, std::uint32_t slice, std::uint32_t need) {
      d.scheduler.arrive({.id = id, .slice = slice, .need = CapSM{need}, .predicted = ms(10)}, d.now);
      d.ask();
    };
    arrive(1, 1, 13);  // strict: R_remain is 5, less than the quota. Active: it is lent, so the whole quota fits
    EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, strict ? 5 : 10}}));
    arrive(2, 0, 8);  // R_request <= R_remain when strict; else the gap of 5 is taken from the batch job
    EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 5}, {2, 8}}));
    d.complete(2);
    EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, strict ? 5 : 10}}));
    arrive(3, 0, 6);
    EXPECT_EQ(d.running(), (std::map<JobId, std::uint32_t>{{1, 5}, {3, 6}})) << "while it works all of it is kept";
  }
}

TEST(Protection, RunsTheStarvingForOneSlice) {
  Instant d("piv:protect_ms=5");
  d.arrive(1, ms(10), 0);
  d.now = ms(1);
  d.arrive(2, ms(100), 1);
  EXPECT_EQ(d.next, ms(6));
  d.at(ms(6));
  EXPECT_EQ(d.runs(), 1u);
  EXPECT_EQ(d.next, ms(7));
  d.at(ms(7));
  EXPECT_EQ(d.runs(), 2u);
  EXPECT_EQ(d.next, ms(12));
}

}  // namespace
}  // namespace gpuctl::sched::policies_test
