#include "libgpuslice/launch/usage_publisher.h"

#include <gtest/gtest.h>

#include "ipc/stub_map.h"
#include "libgpuslice/client/client.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {

namespace ipc = gpuctl::ipc;

/// The page of that client; null: there is none. Other tests of the room use it too.
ipc::Stub* g_stub = nullptr;

namespace {

int g_kicks = 0;

}  // namespace

/// A client whose daemon is the test.
Client::Client() = default;
Client& Client::get() {
  static auto* instance = new Client;
  g_launch_words.page = g_stub;
  return *instance;
}
const ipc::Grant* Client::grant(int device) const {
  return stub() ? &stub()->grant[device] : nullptr;
}
void Client::kick() const {
  ++g_kicks;
}

std::uint64_t hash_of(KernelInfo&) {
  return 4711;
}

namespace {

constexpr std::uint32_t kGpuSms = 100;

class UsagePublisherTest : public testing::Test {
 protected:
  UsagePublisherTest() {
    g_stub = &stub_;
    g_kicks = 0;
    stub_.grant[0].polled.capsm = kGpuSms;
    view_.set_polled(&stub_.grant[0].polled);
  }
  ~UsagePublisherTest() override { g_stub = nullptr; }

  /// Books a launch that could fill so many SMs.
  Launch& add(std::uint32_t sms) {
    Stream& stream = book_.stream_of(nullptr);
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = book_.take_slot(stream).value();
    launch->args.total = launch->args.tasks = sms;
    launch->config.block[0] = launch->config.block[1] = launch->config.block[2] = 2;
    launch->issued_ns = 50;
    launch->issued = true;
    Launch& raw = *launch;
    book_.add(stream, std::move(launch));
    return raw;
  }
  void take_out(Launch& launch) {
    launch.failed = true;
    book_.take_out(0, [](const Launch&) {});
  }
  int kicks_of_publishing() {
    const int before = g_kicks;
    usage_.publish();
    return g_kicks - before;
  }
  const ipc::Usage& told() const { return stub_.usage[0]; }
  const ipc::Head& head() const { return stub_.head[0]; }

  ipc::NewStub page_ = std::move(ipc::NewStub::create(1, 1).value());
  ipc::Stub& stub_ = *page_.map.get();
  FakeKernel kernel_;
  GrantView view_{0, kGpuSms};
  LaunchBook book_{fake_slots()};
  OpaqueWork opaque_;
  UsagePublisher usage_{view_, book_, opaque_};
};

TEST_F(UsagePublisherTest, DemandIsThatOfAllLaunchesInEitherForm) {
  add(30);
  opaque_.begin(20, kGpuSms, {});
  usage_.publish();
  EXPECT_EQ(told().demand, 50u);
  EXPECT_EQ(told().outstanding, 1u);
  usage_.withdraw();
  EXPECT_EQ(told().demand, 0u);
  EXPECT_EQ(told().outstanding, 0u);
}

TEST_F(UsagePublisherTest, WithoutADaemonNothingIsWritten) {
  g_stub = nullptr;
  add(30);
  usage_.publish();
  usage_.withdraw();
  EXPECT_EQ(told().demand, 0u);
}

TEST_F(UsagePublisherTest, TheDaemonIsNotWokenForDemandThatTheGrantCovers) {
  add(30);
  EXPECT_EQ(kicks_of_publishing(), 0);
}

TEST_F(UsagePublisherTest, TheDaemonIsWokenOnceForDemandAboveTheGrant) {
  stub_.grant[0].polled.capsm = 10;
  add(30);
  EXPECT_EQ(kicks_of_publishing(), 1);
  EXPECT_EQ(kicks_of_publishing(), 0);
  usage_.forget_told();
  EXPECT_EQ(kicks_of_publishing(), 1);
}

TEST_F(UsagePublisherTest, TheDaemonIsWokenForWorkInAPartOfTheGpuOnceForEachSize) {
  stub_.grant[0].polled.capsm = 50;
  Launch& first = add(30);
  EXPECT_EQ(kicks_of_publishing(), 1);
  take_out(first);
  EXPECT_EQ(kicks_of_publishing(), 0);
  Launch& second = add(30);
  EXPECT_EQ(kicks_of_publishing(), 0);
  take_out(second);
  usage_.publish();
  stub_.grant[0].polled.capsm = 60;
  add(30);
  EXPECT_EQ(kicks_of_publishing(), 1);
}

TEST_F(UsagePublisherTest, TheDaemonIsWokenForEachRiseWhileItsSmsMayBeLent) {
  stub_.grant[0].flags = ipc::kReportWork;
  add(30);
  EXPECT_EQ(kicks_of_publishing(), 1);
  opaque_.begin(20, kGpuSms, {});
  EXPECT_EQ(kicks_of_publishing(), 1);
  EXPECT_EQ(kicks_of_publishing(), 0);
}

TEST_F(UsagePublisherTest, WithoutAPolicyForJobsThereIsNoHead) {
  add(30);
  usage_.publish();
  EXPECT_EQ(head().version, 0u);
}

TEST_F(UsagePublisherTest, TheHeadIsTheOldestLaunch) {
  stub_.grant[0].jobs = ipc::kReportJobs;
  Launch& launch = add(30);
  add(40);
  launch.per_sm = 3;
  ipc::store(book_.host(launch).progress, 7u);
  EXPECT_EQ(kicks_of_publishing(), 1);
  EXPECT_EQ(head().version % 2, 0u);
  EXPECT_EQ(head().launch, 1u);
  EXPECT_EQ(head().kernel, 4711u);
  EXPECT_EQ(head().issued_ns, 50u);
  EXPECT_EQ(head().total, 30u);
  EXPECT_EQ(head().claimed, 7u);
  EXPECT_EQ(head().threads, 8u);
  EXPECT_EQ(head().per_sm, 3u);
  EXPECT_EQ(head().original, 0u);
}

TEST_F(UsagePublisherTest, AnotherHeadWakesTheDaemonIfItAskedForEachJob) {
  for (const std::uint32_t jobs : {ipc::kReportJobs, ipc::kReportEachJob}) {
    stub_.grant[0].jobs = jobs;
    Launch& first = add(30);
    Launch& second = add(30);
    usage_.publish();
    take_out(first);
    EXPECT_EQ(kicks_of_publishing(), jobs == ipc::kReportEachJob ? 1 : 0);
    EXPECT_EQ(head().launch, second.number);
    take_out(second);
    EXPECT_EQ(kicks_of_publishing(), 1);
    EXPECT_EQ(head().launch, 0u);
  }
}

TEST_F(UsagePublisherTest, ALaunchInOriginalFormIsTheHeadUntilAnOlderOneStarts) {
  stub_.grant[0].jobs = ipc::kReportJobs;
  opaque_.begin(20, kGpuSms,
                {.kernel = 5, .issued_ns = 40, .blocks = 20, .threads = 64, .shared = 16, .input_bytes = 1025});
  Launch& launch = add(30);
  launch.input_bytes = 4096;
  usage_.publish();
  EXPECT_EQ(head().original, 1u);
  EXPECT_EQ(head().launch, 2u);  // numbered behind the launch that was booked before it was first told
  EXPECT_EQ(head().kernel, 5u);
  EXPECT_EQ(head().issued_ns, 40u);
  EXPECT_EQ(head().total, 20u);
  EXPECT_EQ(head().threads, 64u);
  EXPECT_EQ(head().shared, 16u);
  EXPECT_EQ(head().input_kib, 2u);
  EXPECT_EQ(head().per_sm, 1u);
  usage_.publish();
  EXPECT_EQ(head().launch, 2u);
  ipc::store(book_.host(launch).started, 1u);
  usage_.publish();
  EXPECT_EQ(head().original, 0u);
  EXPECT_EQ(head().launch, 1u);
  EXPECT_EQ(head().input_kib, 4u);
}

TEST_F(UsagePublisherTest, TheDaemonIsWokenForALaunchThatWaitsForAGrant) {
  stub_.grant[0].jobs = ipc::kReportJobs;
  OpaqueWork::Waiting first{.job = {.issued_ns = 1}}, second{.job = {.issued_ns = 2}};
  opaque_.enter_gate(first);
  EXPECT_EQ(kicks_of_publishing(), 1);
  opaque_.enter_gate(second);
  EXPECT_EQ(kicks_of_publishing(), 0);
  EXPECT_EQ(head().launch, 1u);
}

TEST_F(UsagePublisherTest, LaunchesInOriginalFormAreCountedOnce) {
  usage_.count_original_launch();
  usage_.count_original_launch();
  EXPECT_EQ(usage_.take_original_launches(), 2u);
  EXPECT_EQ(usage_.take_original_launches(), 0u);
}

}  // namespace
}  // namespace gpuslice
