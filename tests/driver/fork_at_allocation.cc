// Forks at each allocation that libgpuslice makes in one thread while that uses the GPU for the first time: so in the
// middle of whatever is made then. A child that waits for that thread, which it does not have, never ends. The malloc
// of this program comes before the C library's. The last line is "fork_at_allocation: N forks, M hang".
#include <cuda.h>
#include <link.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <thread>

#include "driver.h"
#include "kernels.h"

extern "C" void* __libc_malloc(std::size_t size);

namespace {

using std::chrono::steady_clock;

thread_local bool t_watched = false;
std::uintptr_t library_begin = 0, library_end = 0;
std::atomic<int> asked{0}, answered{0};
std::atomic<bool> over{false};

int find_library(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libgpuslice.so") == nullptr) return 0;
  library_begin = library_end = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    library_end = std::max<std::uintptr_t>(library_end,
                                           info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  return 1;
}

/// False if the child does not end.
bool child_ends(pid_t pid) {
  const auto until = steady_clock::now() + std::chrono::seconds(20);
  while (steady_clock::now() < until) {
    if (waitpid(pid, nullptr, WNOHANG) == pid) return true;
    usleep(100);
  }
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return false;
}

template <class Use>
void watched(Use use) {
  t_watched = true;
  use();
  t_watched = false;
}

void use_gpu() {
  watched(use_first_gpu);
  const CUfunction kernel = load_kernel(kScramblePtx, "scramble");  // which is compiled, by many allocations
  watched([kernel] {
    CUdeviceptr memory = 0;
    CUstream stream = nullptr;
    unsigned seed = 1, iterations = 1;
    DRIVER_CHECK(cuMemAlloc(&memory, 64 * 64 * sizeof(unsigned)));
    DRIVER_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    void* parameters[] = {&memory, &seed, &iterations};
    DRIVER_CHECK(cuLaunchKernel(kernel, 64, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    DRIVER_CHECK(cuMemsetD32Async(memory, 0, 64, stream));
    DRIVER_CHECK(cuStreamSynchronize(stream));
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    DRIVER_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    DRIVER_CHECK(cuLaunchKernel(kernel, 64, 1, 1, 64, 1, 1, 0, stream, parameters, nullptr));
    DRIVER_CHECK(cuStreamEndCapture(stream, &graph));
    DRIVER_CHECK(cuGraphInstantiate(&executable, graph, 0));
    DRIVER_CHECK(cuGraphLaunch(executable, stream));
    DRIVER_CHECK(cuStreamSynchronize(stream));
  });
  over = true;
}

}  // namespace

extern "C" void* malloc(std::size_t size) noexcept {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  if (t_watched && caller >= library_begin && caller < library_end) {
    const int number = ++asked;
    while (answered < number) usleep(50);
  }
  return __libc_malloc(size);
}

int main() {
  dl_iterate_phdr(find_library, nullptr);
  DRIVER_CHECK(cuInit(0));
  std::thread user(use_gpu);
  int hang = 0;
  while (!over) {
    if (asked == answered) {
      usleep(50);
      continue;
    }
    if (hang == 0) {
      const pid_t pid = fork();
      if (pid == 0) _exit(0);
      hang += pid > 0 && !child_ends(pid);
    }
    ++answered;
  }
  user.join();
  std::printf("fork_at_allocation: %d forks, %d hang\n", answered.load(), hang);
  return hang == 0 ? 0 : 3;
}
