#include <atomic>
#include <thread>

#include "softgpu/api/fixture.h"

namespace gpuctl::softgpu {
namespace {

class StreamApi : public ApiTest {
 protected:
  CUstream stream(unsigned flags) {
    CUstream result = nullptr;
    EXPECT_CU(cuStreamCreate(&result, flags));
    return result;
  }
};

TEST_F(StreamApi, OneStreamKeepsItsOrder) {
  Word* words_ = words(4);
  const CUstream s = stream(CU_STREAM_NON_BLOCKING);
  EXPECT_CU(launch_wait(words_, 2, 64, s));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 2, s));
  EXPECT_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(words_[1], 0U);
  words_[0] = 1;
  EXPECT_CU(cuStreamSynchronize(s));
  EXPECT_EQ(words_[1], 1U);
  EXPECT_CU(cuStreamQuery(s));
}

TEST_F(StreamApi, StreamsDoNotWaitForEachOther) {
  Word* words_ = words(4);
  const CUstream a = stream(CU_STREAM_NON_BLOCKING);
  const CUstream b = stream(CU_STREAM_NON_BLOCKING);
  EXPECT_CU(launch_wait(words_, 1, 32, a));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 2, b));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  words_[0] = 1;
}

TEST_F(StreamApi, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  Word* words_ = words(8);
  const CUstream blocking = stream(CU_STREAM_DEFAULT);
  const CUstream other = stream(CU_STREAM_DEFAULT);
  const CUstream free = stream(CU_STREAM_NON_BLOCKING);
  EXPECT_CU(launch_wait(words_, 1, 32, blocking));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 2, nullptr));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 3, other));
  EXPECT_CU(launch_mark(words_ + 4, words_ + 5, free));
  EXPECT_CU(cuStreamSynchronize(free));
  EXPECT_EQ(words_[1], 0U);  // neither the legacy stream's work nor later work has run
  EXPECT_EQ(cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
  words_[0] = 1;
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQ(words_[2], 0U);
  EXPECT_EQ(words_[3], 1U);
}

TEST_F(StreamApi, ADestroyedStreamFinishesItsWork) {
  Word* words_ = words(3);
  const CUstream s = stream(CU_STREAM_DEFAULT);
  EXPECT_CU(launch_wait(words_, 1, 32, s));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 2, s));
  EXPECT_CU(cuStreamDestroy(s));
  EXPECT_EQ(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  words_[0] = 1;
  EXPECT_CU(cuStreamSynchronize(nullptr));
  EXPECT_EQ(words_[1], 1U);
}

TEST_F(StreamApi, TheContextWaitsForTheWorkOfADestroyedStream) {
  for (const unsigned flags : {CU_STREAM_DEFAULT, CU_STREAM_NON_BLOCKING}) {
    Word* flag = words(1);
    CUstream stream = nullptr;
    ASSERT_CU(cuStreamCreate(&stream, flags));
    EXPECT_CU(launch_wait(flag, 1, 32, stream));
    EXPECT_CU(cuStreamDestroy(stream));
    std::thread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      *flag = 1;
    });
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_EQ(*flag, 1U);
    later.join();
  }
}

TEST_F(StreamApi, PerThreadStreamsAreOfTheirThread) {
  Word* words_ = words(4);
  EXPECT_CU(launch_wait(words_, 1, 32, CU_STREAM_PER_THREAD));
  std::thread([&] {
    EXPECT_CU(cuCtxSetCurrent(context_));
    EXPECT_CU(launch_mark(words_ + 1, words_ + 2, CU_STREAM_PER_THREAD));
    EXPECT_CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  EXPECT_EQ(words_[1], 1U);
  EXPECT_EQ(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  words_[0] = 1;
}

TEST_F(StreamApi, EventsOrderAndMeasure) {
  Word* words_ = words(4);
  const CUstream a = stream(CU_STREAM_NON_BLOCKING);
  const CUstream b = stream(CU_STREAM_NON_BLOCKING);
  CUevent begin = nullptr;
  CUevent end = nullptr;
  ASSERT_CU(cuEventCreate(&begin, CU_EVENT_DEFAULT));
  ASSERT_CU(cuEventCreate(&end, CU_EVENT_DEFAULT));
  EXPECT_CU(cuEventQuery(end));  // never recorded
  EXPECT_CU(cuEventRecord(begin, a));
  EXPECT_CU(launch_wait(words_, 1, 32, a));
  EXPECT_CU(cuEventRecord(end, a));
  EXPECT_CU(cuStreamWaitEvent(b, end, 0));
  EXPECT_CU(launch_mark(words_ + 1, words_ + 2, b));
  EXPECT_EQ(cuEventQuery(end), CUDA_ERROR_NOT_READY);
  float milliseconds = -1;
  EXPECT_EQ(cuEventElapsedTime(&milliseconds, begin, end), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(words_[1], 0U);
  usleep(20000);
  words_[0] = 1;
  EXPECT_CU(cuEventSynchronize(end));
  EXPECT_CU(cuStreamSynchronize(b));
  EXPECT_EQ(words_[1], 1U);
  EXPECT_CU(cuEventElapsedTime(&milliseconds, begin, end));
  EXPECT_GE(milliseconds, 5);  // `begin` may be recorded some time after the call returned
}

TEST_F(StreamApi, HostFunctionsRunInOrder) {
  Word* words_ = words(1);
  const CUstream s = stream(CU_STREAM_NON_BLOCKING);
  static std::atomic<int> calls;
  calls = 0;
  EXPECT_CU(launch_wait(words_, 1, 32, s));
  EXPECT_CU(cuLaunchHostFunc(
      s, [](void*) { ++calls; }, nullptr));
  EXPECT_CU(cuStreamAddCallback(
      s, [](CUstream, CUresult result, void*) { calls += result == CUDA_SUCCESS ? 10 : 0; }, nullptr, 0));
  EXPECT_EQ(calls, 0);
  words_[0] = 1;
  EXPECT_CU(cuStreamSynchronize(s));
  EXPECT_EQ(calls, 11);
}

TEST_F(StreamApi, WaitsForValuesAndWritesThem) {
  Word* words_ = words(8);
  const auto address = reinterpret_cast<CUdeviceptr>(words_);
  const CUstream s = stream(CU_STREAM_NON_BLOCKING);
  words_[2] = 0xffffffff;
  EXPECT_CU(cuStreamWaitValue32(s, address, 3, CU_STREAM_WAIT_VALUE_EQ));
  EXPECT_CU(cuStreamWriteValue32(s, address + 4, 1, 0));
  EXPECT_CU(cuStreamWaitValue32(s, address, 10, CU_STREAM_WAIT_VALUE_GEQ));
  EXPECT_CU(cuStreamWriteValue32(s, address + 4, 2, 0));
  EXPECT_CU(cuStreamWaitValue32(s, address, 0x100, CU_STREAM_WAIT_VALUE_AND));
  EXPECT_CU(cuStreamWriteValue32(s, address + 4, 3, 0));
  EXPECT_CU(cuStreamWaitValue32(s, address + 8, 0, CU_STREAM_WAIT_VALUE_NOR));
  EXPECT_CU(cuStreamWriteValue64(s, address + 16, 0x1234567890, 0));
  const auto reaches = [&](unsigned value) {
    for (int i = 0; i < 2000 && words_[1] != value; ++i) usleep(1000);
    return words_[1] == value;
  };
  usleep(5000);
  EXPECT_EQ(words_[1], 0U);
  words_[0] = 3;
  EXPECT_TRUE(reaches(1));
  words_[0] = 12;
  EXPECT_TRUE(reaches(2));
  words_[0] = 0x110;
  EXPECT_TRUE(reaches(3));
  EXPECT_EQ(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  words_[2] = 0xfffffffe;
  EXPECT_CU(cuStreamSynchronize(s));
  EXPECT_EQ(*reinterpret_cast<std::atomic<unsigned long long>*>(words_ + 4), 0x1234567890ULL);
  EXPECT_EQ(cuStreamWaitValue32(s, address + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuStreamWaitValue32(s, 64, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(StreamApi, ABatchRunsInItsOrder) {
  Word* words_ = words(4);
  const CUstream s = stream(CU_STREAM_NON_BLOCKING);
  CUstreamBatchMemOpParams entries[2] = {};
  entries[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  entries[0].waitValue.address = reinterpret_cast<CUdeviceptr>(words_);
  entries[0].waitValue.value = 1;
  entries[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  entries[1].writeValue.address = reinterpret_cast<CUdeviceptr>(words_ + 1);
  entries[1].writeValue.value = 9;
  EXPECT_CU(cuStreamBatchMemOp(s, 2, entries, 0));
  usleep(2000);
  EXPECT_EQ(words_[1], 0U);
  words_[0] = 1;
  EXPECT_CU(cuStreamSynchronize(s));
  EXPECT_EQ(words_[1], 9U);
}

TEST_F(StreamApi, PrioritiesAreClamped) {
  int least = 1;
  int greatest = 1;
  EXPECT_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT_EQ(least, 0);
  EXPECT_EQ(greatest, -5);
  CUstream s = nullptr;
  ASSERT_CU(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100));
  int priority = 0;
  EXPECT_CU(cuStreamGetPriority(s, &priority));
  EXPECT_EQ(priority, -5);
}

}  // namespace
}  // namespace gpuctl::softgpu
