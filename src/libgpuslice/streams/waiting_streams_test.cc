#include "libgpuslice/streams/waiting_streams.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "libgpuslice/driver/driver.h"

namespace gpuslice {

namespace {

CUcontext const kContext = reinterpret_cast<CUcontext>(16), kOther = reinterpret_cast<CUcontext>(32);
CUstream const kA = reinterpret_cast<CUstream>(256), kB = reinterpret_cast<CUstream>(512);

CUcontext current = kContext;
std::set<CUstream> busy;
int asked = 0;

CUresult get_context(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}

CUresult query_stream(CUstream stream) {
  ++asked;
  return busy.contains(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuCtxGetCurrent = get_context;
    fake.cuStreamQuery = query_stream;
    return fake;
  }();
  return table;
}

namespace {

class WaitingStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    current = kContext;
    busy.clear();
    asked = 0;
  }

  void put(CUstream stream) {
    const WaitingStreams::Putting putting(streams_, stream);
    busy.insert(stream);
  }

  WaitingStreams streams_;
};

TEST_F(WaitingStreamsTest, AWaitForAValueIsToldFromOthers) {
  put(kA);
  EXPECT_FALSE(streams_.any_for_a_value());
  EXPECT_TRUE(streams_.none_for_a_value());
  EXPECT_EQ(asked, 0);
  {
    const WaitingStreams::Putting putting(streams_, kB, WaitingStreams::Wait::kValue);
    EXPECT_FALSE(streams_.none_for_a_value()) << "it is being put";
  }
  EXPECT_TRUE(streams_.any_for_a_value());
  EXPECT_TRUE(streams_.none_for_a_value()) << "it is done";
  EXPECT_FALSE(streams_.any_for_a_value());
  EXPECT_FALSE(streams_.none()) << "the other is not";
}

TEST_F(WaitingStreamsTest, AStreamThatWaitedForAValueWaitsForOneUntilItIsDone) {
  { const WaitingStreams::Putting putting(streams_, kA, WaitingStreams::Wait::kValue); }
  put(kA);
  EXPECT_FALSE(streams_.none_for_a_value());
  streams_.destroyed(kA);
  EXPECT_FALSE(streams_.none_for_a_value());
  streams_.forget(kContext);
  EXPECT_TRUE(streams_.none_for_a_value());
}

TEST_F(WaitingStreamsTest, WaitUntilTheyAreDone) {
  EXPECT_TRUE(streams_.none());
  put(kA);
  put(kA);
  put(kB);
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(streams_.none());
  busy.erase(kA);
  EXPECT_FALSE(streams_.none());
  busy.erase(kB);
  EXPECT_TRUE(streams_.none());
  asked = 0;
  EXPECT_TRUE(streams_.none());
  EXPECT_EQ(asked, 0);  // they are forgotten
}

TEST_F(WaitingStreamsTest, WaitWhileSomethingIsBeingPutIn) {
  {
    const WaitingStreams::Putting putting(streams_, kA);
    EXPECT_FALSE(streams_.none());
  }
  EXPECT_TRUE(streams_.none());
}

TEST_F(WaitingStreamsTest, ThatWereDestroyedCountUnlessTheyWereDone) {
  put(kA);
  busy.clear();
  streams_.destroyed(kA);
  EXPECT_TRUE(streams_.none());
  put(kA);
  put(kB);
  streams_.destroyed(kA);
  busy.clear();
  asked = 0;
  EXPECT_FALSE(streams_.none());
  EXPECT_EQ(asked, 1);  // kB: the other handle is no longer valid
  streams_.forget(kOther);
  EXPECT_FALSE(streams_.none());
  streams_.forget(kContext);
  EXPECT_TRUE(streams_.none());
}

TEST_F(WaitingStreamsTest, DefaultStreamsAreAskedForWhereTheyAre) {
  put(CU_STREAM_LEGACY);
  put(CU_STREAM_PER_THREAD);
  busy.clear();
  current = kOther;
  EXPECT_FALSE(streams_.none());
  std::thread([this] {
    current = kContext;
    EXPECT_FALSE(streams_.none());
  }).join();
  EXPECT_EQ(asked, 1);  // the legacy stream
  EXPECT_TRUE(streams_.none());
}

}  // namespace
}  // namespace gpuslice
