// Several processes on one software GPU.
#include <signal.h>
#include <sys/wait.h>

#include <array>

#include "softgpu/api/process_fixture.h"

namespace gpuctl::softgpu {
namespace {

TEST_F(ProcessApi, TheHeadKernelHoldsUpAllBehindIt) {
  const pid_t first = client([&] {
    launch_wide_wait(6);  // 4 SMs: two blocks must wait
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(first, 4));
  const pid_t second = client([&] {
    launch_mark(0, 0);  // would fit beside the others
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(second, 0));
  usleep(50'000);
  EXPECT_TRUE(shows(second, 0));
  EXPECT_EQ(shared_->next, 0U);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(first), 0);
  EXPECT_EQ(wait_for(second), 0);
  EXPECT_EQ(shared_->next, 1U);
}

TEST_F(ProcessApi, KernelsOfTwoProcessesShareTheSmsWhenBothFit) {
  const pid_t first = client([&] {
    launch_wide_wait(4);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(first, 4));
  const pid_t second = client([&] {
    launch_mark(0, 0);
    EXPECT_CU(cuCtxSynchronize());
  });
  EXPECT_EQ(wait_for(second), 0);
  EXPECT_EQ(shared_->next, 1U);
  EXPECT_EQ(look().kernels.size(), 1U);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(first), 0);
}

TEST_F(ProcessApi, APercentageKeepsAProcessToAPartOfTheSms) {
  const pid_t half = client(
      [&] {
        int sms = 0;
        EXPECT_CU(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
        EXPECT_EQ(sms, 2);
        launch_wide_wait(5);
        EXPECT_CU(cuCtxSynchronize());
      },
      {{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "50"}});
  ASSERT_TRUE(shows(half, 2));  // of five, on a GPU of 4 SMs
  const pid_t other = client([&] {
    launch_mark(0, 0);  // behind the three blocks that wait
    EXPECT_CU(cuCtxSynchronize());
  });
  EXPECT_EQ(wait_for(other), 0);
  EXPECT_TRUE(shows(half, 2));
  shared_->flag = 1;
  EXPECT_EQ(wait_for(half), 0);
}

/// The second and the fourth stream share a queue.
TEST_F(ProcessApi, AStreamThatWaitsForAValueHoldsUpItsHardwareQueue) {
  const pid_t waits = client(
      [&] {
        CUdeviceptr words = 0;
        EXPECT_CU(cuMemAlloc(&words, 64));
        EXPECT_CU(cuMemsetD32(words, 0, 16));
        EXPECT_CU(cuCtxSynchronize());  // the streams do not wait for it
        std::array<CUstream, 3> streams{};
        for (CUstream& stream : streams) EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        EXPECT_CU(cuStreamWaitValue32(streams[0], words, 1, CU_STREAM_WAIT_VALUE_EQ));
        EXPECT_CU(cuStreamWriteValue32(streams[2], words + 4, 1, 0));
        EXPECT_CU(cuStreamWriteValue32(streams[1], words + 8, 1, 0));
        EXPECT_CU(cuStreamSynchronize(streams[1]));
        EXPECT_EQ(cuStreamQuery(streams[2]), CUDA_ERROR_NOT_READY);
        EXPECT_CU(cuStreamWriteValue32(streams[1], words, 1, 0));
        for (const CUstream stream : streams) EXPECT_CU(cuStreamSynchronize(stream));
      },
      {{"SOFTGPU_MPS_QUEUES", "120"}});
  EXPECT_EQ(wait_for(waits), 0);
}

TEST_F(ProcessApi, AKilledClientsSmsAreFree) {
  const pid_t victim = client([&] {
    launch_wide_wait(10);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(victim, 4));
  const pid_t heir = client([&] {
    launch_mark(0, 0);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(heir, 0));
  kill(victim, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(victim)));
  EXPECT_EQ(wait_for(heir), 0);
  EXPECT_EQ(shared_->next, 1U);
  EXPECT_TRUE(look().clients.empty());
}

TEST_F(ProcessApi, ExitWithWorkOutstandingDoesNotHang) {
  const pid_t child = client([&] {
    launch_wide_wait(6);
    EXPECT_TRUE(shows(getpid(), 4));
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_TRUE(look().kernels.empty());
}

TEST_F(ProcessApi, AForkedChildIsNotInitialized) {
  const pid_t child = client([&] {
    launch_mark(0, 0);
    EXPECT_CU(cuCtxSynchronize());
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      CUdeviceptr memory = 0;
      const bool refused = cuMemAlloc(&memory, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                           cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED && cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
      std::exit(refused ? 0 : 1);  // runs the driver's exit handler, which must not touch the parent's rows
    }
    EXPECT_EQ(wait_for(grandchild), 0);
    EXPECT_EQ(look().clients.size(), 1U);
    launch_mark(0, 1);
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_EQ(shared_->slot[1], 1U);
  });
  EXPECT_EQ(wait_for(child), 0);
}

}  // namespace
}  // namespace gpuctl::softgpu
