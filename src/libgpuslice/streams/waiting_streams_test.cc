#include "libgpuslice/streams/waiting_streams.h"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "libgpuslice/base/capture.h"
#include "libgpuslice/base/driver.h"

namespace gpuslice {

namespace {

CUcontext const kContext = reinterpret_cast<CUcontext>(16), kOther = reinterpret_cast<CUcontext>(32);
CUstream const kA = reinterpret_cast<CUstream>(256), kB = reinterpret_cast<CUstream>(512);

thread_local CUcontext current = nullptr;
std::set<CUstream> busy, captured, gone;
int asked = 0, events = 0;

/// What a stream had to do when the event was recorded.
struct FakeEvent {
  std::shared_ptr<bool> reached = std::make_shared<bool>(true);
};
/// Of each stream, of what its events wait for.
std::map<CUstream, std::vector<std::shared_ptr<bool>>> marks;

FakeEvent& event_of(CUevent event) {
  return *reinterpret_cast<FakeEvent*>(event);
}

/// The stream gets past everything that it was given so far.
void pass(CUstream stream) {
  for (const auto& mark : marks[stream]) *mark = true;
}

/// And has nothing else to do.
void end(CUstream stream) {
  pass(stream);
  busy.erase(stream);
}

CUresult get_context(CUcontext* context) {
  *context = current;
  return CUDA_SUCCESS;
}

CUresult set_context(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

CUresult query_stream(CUstream stream) {
  ++asked;
  EXPECT_FALSE(gone.contains(stream) || captured.contains(stream));
  EXPECT_TRUE(stream != CU_STREAM_LEGACY || current == kContext);
  return busy.contains(stream) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult is_capturing(CUstream stream, CUstreamCaptureStatus* status) {
  *status = captured.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

/// To the end of the test program, as the driver's are there to that of their context.
std::list<FakeEvent> made;

CUresult create_event(CUevent* event, unsigned) {
  ++events;
  *event = reinterpret_cast<CUevent>(&made.emplace_back());
  return CUDA_SUCCESS;
}

CUresult record_event(CUevent event, CUstream stream) {
  EXPECT_FALSE(gone.contains(stream) || captured.contains(stream));
  event_of(event).reached = std::make_shared<bool>(!busy.contains(stream));
  marks[stream].push_back(event_of(event).reached);
  return CUDA_SUCCESS;
}

CUresult query_event(CUevent event) {
  return *event_of(event).reached ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

}  // namespace

const Driver& driver() {
  static const Driver table = [] {
    Driver fake;
    fake.cuCtxGetCurrent = get_context;
    fake.cuCtxSetCurrent = set_context;
    fake.cuStreamQuery = query_stream;
    fake.cuStreamIsCapturing = is_capturing;
    fake.cuEventCreate = create_event;
    fake.cuEventRecord = record_event;
    fake.cuEventQuery = query_event;
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
    captured.clear();
    gone.clear();
    marks.clear();
    asked = events = 0;
  }

  void put(CUstream stream) {
    busy.insert(stream);
    const WaitingStreams::Putting putting(streams_, stream);
  }

  void destroy(CUstream stream) {
    streams_.destroyed(stream);
    gone.insert(stream);
  }

  std::uint64_t begin_capture(CUstream stream) {
    streams_.capture_begins(stream);
    captured.insert(stream);
    return Captures::get().begins(stream);
  }

  void end_capture(CUstream stream) {
    captured.erase(stream);
    Captures::get().ended(stream);
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

TEST_F(WaitingStreamsTest, WaitUntilTheyAreDone) {
  EXPECT_TRUE(streams_.none());
  put(kA);
  put(kA);
  put(kB);
  EXPECT_EQ(asked, 0);
  EXPECT_FALSE(streams_.none());
  end(kA);
  EXPECT_FALSE(streams_.none());
  end(kB);
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

TEST_F(WaitingStreamsTest, AStreamThatNeverRunsDryIsDoneWhenItHasGotOn) {
  put(kA);
  EXPECT_FALSE(streams_.none());
  pass(kA);  // it has other work by now
  EXPECT_TRUE(streams_.none());
  put(kA);
  EXPECT_FALSE(streams_.none()) << "what was put into it later is another matter";
  EXPECT_EQ(events, 1) << "the event is used again";
}

TEST_F(WaitingStreamsTest, OneThatWasDestroyedIsDoneWhenItHasGotOn) {
  put(kA);
  put(kB);
  destroy(kA);
  end(kB);
  EXPECT_FALSE(streams_.none());
  pass(kA);
  EXPECT_TRUE(streams_.none());
  put(kB);
  busy.erase(kB);
  destroy(kB);
  EXPECT_TRUE(streams_.none()) << "it was done already";
}

TEST_F(WaitingStreamsTest, AContextTakesItsStreamsAlong) {
  put(kA);
  put(kB);
  destroy(kA);
  streams_.forget(kOther);
  EXPECT_FALSE(streams_.none());
  streams_.forget(kContext);
  EXPECT_TRUE(streams_.none());
  put(kB);
  EXPECT_FALSE(streams_.none());
  EXPECT_EQ(events, 3) << "events go with their context";
}

TEST_F(WaitingStreamsTest, TheLegacyStreamIsAskedForInItsContext) {
  put(CU_STREAM_LEGACY);
  current = kOther;
  EXPECT_FALSE(streams_.none());
  EXPECT_EQ(current, kOther);
  end(CU_STREAM_LEGACY);
  EXPECT_TRUE(streams_.none());
}

TEST_F(WaitingStreamsTest, AThreadsOwnStreamIsDoneWhenItHasGotOnAlsoAfterTheThread) {
  for (int i = 0; i < 2; ++i) {  // perhaps with the same pthread_self()
    std::thread([this] {
      current = kContext;
      put(CU_STREAM_PER_THREAD);
    }).join();
  }
  EXPECT_FALSE(streams_.none());
  *marks[CU_STREAM_PER_THREAD].back() = true;
  EXPECT_FALSE(streams_.none());
  pass(CU_STREAM_PER_THREAD);
  EXPECT_TRUE(streams_.none());
  EXPECT_EQ(asked, 0);
}

TEST_F(WaitingStreamsTest, AreNotAskedWhileStreamsAreCaptured) {
  put(kA);
  begin_capture(kB);
  EXPECT_FALSE(streams_.none());
  EXPECT_EQ(asked, 0) << "it may join the capture at any time";
  end_capture(kB);
  EXPECT_FALSE(streams_.none());
  begin_capture(kB);
  pass(kA);
  EXPECT_TRUE(streams_.none()) << "its event can be asked";
  end_capture(kB);
}

TEST_F(WaitingStreamsTest, OneThatIsCapturedHasItsEventBefore) {
  put(kA);
  begin_capture(kA);
  EXPECT_FALSE(streams_.none());
  pass(kA);
  EXPECT_TRUE(streams_.none());
  Captures::get().destroyed(kA);
  EXPECT_FALSE(capturing_anything());
}

}  // namespace
}  // namespace gpuslice
