#include "libgpuslice/worker_streams.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "libgpuslice/driver.h"

namespace gpuslice {

namespace {

/// Streams of a GPU that does nothing, and of which some do not get on.
struct FakeGpu {
  std::map<CUstream, bool> idle;
  std::map<CUevent, CUstream> recorded;
  std::set<CUstream> stuck;
  int priority = 0;
  std::uintptr_t made = 0;
} gpu;

CUresult create_stream(CUstream* stream, unsigned, int priority) {
  *stream = reinterpret_cast<CUstream>(++gpu.made * 16);
  gpu.idle[*stream] = true;
  gpu.priority = priority;
  return CUDA_SUCCESS;
}

CUresult create_event(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(++gpu.made * 16);
  return CUDA_SUCCESS;
}

CUresult record(CUevent event, CUstream stream) {
  gpu.recorded[event] = stream;
  gpu.idle[stream] = false;
  return CUDA_SUCCESS;
}

CUresult query_event(CUevent event) { return gpu.stuck.contains(gpu.recorded.at(event)) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS; }
CUresult query_stream(CUstream stream) { return gpu.idle.at(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuStreamCreateWithPriority = create_stream;
    fake.cuStreamQuery = query_stream;
    fake.cuEventCreate = create_event;
    fake.cuEventRecord = record;
    fake.cuEventQuery = query_event;
    return fake;
  }();
  return table;
}

namespace {

constexpr std::uint64_t kMs = 1'000'000;

class WorkerStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    gpu = {};
    ASSERT_TRUE(streams_.make(-5));
  }

  CUstream send(const void* launch, std::uint32_t workers, std::uint64_t now) {
    const CUstream stream = streams_.take();
    if (stream) streams_.sends(stream, launch, workers, now);
    return stream;
  }

  WorkerStreams streams_;
  const int a_ = 0, b_ = 0;  ///< launches
};

TEST_F(WorkerStreamsTest, TakeTurns) {
  EXPECT_EQ(gpu.priority, -5);
  std::set<CUstream> used;
  for (int i = 0; i < 8; ++i) used.insert(send(&a_, 1, 0));
  EXPECT_EQ(used.size(), 8u);
  EXPECT_FALSE(streams_.all_idle());
  EXPECT_NE(streams_.take(), nullptr);  // behind a grid that gets on
  for (auto& [stream, idle] : gpu.idle) idle = true;
  EXPECT_TRUE(streams_.all_idle());
}

TEST_F(WorkerStreamsTest, WhatDoesNotBeginIsStuckUntilItDoes) {
  const CUstream held_up = send(&a_, 100, 0);
  send(&a_, 7, 0);
  send(&b_, 9, 0);
  gpu.stuck.insert(held_up);
  streams_.look(kMs);
  EXPECT_EQ(streams_.stuck(&a_), 0u);  // too early to say
  streams_.look(3 * kMs);
  EXPECT_EQ(streams_.stuck(&a_), 100u);
  EXPECT_EQ(streams_.stuck(&b_), 0u);
  gpu.stuck.clear();
  streams_.look(4 * kMs);
  EXPECT_EQ(streams_.stuck(&a_), 0u);
  gpu.stuck.insert(held_up);  // what comes later in that stream is not what was sent
  streams_.look(5 * kMs);
  EXPECT_EQ(streams_.stuck(&a_), 0u);
}

TEST_F(WorkerStreamsTest, NothingIsSentBehindWhatIsStuck) {
  CUstream last = nullptr;
  for (int i = 0; i < 8; ++i) gpu.stuck.insert(last = send(&a_, 1, 0));
  gpu.stuck.erase(last);
  streams_.look(3 * kMs);
  EXPECT_EQ(streams_.take(), last);
  gpu.stuck.insert(send(&b_, 1, 3 * kMs));
  streams_.look(6 * kMs);
  EXPECT_EQ(streams_.take(), nullptr);
  EXPECT_EQ(streams_.stuck(&b_), 1u);
}

}  // namespace
}  // namespace gpuslice
