#include "libgpuslice/launch/stream_jobs.h"

#include <gtest/gtest.h>

#include "ipc/stub_map.h"
#include "libgpuslice/testing/fake_driver.h"

namespace gpuslice {

/// The page of the client; null: there is none (usage_publisher_test.cc).
extern gpuctl::ipc::Stub* g_stub;

}  // namespace gpuslice

namespace gpuslice::stream_jobs_test {
namespace {

namespace ipc = gpuctl::ipc;

constexpr std::uint64_t kMs = 1'000'000;

class StreamJobsTest : public testing::Test {
 protected:
  StreamJobsTest() {
    g_stub = page_.map.get();
    view_.set_polled(&page_.map->grant[0].polled);
    turns(0);
  }
  ~StreamJobsTest() override {
    g_stub = nullptr;
    for (const std::uintptr_t number : {1, 2, 3, 4, 5, 6, 7}) StreamLevels::get().destroyed(handle(number));
  }

  static CUstream handle(std::uintptr_t number) { return reinterpret_cast<CUstream>(4096 * number); }
  void turns(std::uint32_t places) {
    page_.map->grant[0].jobs = ipc::kReportEachJob | ipc::kStreamsAreJobs | places << ipc::kTurnsShift;
  }
  /// Books a launch in the stream of that number, that runs.
  Launch& add(std::uintptr_t number) {
    Stream& stream = book_.stream_of(handle(number));
    if (stream.outstanding.empty()) stream.limit = static_cast<std::uint32_t>(number <= 5 ? number : 0);
    auto launch = std::make_unique<Launch>();
    launch->instance = &kernel_.instance;
    launch->slot = book_.take_slot(stream).value();
    launch->args.total = launch->args.tasks = 1000;
    launch->config.block[0] = launch->config.block[1] = launch->config.block[2] = 2;
    launch->issued = true;
    Launch& raw = *launch;
    book_.add(stream, std::move(launch));
    ipc::store(book_.host(raw).started, 1u);
    return raw;
  }
  void end(Launch& launch) {
    launch.failed = true;
    book_.take_out(0, [](const Launch&) {});
  }
  bool held(std::uintptr_t number) { return book_.stream_of(handle(number)).held; }
  const ipc::Head& head(std::uint32_t place) { return ipc::stream_head(*page_.map.get(), 0, place); }

  ipc::NewStub page_ = std::move(*ipc::NewStub::create(1, 1));
  FakeKernel kernel_;
  GrantView view_{0, 100};
  LaunchBook book_{fake_slots()};
  OpaqueWork opaque_;
  StreamJobs jobs_{view_, book_, opaque_};
};

TEST_F(StreamJobsTest, EachStreamWithWorkHasAHead) {
  StreamLevels::get().made(handle(2), -2);
  const Launch& one = add(1);
  Launch& other = add(2);
  add(2);
  jobs_.look(1 * kMs);
  EXPECT_TRUE(jobs_.publish(false));
  EXPECT_EQ(head(0).launch, one.number);
  EXPECT_EQ(head(1).launch, other.number);
  EXPECT_EQ(head(0).level, 0);
  EXPECT_EQ(head(1).level, 2);
  EXPECT_EQ(head(1).begun, 1);
  EXPECT_EQ(head(1).total, 1000u);
  EXPECT_NE(head(0).stream, head(1).stream);
  EXPECT_EQ(head(1).version % 2, 0u);
  EXPECT_FALSE(jobs_.publish(true));
  end(other);
  EXPECT_FALSE(jobs_.publish(false)) << "another head, of which it need not hear at once";
  end(*book_.stream_of(handle(2)).outstanding.front());
  EXPECT_TRUE(jobs_.publish(false));
  EXPECT_EQ(head(1).launch, 0u);
}

TEST_F(StreamJobsTest, AStreamWithoutItsTurnIsHeldUntilTheOtherIsOver) {
  Launch& one = add(1);
  Launch& other = add(2);
  EXPECT_FALSE(jobs_.look(1 * kMs)) << "nobody has the turn";
  turns(2);
  EXPECT_TRUE(jobs_.look(2 * kMs));
  EXPECT_TRUE(held(1));
  EXPECT_FALSE(held(2));
  EXPECT_TRUE(one.measured.held);
  EXPECT_FALSE(other.measured.held);
  EXPECT_FALSE(jobs_.look(3 * kMs));
  end(other);
  EXPECT_TRUE(jobs_.look(4 * kMs));
  EXPECT_FALSE(held(1));
}

TEST_F(StreamJobsTest, AStreamWhoseKernelHasNotBegunHoldsNoneThatRuns) {
  add(1);
  Launch& other = add(2);
  ipc::store(book_.host(other).started, 0u);
  turns(2);
  jobs_.look(1 * kMs);
  EXPECT_FALSE(held(1)) << "the other may wait for it";
  ipc::store(book_.host(other).started, 1u);
  jobs_.look(2 * kMs);
  EXPECT_TRUE(held(1));
  ipc::store(book_.host(other).progress, 10u);
  jobs_.look(90 * kMs);
  jobs_.look(170 * kMs);
  EXPECT_TRUE(held(1)) << "it got on";
  jobs_.look(190 * kMs);
  EXPECT_FALSE(held(1)) << "it did not get on for 100 ms";
}

TEST_F(StreamJobsTest, ALaunchInOriginalFormWaitsAtTheGate) {
  const StreamKey original{handle(3), 0};
  add(1);
  OpaqueWork::Waiting waiting{.job = {.kernel = 9, .issued_ns = 5, .blocks = 10, .stream = original}};
  opaque_.enter_gate(waiting);
  turns(1);
  jobs_.look(1 * kMs);
  EXPECT_TRUE(jobs_.gated(original));
  EXPECT_FALSE(jobs_.gated({handle(1), 0}));
  EXPECT_FALSE(jobs_.gated({handle(7), 0})) << "a stream without a place is not held";
  jobs_.publish(true);
  EXPECT_EQ(head(1).original, 1u);
  EXPECT_EQ(head(1).kernel, 9u);
  EXPECT_NE(head(1).launch, 0u);
  turns(2);
  jobs_.look(2 * kMs);
  EXPECT_FALSE(jobs_.gated(original));
  EXPECT_FALSE(held(1)) << "it is not known to run";
  opaque_.leave_gate(waiting);
}

TEST_F(StreamJobsTest, MoreStreamsThanPlacesRunWithTheClient) {
  for (const std::uintptr_t number : {1, 2, 3, 4, 5, 6}) add(number);
  turns(1);
  jobs_.look(1 * kMs);
  for (const std::uintptr_t number : {2, 3, 4, 5}) EXPECT_TRUE(held(number)) << number;
  EXPECT_FALSE(held(6));
}

TEST_F(StreamJobsTest, NothingIsHeldOnceStreamsAreNoJobs) {
  add(1);
  Launch& other = add(2);
  turns(2);
  jobs_.look(1 * kMs);
  jobs_.publish(true);
  page_.map->grant[0].jobs = ipc::kReportJobs;
  EXPECT_TRUE(jobs_.look(2 * kMs));
  EXPECT_FALSE(held(1));
  EXPECT_FALSE(jobs_.gated({handle(1), 0}));
  EXPECT_TRUE(jobs_.publish(false));
  EXPECT_EQ(head(0).launch, 0u);
  end(other);
  EXPECT_FALSE(jobs_.look(3 * kMs));
}

}  // namespace
}  // namespace gpuslice::stream_jobs_test
