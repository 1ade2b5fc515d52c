#include "sched/temporal/scheduler.h"

#include <gtest/gtest.h>

namespace gpuctl::sched::scheduler_test {
namespace {

constexpr CapSM kDevice{8};

constexpr Time us(std::int64_t n) {
  return std::chrono::microseconds{n};
}

Scheduler make(const char* policy) {
  return Scheduler(std::move(*make_job_policy(policy)), kDevice);
}

Arrival job(JobId id, Time predicted, std::int32_t priority = 0) {
  Arrival arrival;
  arrival.id = arrival.owner = id;
  arrival.predicted = predicted;
  arrival.priority = priority;
  arrival.need = kDevice;
  arrival.eviction = us(50);
  return arrival;
}

TEST(Scheduler, WalksAJobThroughItsStates) {
  Scheduler s = make("srt");
  EXPECT_EQ(s.state(1), JobState::done);
  s.arrive(job(1, us(1000)), us(0));
  EXPECT_EQ(s.state(1), JobState::ready);
  JobDecision d = s.decide(us(0));
  ASSERT_EQ(d.changed.size(), 1u);
  EXPECT_EQ(d.changed[0].job, 1u);
  EXPECT_EQ(d.changed[0].capsm, kDevice);
  EXPECT_EQ(s.state(1), JobState::to_run);
  s.started(1, us(10));
  EXPECT_EQ(s.state(1), JobState::running);

  s.arrive(job(2, us(100)), us(200));
  d = s.decide(us(200));
  ASSERT_EQ(d.changed.size(), 2u);
  EXPECT_EQ(d.changed[0].job, 1u);
  EXPECT_EQ(d.changed[0].capsm, CapSM{0});
  EXPECT_EQ(d.changed[1].job, 2u);
  EXPECT_EQ(s.state(1), JobState::to_evict);
  s.evicted(1, us(250));
  EXPECT_EQ(s.state(1), JobState::ready);
  EXPECT_EQ(s.find(1)->evictions, 1u);
  s.started(2, us(250));
  s.complete(2, us(350));
  EXPECT_EQ(s.state(2), JobState::done);
  s.decide(us(350));
  EXPECT_EQ(s.state(1), JobState::to_run);
  EXPECT_EQ(to_string(s.state(1)), "to-run");
}

TEST(Scheduler, KeepsTheTimesOfFlep) {
  Scheduler s = make("fcfs");
  s.arrive(job(1, us(1000)), us(0));
  s.arrive(job(2, us(500)), us(100));
  s.decide(us(100));
  s.started(1, us(120));
  s.decide(us(120));
  s.arrive(job(3, us(5)), us(420));
  EXPECT_EQ(s.find(1)->predicted, us(1000));
  EXPECT_EQ(s.find(1)->waited_at(us(420)), us(120));
  EXPECT_EQ(s.find(1)->remaining, us(700));
  EXPECT_EQ(s.find(2)->waited_at(us(420)), us(320));
  EXPECT_EQ(s.find(2)->remaining, us(500));
  s.observe(1, us(650), us(520));  // slower than predicted
  EXPECT_EQ(s.find(1)->remaining, us(650));
  s.observe(1, us(640), us(540));
  s.complete(1, us(600));
  s.decide(us(600));
  s.started(2, us(610));
  EXPECT_EQ(s.find(2)->waited_at(us(900)), us(510));
}

TEST(Scheduler, CountsASliceFromTheStart) {
  Scheduler s = make("rr:quantum_ms=1");
  s.arrive(job(1, us(5000)), us(0));
  s.arrive(job(2, us(5000)), us(0));
  EXPECT_EQ(s.decide(us(0)).again, kNever);  // no job runs yet
  s.started(1, us(30));
  EXPECT_EQ(s.decide(us(30)).again, us(1030));
  s.arrive(job(3, us(5000)), us(500));
  EXPECT_EQ(s.decide(us(500)).again, us(1030));  // an arrival does not prolong it
  JobDecision d = s.decide(us(1030));
  ASSERT_EQ(d.changed.size(), 2u);
  EXPECT_EQ(d.changed[1].job, 2u);
  EXPECT_EQ(d.again, kNever);
  s.evicted(1, us(1100));
  s.started(2, us(1100));
  EXPECT_EQ(s.decide(us(1100)).again, us(2100));
}

TEST(Scheduler, GoesOnWithTheOnlyJobWithoutEvictingIt) {
  Scheduler s = make("rr");
  s.arrive(job(1, us(5000)), us(0));
  s.decide(us(0));
  s.started(1, us(0));
  const Time again = s.decide(us(0)).again;
  EXPECT_EQ(again, us(1000));
  const JobDecision d = s.decide(again);
  EXPECT_TRUE(d.changed.empty());
  EXPECT_EQ(d.again, us(2000));
}

TEST(Scheduler, ChangesThePolicyWithoutTouchingWhoRunsUntilAsked) {
  Scheduler s = make("fcfs");
  s.arrive(job(1, us(5000), 0), us(0));
  s.arrive(job(2, us(500), 3), us(0));
  s.decide(us(0));
  s.started(1, us(0));
  s.set_policy(std::move(*make_job_policy("piv")), us(1000));
  EXPECT_EQ(s.state(1), JobState::running);
  EXPECT_EQ(s.find(1)->remaining, us(4000));
  s.decide(us(1000));
  EXPECT_EQ(s.state(1), JobState::to_evict);
  EXPECT_EQ(s.state(2), JobState::to_run);
}

TEST(Scheduler, IgnoresWhatItDoesNotKnow) {
  Scheduler s = make("frs");
  s.complete(9, us(1));
  s.started(9, us(2));
  s.evicted(9, us(3));
  s.tail(9, us(4));
  s.observe(9, us(1), us(5));
  EXPECT_TRUE(s.decide(us(6)).changed.empty());
  EXPECT_TRUE(s.arrive(job(1, us(0)), us(7)));
  EXPECT_FALSE(s.arrive(job(1, us(9)), us(7)));
  EXPECT_EQ(s.jobs().size(), 1u);
  EXPECT_EQ(s.jobs()[0].predicted, Time{1});
}

}  // namespace
}  // namespace gpuctl::sched::scheduler_test
