// Policies for jobs and launches in original form, which cannot be evicted: their predictions, and what follows from
// them.
#include <gtest/gtest.h>

#include "gpuctld/testing/fake_program.h"

namespace gpuctl::daemon::scheduler_original_test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint32_t kSms = 132;

/// A client all of whose launches are in original form.
struct Original : FakeProgram {
  Original(Scheduler& scheduler, std::uint64_t kernel) : FakeProgram(scheduler, "/"), kernel(kernel) {}

  /// Its job is launch `launch`; 0: none.
  void head(std::uint64_t launch, std::uint64_t issued_ns = 1) {
    ipc::Head& head = stub->head[0];
    ipc::store(head.version, head.version + 1);
    head.launch = launch;
    head.kernel = kernel;
    head.issued_ns = issued_ns;
    head.total = blocks;
    head.threads = 128;
    head.per_sm = 1;
    head.original = 1;
    ipc::store(head.version, head.version + 1);
    demand(launch == 0 ? 0 : blocks);
  }
  /// Reports the time of a launch.
  void timed(std::uint64_t took_ns, std::uint32_t confined_sms = 0) {
    const std::uint32_t written = ipc::load(stub->records_written);
    ipc::record_at(*stub.get(), written) = {.kernel = kernel,
                                            .issued_ns = 1,
                                            .start_ns = 1000,
                                            .done_ns = 1000 + took_ns,
                                            .evictions = confined_sms | ipc::kOriginalForm,
                                            .total = 4,
                                            .threads = 128,
                                            .per_sm = 1};
    ipc::store(stub->records_written, written + 1);
  }
  std::uint64_t kernel;
  std::uint32_t blocks = 4;
  std::string_view state() const { return job_state(client->slots()[0]); }
};

sched::SliceTree tree(const std::string& policy) {
  sched::SliceTree tree(sched::CapSM{kSms}, 0);
  EXPECT_TRUE(tree.change("/", {.policy = policy}, kRoot));
  return tree;
}

/// Lets time pass until every client has what was decided.
void settle(Scheduler& scheduler, std::initializer_list<Original*> all, std::uint64_t now_ns) {
  for (int i = 0; i < 4; ++i) {
    for (Original* one : all) one->apply();
    scheduler.update(now_ns + i);
  }
}

TEST(OriginalFormInScheduler, TheShorterGoesFirst) {
  for (const char* policy : {"sjf", "srt"}) {
    Scheduler scheduler({gpu(kSms)}, tree(policy));
    Original holder(scheduler, 1), longer(scheduler, 2), shorter(scheduler, 3);
    holder.timed(kMs / 10);
    longer.timed(500 * kMs);
    shorter.timed(5 * kMs);
    holder.head(1);
    settle(scheduler, {&holder, &longer, &shorter}, 1 * kMs);
    EXPECT_EQ(holder.state(), "running") << policy;
    longer.head(1, 2 * kMs);
    settle(scheduler, {&holder, &longer, &shorter}, 2 * kMs);
    shorter.head(1, 3 * kMs);
    settle(scheduler, {&holder, &longer, &shorter}, 3 * kMs);
    EXPECT_EQ(longer.state(), "waiting") << policy;
    EXPECT_EQ(shorter.state(), "waiting") << policy;
    holder.head(0);
    settle(scheduler, {&holder, &longer, &shorter}, 4 * kMs);
    EXPECT_EQ(shorter.state(), "running") << policy;
    EXPECT_EQ(shorter.granted(), kSms) << policy;
    EXPECT_EQ(longer.granted(), 0u) << policy;
    shorter.head(0);
    settle(scheduler, {&holder, &longer, &shorter}, 5 * kMs);
    EXPECT_EQ(longer.state(), "running") << policy;
  }
}

TEST(OriginalFormInScheduler, ANextLaunchIsAnotherJob) {
  Scheduler scheduler({gpu(kSms)}, tree("sjf"));
  Original a(scheduler, 2), b(scheduler, 3);
  a.timed(5 * kMs);
  b.timed(20 * kMs);
  a.head(1);
  settle(scheduler, {&a, &b}, 1 * kMs);
  b.head(1);
  settle(scheduler, {&a, &b}, 2 * kMs);
  EXPECT_EQ(b.state(), "waiting");
  a.kernel = 4;
  a.head(2);  // of unknown duration: 1 ms is assumed
  settle(scheduler, {&a, &b}, 3 * kMs);
  EXPECT_EQ(b.state(), "waiting");
  a.timed(100 * kMs);
  a.head(3);
  settle(scheduler, {&a, &b}, 4 * kMs);
  EXPECT_EQ(a.granted(), 0u);
  EXPECT_EQ(b.granted(), kSms);
  EXPECT_EQ(b.state(), "running");
}

/// One block between two large launches, as particle filters have one, leaves the others all SMs but one.
TEST(OriginalFormInScheduler, NoBlockNeedsMoreThanAnSm) {
  Scheduler scheduler({gpu(kSms)}, tree("hpf:spatial"));
  Original few(scheduler, 2), others(scheduler, 3);
  few.timed(kMs);
  others.timed(50 * kMs);
  others.blocks = kSms;
  others.head(1);
  settle(scheduler, {&few, &others}, 1 * kMs);
  EXPECT_EQ(others.granted(), kSms);
  few.blocks = 1;
  few.head(1, 2 * kMs);
  settle(scheduler, {&few, &others}, 2 * kMs);
  EXPECT_EQ(few.granted(), 1u);
  EXPECT_EQ(others.granted(), kSms - 1);
}

TEST(OriginalFormInScheduler, WhatIsLateGoesOnAsLongAsItIsLate) {
  Scheduler scheduler({gpu(kSms)}, tree("srt"));
  Original late(scheduler, 2), other(scheduler, 3), third(scheduler, 4);
  late.timed(5 * kMs);
  other.timed(10 * kMs);
  third.timed(500 * kMs);
  late.head(1);
  settle(scheduler, {&late, &other}, 1 * kMs);
  other.head(1);
  for (std::uint64_t ms = 2; ms < 15; ++ms) {
    settle(scheduler, {&late, &other}, ms * kMs);
    ASSERT_EQ(late.state(), "running") << ms;
  }
  third.head(1);
  settle(scheduler, {&late, &other, &third}, 14 * kMs + 100);
  EXPECT_EQ(late.state(), "running") << "9 ms late";
  third.head(0);
  settle(scheduler, {&late, &other, &third}, 30 * kMs);
  EXPECT_EQ(late.granted(), 0u) << "25 ms late, and the other needs 10";
  EXPECT_EQ(other.granted(), kSms);
}

TEST(OriginalFormInScheduler, ATimeOnSomeSmsCountsInProportion) {
  Scheduler scheduler({gpu(kSms)}, tree("frs"));
  Original a(scheduler, 7);
  a.timed(40 * kMs, 2);  // of the four SMs that it can fill
  scheduler.update(10);
  const auto known = scheduler.knowledge().list();
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].launches, 1);
  EXPECT_NEAR(known[0].observed_us, 20'000, 1);
  EXPECT_EQ(known[0].evict_us, 0) << "2 is no number of evictions";
  EXPECT_TRUE(known[0].curve.empty());
  const ipc::Head head{.kernel = 7, .total = 4, .threads = 128, .per_sm = 1, .original = 1};
  EXPECT_EQ(scheduler.knowledge().predict(1000, head, kSms), sched::Time{20 * kMs});
}

TEST(OriginalFormInScheduler, ItIsNotRecordedAsThoughItWereAll) {
  Scheduler scheduler({gpu(kSms)}, tree("frs"));
  Original a(scheduler, 7);
  const int reader = 0;
  scheduler.read_records(&reader, 1);
  a.timed(40 * kMs, 2);
  EXPECT_TRUE(scheduler.read_records(&reader, 2).launches.empty());
  EXPECT_EQ(scheduler.knowledge().list().size(), 1u);
  a.timed(40 * kMs, 2);
  const auto asked_for = scheduler.read_records(&reader, 3, true).launches;
  ASSERT_EQ(asked_for.size(), 1u);
  EXPECT_TRUE(asked_for[0].launch.original);
  EXPECT_EQ(asked_for[0].launch.evictions, 0) << "2 is no number of evictions";
  EXPECT_DOUBLE_EQ(asked_for[0].launch.sms, 2);
  EXPECT_NEAR(asked_for[0].launch.ran_us, 40'000, 1);
}

}  // namespace
}  // namespace gpuctl::daemon::scheduler_original_test
