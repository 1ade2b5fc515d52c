// Shared by the tests of several processes. The test's own process never calls cuInit: it forks clients that do, and
// reads the shared table.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "softgpu/api/fixture.h"
#include "softgpu/table/table.h"

namespace gpuctl::softgpu {

/// Long enough for a loaded machine; nothing is expected to take that long.
inline constexpr std::chrono::seconds kPatience{60};

/// Words that all clients and their kernels see.
struct Shared {
  Word flag;
  Word next;
  Word slot[16];
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

  /// A client process that runs `body` with `environment` added to its environment, and exits with 1 if an expectation
  /// failed.
  pid_t client(const std::function<void()>& body, const std::map<std::string, std::string>& environment = {}) {
    const pid_t child = fork();
    if (child != 0) return child;
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    EXPECT_CU(cuInit(0));
    CUcontext context = nullptr;
    EXPECT_CU(cuCtxCreate(&context, nullptr, 0, 0));
    EXPECT_CU(cuMemHostRegister(shared_, sizeof(Shared), CU_MEMHOSTREGISTER_DEVICEMAP));
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }

  static CUfunction load(const char* name, const char* ptx = kTestPtx) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_CU(cuModuleLoadData(&module, ptx));
    EXPECT_CU(cuModuleGetFunction(&function, module, name));
    return function;
  }

  /// Launches blocks that each fill an SM's shared memory.
  static void launch_wide(CUfunction function, unsigned blocks, CUstream stream, void** params) {
    constexpr int kShared = 200 * 1024;
    EXPECT_CU(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, kShared));
    EXPECT_CU(cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, kShared, stream, params, nullptr));
  }

  /// Launches wide blocks that end when the flag is set.
  void launch_wide_wait(unsigned blocks) {
    Word* flag = &shared_->flag;
    void* params[] = {&flag};
    launch_wide(load("wait_for"), blocks, nullptr, params);
  }

  static CUstream stream(int priority) {
    CUstream result = nullptr;
    EXPECT_CU(cuStreamCreateWithPriority(&result, CU_STREAM_NON_BLOCKING, priority));
    return result;
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

}  // namespace gpuctl::softgpu
