// Several processes on one software GPU. The test's own process never calls cuInit: it forks clients that do, and looks
// at the shared table.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>

#include "softgpu/api/fixture.h"
#include "softgpu/table.h"

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;

/// Long enough for a loaded machine; nothing is expected to take that long.
constexpr auto kPatience = 60s;

/// Words that all clients and their kernels see.
struct Shared {
  Word flag;
  Word next;
  Word slot[8];
  Word ready;
};

class ProcessApi : public testing::Test {
 protected:
  ProcessApi() {
    use_private_table();
    shared_ =
        static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }

  ~ProcessApi() override { munmap(shared_, sizeof(Shared)); }

  /// A client process that runs `body` and exits with the number of its gtest failures.
  pid_t client(const std::function<void()>& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    EXPECT_CU(cuInit(0));
    CUcontext context = nullptr;
    EXPECT_CU(cuCtxCreate(&context, nullptr, 0, 0));
    EXPECT_CU(cuMemHostRegister(shared_, sizeof(Shared), CU_MEMHOSTREGISTER_DEVICEMAP));
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }

  static CUfunction load(const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, kTestPtx));
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }

  /// Blocks that fill an SM's shared memory each, and end when the flag is set.
  void launch_wide_wait(unsigned blocks) {
    const CUfunction function = load("wait_for");
    constexpr int kShared = 200 * 1024;
    EXPECT_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kShared));
    Word* flag = &shared_->flag;
    void* params[] = {&flag};
    EXPECT_CU(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, kShared, nullptr, params, nullptr));
  }

  void launch_mark(unsigned shared_bytes, unsigned slot) {
    Word* next = &shared_->next;
    Word* place = &shared_->slot[slot];
    void* params[] = {&next, &place};
    EXPECT_CU(cuLaunchKernel(load("mark"), 1, 1, 1, 32, 1, 1, shared_bytes, nullptr, params, nullptr));
  }

  static bool eventually(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      usleep(500);
    }
    return true;
  }

  static Snapshot look() {
    const auto reader = TableReader::open(std::getenv("SOFTGPU_TABLE"));
    return reader.has_value() ? (*reader)->snapshot() : Snapshot{};
  }

  /// True once a kernel of that process is in the table with that many blocks placed.
  static bool shows(pid_t pid, std::uint64_t placed) {
    return eventually([&] {
      for (const KernelView& kernel : look().kernels) {
        if (kernel.pid == static_cast<std::uint32_t>(pid) && kernel.placed == placed) return true;
      }
      return false;
    });
  }

  static int wait_for(pid_t child) {
    int status = -1;
    const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
    if (!ended) kill(child, SIGKILL);
    return ended ? status : -1;
  }

  Shared* shared_;
};

TEST_F(ProcessApi, TheHeadKernelHoldsUpAllBehindIt) {
  const pid_t first = client([&] {
    launch_wide_wait(6);  // 4 SMs: two blocks have to wait
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

TEST_F(ProcessApi, UrgentKernelsOvertakeWithinAProcess) {
  const pid_t child = client([&] {
    // All four SMs are full; one of them becomes free while the others stay, so that placement shows in the order.
    constexpr int kShared = 200 * 1024;
    const auto launch = [&](const char* name, Word* first, Word* second, unsigned blocks, int priority) {
      CUstream stream = nullptr;
      EXPECT_CU(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
      const CUfunction function = load(name);
      EXPECT_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kShared));
      void* params[] = {&first, &second};
      EXPECT_CU(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, kShared, stream, params, nullptr));
      return stream;
    };
    const auto queued = [](std::size_t kernels) {
      return eventually([&] { return look().kernels.size() == kernels; });
    };
    launch("wait_for", &shared_->flag, nullptr, 3, 0);
    EXPECT_TRUE(queued(1));
    launch("wait_for", &shared_->ready, nullptr, 1, 0);
    EXPECT_TRUE(queued(2));
    const CUstream ordinary = launch("mark", &shared_->next, &shared_->slot[0], 1, 0);
    EXPECT_TRUE(queued(3));
    const CUstream urgent = launch("mark", &shared_->next, &shared_->slot[1], 1, -5);
    EXPECT_TRUE(queued(4));
    shared_->ready = 1;
    EXPECT_CU(cuStreamSynchronize(urgent));
    EXPECT_CU(cuStreamSynchronize(ordinary));
    EXPECT_EQ(shared_->slot[1], 0U);
    EXPECT_EQ(shared_->slot[0], 1U);
    shared_->flag = 1;
    EXPECT_CU(cuCtxSynchronize());
  });
  EXPECT_EQ(wait_for(child), 0);
}

}  // namespace
}  // namespace gpuctl::softgpu
