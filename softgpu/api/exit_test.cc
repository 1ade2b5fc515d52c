// Processes that end while work is under way. The test's own process never calls cuInit: it forks clients that do.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <thread>

#include "softgpu/api/fixture.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {
namespace {

using namespace std::chrono_literals;

/// Longer than any test here takes on a loaded machine.
constexpr auto kExitPatience = 60s;

/// scribble(page): writes into the page for ever.
constexpr char kScribblePtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry scribble(.param .u64 page)
{
  .reg .b64 %rd<1>;
  ld.param.u64 %rd0, [page];
again:
  st.volatile.global.u32 [%rd0], 1;
  bra again;
}
)";

void set_current(CUcontext context) {
  EXPECT_CU(cuCtxSetCurrent(context));
}

class ExitApi : public testing::Test {
 protected:
  struct Ended {
    int status = -1;   ///< of waitpid
    std::string said;  ///< on stderr
  };

  ExitApi() { use_private_table(); }

  /// Runs `body` in a separate process, which must end by itself.
  static Ended run(const std::function<void()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      body();
      _exit(77);
    }
    close(ends[1]);
    Ended ended;
    const auto deadline = std::chrono::steady_clock::now() + kExitPatience;
    while (waitpid(child, &ended.status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
      usleep(1000);
    }
    char text[4096];
    for (ssize_t got; (got = read(ends[0], text, sizeof text)) > 0;)
      ended.said.append(text, static_cast<std::size_t>(got));
    close(ends[0]);
    return ended;
  }

  static CUcontext start() {
    CUcontext context = nullptr;
    EXPECT_CU(cuInit(0));
    EXPECT_CU(cuCtxCreate(&context, nullptr, 0, 0));
    return context;
  }

  static CUfunction load(const char* ptx, const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, ptx));
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }

  /// Starts kernels that never end, on all SMs and waiting for SMs, and streams that wait for values that are never
  /// written.
  static void busy() {
    CUdeviceptr flag = 0;
    EXPECT_CU(cuMemAllocManaged(&flag, 4, CU_MEM_ATTACH_GLOBAL));
    *reinterpret_cast<Word*>(flag) = 0;
    const CUfunction wait = load(kTestPtx, "wait_for");
    void* params[] = {&flag};
    CUstream stream = nullptr;
    for (int i = 0; i < 3; ++i) {
      EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      EXPECT_CU(cuLaunchKernel(wait, 16, 1, 1, 1024, 1, 1, 0, stream, params, nullptr));
      EXPECT_CU(cuLaunchKernel(wait, 16, 1, 1, 1024, 1, 1, 0, stream, params, nullptr));
    }
    EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    EXPECT_CU(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
  }

  static int failures() { return testing::Test::HasFailure() ? 1 : 0; }

  static void expect_exited(const Ended& ended) {
    EXPECT_TRUE(WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0) << ended.status << ": " << ended.said;
    EXPECT_EQ(ended.said, "");
  }

  static void expect_aborted(const Ended& ended, const char* why) {
    EXPECT_TRUE(WIFSIGNALED(ended.status) && WTERMSIG(ended.status) == SIGABRT) << ended.status;
    EXPECT_NE(ended.said.find(why), std::string::npos) << ended.said;
    EXPECT_EQ(std::count(ended.said.begin(), ended.said.end(), '\n'), 1) << ended.said;
  }
};

TEST_F(ExitApi, NoWayOutWaitsForTheGpu) {
  void (*const ways[])(int) = {std::exit, std::quick_exit, _exit};
  for (const auto way : ways) {
    expect_exited(run([way] {
      start();
      busy();
      way(failures());
    }));
  }
  const Ended aborted = run([] {
    start();
    busy();
    std::abort();
  });
  EXPECT_TRUE(WIFSIGNALED(aborted.status) && WTERMSIG(aborted.status) == SIGABRT) << aborted.status;
}

TEST_F(ExitApi, OlderHandlersRunWithoutADriverAndYoungerWithIt) {
  expect_exited(run([] {
    std::atexit([] {
      CUdeviceptr memory = 0;
      const bool refused = cuMemAlloc(&memory, 4) == CUDA_ERROR_DEINITIALIZED &&
                           cuCtxSynchronize() == CUDA_ERROR_DEINITIALIZED && cuInit(0) == CUDA_ERROR_DEINITIALIZED;
      if (!refused) _exit(2);
    });
    start();
    std::atexit([] {
      CUdeviceptr memory = 0;
      if (cuMemAlloc(&memory, 4) != CUDA_SUCCESS) _exit(3);
    });
    std::exit(failures());
  }));
}

TEST_F(ExitApi, AStrictDriverNamesTheCallThatComesTooLate) {
  const auto late = [](void (*handler)()) {
    return run([handler] {
      setenv("SOFTGPU_STRICT_EXIT", "1", 1);
      std::atexit(handler);
      start();
      std::exit(failures());
    });
  };
  expect_aborted(late([] { cuCtxSynchronize(); }), "cuCtxSynchronize is called");
  expect_aborted(late([] { cuMemcpyHtoD(0, nullptr, 4); }), "cuMemcpyHtoD_v2 is called");
  expect_aborted(late([] { cuStreamQuery(nullptr); }), "cuStreamQuery is called");
  expect_aborted(late([] { cuGraphCreate(nullptr, 0); }), "cuGraphCreate is called");
  expect_aborted(late([] { cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr); }),
                 "cuLaunchKernel is called");
  expect_exited(late([] {
    const char* name = nullptr;
    cuGetErrorName(CUDA_ERROR_DEINITIALIZED, &name);  // needs no driver
  }));
}

TEST_F(ExitApi, ThreadsThatWaitComeBackAndThoseThatGoOnDoNoHarm) {
  static std::thread waiter;
  static std::atomic<CUresult> waited;
  expect_exited(run([] {
    std::atexit([] {
      waiter.join();
      if (waited != CUDA_ERROR_DEINITIALIZED) _exit(2);
    });
    const CUcontext context = start();
    const CUfunction count = load(kTestPtx, "count");  // before the device is busy: loading waits until it is idle
    busy();
    static std::atomic<int> began;
    waiter = std::thread([context] {
      set_current(context);
      ++began;
      waited = cuCtxSynchronize();
    });
    for (int i = 0; i < 3; ++i) {
      std::thread([context, count] {
        set_current(context);
        ++began;
        while (true) cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, CU_STREAM_PER_THREAD, nullptr, nullptr);
      }).detach();
    }
    while (began != 4) usleep(1000);
    usleep(10'000);
    std::exit(failures());
  }));
}

TEST_F(ExitApi, NothingTouchesMemoryOnceTheHandlerHasRun) {
  static void* page;
  expect_exited(run([] {
    page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::atexit([] {
      munmap(page, 4096);
      usleep(50'000);  // for threads that still write
    });
    start();
    EXPECT_CU(cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
    void* params[] = {&page};
    EXPECT_CU(cuLaunchKernel(load(kScribblePtx, "scribble"), 4, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
    while (__atomic_load_n(static_cast<unsigned*>(page), __ATOMIC_RELAXED) == 0) usleep(1000);
    std::exit(failures());
  }));
}

/// Runs a process that exits while one of its threads compiles for ever.
void exit_while_compiling() {
  const std::string never = testing::TempDir() + "softgpu-never-" + std::to_string(getpid());
  CUcontext context = nullptr;
  EXPECT_CU(cuInit(0));
  EXPECT_CU(cuCtxCreate(&context, nullptr, 0, 0));
  CUmodule module = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, kTestPtx));  // so that the compiler is there
  setenv("SOFTGPU_COMPILE_UNTIL", never.c_str(), 1);
  static std::atomic<bool> began;
  std::thread([context] {
    set_current(context);
    CUlinkState state = nullptr;
    EXPECT_CU(cuLinkCreate(0, nullptr, nullptr, &state));
    EXPECT_CU(cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(kTestPtx), sizeof kTestPtx, nullptr, 0, nullptr,
                            nullptr));
    void* image = nullptr;
    began = true;
    cuLinkComplete(state, &image, nullptr);
  }).detach();
  while (!began) usleep(1000);
  usleep(50'000);  // until it is in there
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST_F(ExitApi, AThreadMayCompileUntilTheEnd) {
  expect_exited(run(exit_while_compiling));
}

TEST_F(ExitApi, AStrictDriverComplainsOfAThreadInTheCompiler) {
  expect_aborted(run([] {
                   setenv("SOFTGPU_STRICT_EXIT", "1", 1);
                   exit_while_compiling();
                 }),
                 "a thread is in the compiler");
}

TEST_F(ExitApi, AStrictDriverComplainsOfAStreamThatIsNotThere) {
  expect_aborted(run([] {
                   setenv("SOFTGPU_STRICT_STREAMS", "1", 1);
                   const CUcontext context = start();
                   CUstream stream = nullptr;
                   EXPECT_CU(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
                   EXPECT_CU(cuStreamQuery(stream));
                   EXPECT_CU(cuStreamDestroy(stream));
                   (void)cuStreamQuery(stream);
                   EXPECT_CU(cuCtxDestroy(context));
                 }),
                 "cuStreamQuery for a stream that is not there");
}

TEST_F(ExitApi, AStrictDriverHasNothingToSayOfAnOrderlyEnd) {
  expect_exited(run([] {
    setenv("SOFTGPU_STRICT_EXIT", "1", 1);
    const CUcontext context = start();
    busy();
    EXPECT_CU(cuCtxDestroy(context));
    std::exit(failures());
  }));
}

}  // namespace
}  // namespace gpuctl::softgpu
