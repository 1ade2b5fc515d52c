#include "libgpuslice/agent/worker_streams.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "libgpuslice/base/driver.h"
#include "libgpuslice/launch/sent_workers.h"

namespace gpuslice {

namespace {

/// Streams of a GPU that does nothing unless a test says so.
struct FakeGpu {
  std::map<CUstream, bool> idle;
  int priority = 0;
  std::uintptr_t made = 0;
} gpu;

CUresult create_stream(CUstream* stream, unsigned, int priority) {
  *stream = reinterpret_cast<CUstream>(++gpu.made * 16);
  gpu.idle[*stream] = true;
  gpu.priority = priority;
  return CUDA_SUCCESS;
}

CUresult query_stream(CUstream stream) {
  return gpu.idle.at(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuStreamCreateWithPriority = create_stream;
    fake.cuStreamQuery = query_stream;
    return fake;
  }();
  return table;
}

namespace {

class WorkerStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    gpu = {};
    ASSERT_TRUE(streams_.make(-5));
  }

  CUstream send(const void* launch) {
    const CUstream stream = streams_.take(launch);
    if (stream) gpu.idle[stream] = false;
    return stream;
  }

  WorkerStreams streams_;
  const int a_ = 0, b_ = 0;  ///< launches
};

TEST_F(WorkerStreamsTest, TakeTurns) {
  EXPECT_EQ(gpu.priority, -5);
  std::set<CUstream> used;
  for (int i = 0; i < 8; ++i) used.insert(send(&a_));
  EXPECT_EQ(used.size(), 8u);
  EXPECT_FALSE(streams_.all_idle());
  EXPECT_NE(streams_.take(&a_), nullptr);  // behind a grid that makes progress
  for (auto& [stream, idle] : gpu.idle) idle = true;
  EXPECT_TRUE(streams_.all_idle());
}

TEST_F(WorkerStreamsTest, NothingIsSentBehindWhatIsStuck) {
  std::set<CUstream> of_a;
  for (int i = 0; i < 7; ++i) of_a.insert(send(&a_));
  const CUstream of_b = send(&b_);
  streams_.stuck(&a_);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(streams_.take(&b_), of_b);
  streams_.stuck(&b_);
  EXPECT_EQ(streams_.take(&b_), nullptr);
  gpu.idle[*of_a.begin()] = true;
  EXPECT_EQ(send(&b_), *of_a.begin());
  EXPECT_EQ(streams_.take(&b_), *of_a.begin());  // its work is new now
}

TEST_F(WorkerStreamsTest, ThoseThatWereStuckLeastOftenComeFirst) {
  std::set<CUstream> held_up;  // every other stream shares the queue of the program's
  for (int launch = 0; launch < 8; ++launch) {
    const CUstream stream = send(&a_);
    ASSERT_NE(stream, nullptr);
    if (reinterpret_cast<std::uintptr_t>(stream) / 16 % 2 == 0) {
      held_up.insert(stream);
      streams_.stuck(&a_);
      streams_.stuck(&a_);  // at the next look too
    }
    for (auto& [any, idle] : gpu.idle) idle = true;
  }
  EXPECT_EQ(held_up.size(), 4u);
  std::set<CUstream> used;
  for (int launch = 0; launch < 16; ++launch) {
    used.insert(send(&a_));
    for (auto& [any, idle] : gpu.idle) idle = true;
  }
  EXPECT_EQ(used.size(), 4u) << "by turns";
  for (const CUstream stream : used) EXPECT_FALSE(held_up.contains(stream));
}

TEST(SentWorkers, AreOverdueWhenTheyDoNotBeginInTime) {
  constexpr std::uint64_t kNow = 1'000'000'000, kTime = SentWorkers::kPatienceNs;
  SentWorkers sent;
  EXPECT_EQ(sent.overdue(0, 0, kNow), 0u);
  sent.send(100, kNow);
  sent.send(10, kNow + 1);
  EXPECT_EQ(sent.overdue(0, 0, kNow + kTime - 1), 0u);
  EXPECT_EQ(sent.overdue(30, 0, kNow + kTime), 80u);
  EXPECT_EQ(sent.overdue(110, 0, kNow + kTime), 0u);
  EXPECT_EQ(sent.overdue(111, 0, kNow + kTime), 0u);
  EXPECT_EQ(sent.overdue(30, 5, kNow + kTime), 0u);  // with such long chunks, workers may not have posted yet
  sent.send(7, kNow + kTime);
  EXPECT_EQ(sent.overdue(30, 0, kNow + kTime), 80u);
  EXPECT_EQ(sent.overdue(30, 0, kNow + 2 * kTime), 87u);
}

}  // namespace
}  // namespace gpuslice
