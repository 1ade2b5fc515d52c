// cuCheckpointProcess* of this process and of another.
#include <atomic>
#include <thread>

#include "softgpu/api/process_fixture.h"

namespace gpuctl::softgpu {
namespace {

constexpr std::size_t kMiB = 1 << 20;

class CheckpointApi : public ProcessApi {
 protected:
  static CUprocessState state_of(pid_t pid) {
    CUprocessState state = CU_PROCESS_STATE_FAILED;
    EXPECT_CU(cuCheckpointProcessGetState(pid, &state));
    return state;
  }

  static CUresult lock(pid_t pid, unsigned timeout_ms = 0) {
    CUcheckpointLockArgs args{};
    args.timeoutMs = timeout_ms;
    return cuCheckpointProcessLock(pid, &args);
  }

  static CUdeviceptr allocate(std::size_t bytes) {
    CUdeviceptr memory = 0;
    EXPECT_CU(cuMemAlloc(&memory, bytes));
    return memory;
  }
};

TEST_F(CheckpointApi, GoesThroughTheStatesAndNoOtherWay) {
  const pid_t self = client([] {
    const pid_t pid = getpid();
    const CUdeviceptr memory = allocate(sizeof(int));
    const int written = 4711;
    EXPECT_CU(cuMemcpyHtoD(memory, &written, sizeof written));
    EXPECT_EQ(state_of(pid), CU_PROCESS_STATE_RUNNING);
    EXPECT_EQ(cuCheckpointProcessUnlock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(cuCheckpointProcessCheckpoint(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_CU(lock(pid));
    EXPECT_EQ(state_of(pid), CU_PROCESS_STATE_LOCKED);
    EXPECT_EQ(lock(pid), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_EQ(cuCheckpointProcessRestore(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_CU(cuCheckpointProcessCheckpoint(pid, nullptr));
    EXPECT_EQ(state_of(pid), CU_PROCESS_STATE_CHECKPOINTED);
    EXPECT_EQ(cuCheckpointProcessUnlock(pid, nullptr), CUDA_ERROR_ILLEGAL_STATE);
    EXPECT_CU(cuCheckpointProcessRestore(pid, nullptr));
    EXPECT_EQ(state_of(pid), CU_PROCESS_STATE_LOCKED);
    EXPECT_CU(cuCheckpointProcessUnlock(pid, nullptr));
    EXPECT_EQ(state_of(pid), CU_PROCESS_STATE_RUNNING);
    int read = 0;
    EXPECT_CU(cuMemcpyDtoH(&read, memory, sizeof read));
    EXPECT_EQ(read, written);
  });
  EXPECT_EQ(wait_for(self), 0);
}

TEST_F(CheckpointApi, CallsOfALockedProcessWaitUntilItIsUnlocked) {
  const pid_t self = client([] {
    CUcontext context = nullptr;
    EXPECT_CU(cuCtxGetCurrent(&context));
    EXPECT_CU(lock(getpid()));
    std::atomic<bool> begins{false}, allocated{false};
    std::thread other([&] {
      begins = true;
      EXPECT_CU(cuCtxSetCurrent(context));
      allocate(64);
      allocated = true;
    });
    EXPECT_TRUE(eventually([&] { return begins.load(); }));
    EXPECT_CU(cuCheckpointProcessCheckpoint(getpid(), nullptr));
    EXPECT_CU(cuCheckpointProcessRestore(getpid(), nullptr));
    EXPECT_FALSE(allocated);
    EXPECT_CU(cuCheckpointProcessUnlock(getpid(), nullptr));
    other.join();
    EXPECT_TRUE(allocated);
  });
  EXPECT_EQ(wait_for(self), 0);
}

/// As with NVIDIA's driver.
TEST_F(CheckpointApi, LooksPassTheLockAndEndTheProcessOnceMemoryIsAway) {
  const auto locked = [] {
    CUevent event = nullptr;
    EXPECT_CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
    EXPECT_CU(cuEventRecord(event, nullptr));
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_CU(lock(getpid()));
    float ms = -1;
    EXPECT_CU(cuEventQuery(event));
    EXPECT_CU(cuEventSynchronize(event));
    EXPECT_CU(cuEventElapsedTime(&ms, event, event));
    EXPECT_CU(cuStreamQuery(nullptr));
    EXPECT_CU(cuStreamSynchronize(nullptr));
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_CU(cuCheckpointProcessCheckpoint(getpid(), nullptr));
    return event;
  };
  const auto ends = [&](const auto& look) {
    int status = 0;
    const pid_t child = client([&] { look(locked()); });
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
  };
  float ms = 0;
  EXPECT_TRUE(ends([](CUevent event) { cuEventQuery(event); }));
  EXPECT_TRUE(ends([](CUevent event) { cuEventSynchronize(event); }));
  EXPECT_TRUE(ends([&](CUevent event) { cuEventElapsedTime(&ms, event, event); }));
  EXPECT_TRUE(ends([](CUevent) { cuStreamQuery(nullptr); }));
  EXPECT_TRUE(ends([](CUevent) { cuStreamSynchronize(nullptr); }));
  EXPECT_TRUE(ends([](CUevent) { cuCtxSynchronize(); }));
}

TEST_F(CheckpointApi, ALockWaitsForSubmittedWorkOrGivesUp) {
  const pid_t works = client([&] {
    launch_wide_wait(1);
    shared_->ready = 1;
    EXPECT_CU(cuCtxSynchronize());
    EXPECT_TRUE(eventually([&] { return shared_->next == 1; }));
  });
  ASSERT_TRUE(eventually([&] { return shared_->ready == 1; }));
  const pid_t other = client([&] {
    EXPECT_EQ(lock(works, 20), CUDA_ERROR_NOT_READY);
    EXPECT_EQ(state_of(works), CU_PROCESS_STATE_RUNNING);
    shared_->flag = 1;
    EXPECT_CU(lock(works));
    EXPECT_CU(cuCheckpointProcessUnlock(works, nullptr));
    shared_->next = 1;
  });
  EXPECT_EQ(wait_for(other), 0);
  EXPECT_EQ(wait_for(works), 0);
}

TEST_F(CheckpointApi, AnotherProcessHasTheMemoryMeanwhile) {
  setenv("SOFTGPU_SHARED_MEMORY_MIB", "96", 1);
  const pid_t first = client([&] {
    const CUdeviceptr memory = allocate(64 * kMiB);
    EXPECT_CU(cuMemsetD8(memory, 7, 64 * kMiB));
    shared_->ready = 1;
    EXPECT_TRUE(eventually([&] { return shared_->next == 1; }));
    unsigned char last = 0;
    EXPECT_CU(cuMemcpyDtoH(&last, memory + 64 * kMiB - 1, 1));
    EXPECT_EQ(last, 7);
  });
  ASSERT_TRUE(eventually([&] { return shared_->ready == 1; }));
  const pid_t second = client([&] {
    CUdeviceptr memory = 0;
    EXPECT_EQ(cuMemAlloc(&memory, 64 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CU(lock(first));
    EXPECT_CU(cuCheckpointProcessCheckpoint(first, nullptr));
    memory = allocate(64 * kMiB);
    EXPECT_EQ(cuCheckpointProcessRestore(first, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(state_of(first), CU_PROCESS_STATE_CHECKPOINTED);
    EXPECT_CU(cuMemFree(memory));
    EXPECT_CU(cuCheckpointProcessRestore(first, nullptr));
    EXPECT_EQ(cuMemAlloc(&memory, 64 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_CU(cuCheckpointProcessUnlock(first, nullptr));
    shared_->next = 1;
  });
  EXPECT_EQ(wait_for(second), 0);
  EXPECT_EQ(wait_for(first), 0);
  unsetenv("SOFTGPU_SHARED_MEMORY_MIB");
}

TEST_F(CheckpointApi, TheMemoryOfADeadProcessIsFree) {
  const std::map<std::string, std::string> little{{"SOFTGPU_SHARED_MEMORY_MIB", "96"}};
  const pid_t first = client(
      [&] {
        allocate(64 * kMiB);
        kill(getpid(), SIGKILL);
      },
      little);
  EXPECT_NE(wait_for(first), 0);
  EXPECT_EQ(wait_for(client([] { allocate(64 * kMiB); }, little)), 0);
}

TEST_F(CheckpointApi, ManagedMemoryMakesTheProcessFail) {
  const pid_t self = client([] {
    CUdeviceptr managed = 0;
    EXPECT_CU(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    EXPECT_CU(lock(getpid()));
    EXPECT_EQ(cuCheckpointProcessCheckpoint(getpid(), nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(state_of(getpid()), CU_PROCESS_STATE_FAILED);
  });
  EXPECT_EQ(wait_for(self), 0);
}

TEST_F(CheckpointApi, KnowsOnlyLivingProcessesThatUseTheGpu) {
  const pid_t self = client([] {
    CUprocessState state = CU_PROCESS_STATE_RUNNING;
    EXPECT_EQ(cuCheckpointProcessGetState(getppid(), &state), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCheckpointProcessGetState(0, &state), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cuCheckpointProcessGetState(getpid(), nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(lock(getppid()), CUDA_ERROR_INVALID_VALUE);
  });
  EXPECT_EQ(wait_for(self), 0);
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  EXPECT_EQ(cuCheckpointProcessGetState(getpid(), &state), CUDA_ERROR_NOT_INITIALIZED);
}

TEST_F(CheckpointApi, CanBeAbsent) {
  const pid_t self =
      client([] { EXPECT_EQ(lock(getpid()), CUDA_ERROR_NOT_SUPPORTED); }, {{"SOFTGPU_CHECKPOINTS", "0"}});
  EXPECT_EQ(wait_for(self), 0);
}

}  // namespace
}  // namespace gpuctl::softgpu
