#include "libgpuslice/base/capture.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

CUcontext const kContext = reinterpret_cast<CUcontext>(16), kOther = reinterpret_cast<CUcontext>(32);
CUstream const kA = reinterpret_cast<CUstream>(256), kB = reinterpret_cast<CUstream>(512);

CUcontext current_one = kContext;
std::set<CUstream> capture_on;

CUresult get_current(CUcontext* context) {
  *context = current_one;
  return CUDA_SUCCESS;
}

CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status) {
  *status = capture_on.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuCtxGetCurrent = get_current;
    fake.cuStreamIsCapturing = capture_status;
    return fake;
  }();
  return table;
}

namespace {

class CapturesTest : public testing::Test {
 protected:
  void SetUp() override {
    current_one = kContext;
    capture_on.clear();
  }

  std::uint64_t begin(CUstream stream) {
    capture_on.insert(stream);
    return captures_.begins(stream);
  }

  Captures captures_;
};

TEST_F(CapturesTest, EndWithTheirCall) {
  EXPECT_FALSE(captures_.any());
  begin(kA);
  begin(kB);
  capture_on.erase(kA);
  captures_.ended(kA);
  EXPECT_TRUE(captures_.any());
  captures_.ended(kB);
  EXPECT_TRUE(captures_.any()) << "the driver did not end it";
  capture_on.erase(kB);
  captures_.ended(kB);
  EXPECT_FALSE(captures_.any());
  captures_.ended(kB);
  EXPECT_FALSE(captures_.any());
}

TEST_F(CapturesTest, OneThatTheDriverRefusesLeavesTheOtherOfItsStream) {
  begin(kA);
  const std::uint64_t again = begin(kA);
  captures_.refused(again);
  EXPECT_TRUE(captures_.any());
  capture_on.clear();
  captures_.ended(kA);
  EXPECT_FALSE(captures_.any());
}

TEST_F(CapturesTest, EndWithTheirStream) {
  begin(kA);
  begin(kB);
  captures_.destroyed(kA);
  EXPECT_TRUE(captures_.any());
  captures_.destroyed(kB);
  EXPECT_FALSE(captures_.any());
}

TEST_F(CapturesTest, EndWithTheirContext) {
  begin(kA);
  current_one = kOther;
  begin(kB);
  captures_.forget(kContext);
  EXPECT_TRUE(captures_.any());
  captures_.forget(kOther);
  EXPECT_FALSE(captures_.any());
}

TEST_F(CapturesTest, OfAThreadsOwnStreamEndWithTheThread) {
  Captures& all = Captures::get();
  std::thread([&] {
    all.begins(CU_STREAM_PER_THREAD);
    EXPECT_TRUE(all.any());
  }).join();
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace gpuslice
