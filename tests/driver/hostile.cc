// A program that treats its own process badly: hostile WAY [ARGUMENT]. What it does with the GPU is checked.
//
//   idle             uses no GPU; prints how many threads and descriptors it has
//   forks COUNT      children that exit, exec or use the GPU, before and while this process uses it
//   exits COUNT      children that end in all ways while their threads launch
//   chroot DIR       enters DIR before it uses the GPU, whose table is DIR/softgpu
//   deny WHAT        forbids itself "sockets" or "processes" by seccomp, and uses the GPU
//   dlclose LIBRARY  opens and closes the library, before and while it uses the GPU
//   gpu              uses the GPU
//
// The last line says what was counted; exit status 0, 3 when something was wrong, 77 if the system forbids this way.
#include <dirent.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"
#include "kernels.h"

namespace {

constexpr unsigned kThreads = 64, kBlocks = 30, kIterations = 10, kWords = kThreads * kBlocks;
constexpr int kCannot = 77, kWrong = 3;

/// How many results of some launches are wrong.
unsigned use_gpu() {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  const CUfunction kernel = load_kernel(kScramblePtx, "scramble");
  unsigned wrong = 0;
  for (unsigned round = 0; round < 5; ++round) {
    unsigned host[kWords];
    CUdeviceptr device = 0;
    DRIVER_CHECK(cuMemAlloc(&device, sizeof host));
    unsigned seed = round * 7, iterations = kIterations;
    void* parameters[] = {&device, &seed, &iterations};
    DRIVER_CHECK(cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr));
    DRIVER_CHECK(cuMemcpyDtoH(host, device, sizeof host));
    for (unsigned i = 0; i < kWords; ++i) wrong += host[i] != scrambled(seed + i, kIterations);
    DRIVER_CHECK(cuMemFree(device));
  }
  return wrong;
}

int gpu() {
  const unsigned wrong = use_gpu();
  std::printf("%u wrong\n", wrong);
  return wrong == 0 ? 0 : kWrong;
}

int entries(const char* directory) {
  DIR* list = opendir(directory);
  int count = 0;
  while (list && readdir(list)) ++count;
  if (list) closedir(list);
  return count - 3;  // ".", ".." and, of the descriptors, the list's own
}

int idle() {
  std::printf("%d threads, %d descriptors\n", entries("/proc/self/task") + 1, entries("/proc/self/fd"));
  return 0;
}

/// Waits for all children. Returns how many did not end as `expected` says of the number of each.
template <class Expected>
int wait_for(const std::vector<pid_t>& children, Expected expected) {
  int wrong = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = -1;
    if (children[i] < 0 || waitpid(children[i], &status, 0) != children[i] || status != expected(i)) {
      std::fprintf(stderr, "child %zu: status %d\n", i, status);
      ++wrong;
    }
  }
  return wrong;
}

constexpr int exited(int status) {
  return status << 8;
}

/// Children that `_exit`, `exit`, and exec, and one in ten that uses the GPU if `with_gpu`.
int storm(int count, bool with_gpu) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (with_gpu && i % 10 == 9) std::exit(use_gpu() == 0 ? 40 : kWrong);
      if (i % 3 == 0) _exit(41);
      if (i % 3 == 1) std::exit(42);
      execl("/bin/sh", "sh", "-c", "exit 43", static_cast<char*>(nullptr));
      _exit(1);
    }
    children.push_back(child);
  }
  return wait_for(children,
                  [&](std::size_t i) { return exited(with_gpu && i % 10 == 9 ? 40 : 41 + static_cast<int>(i % 3)); });
}

int forks(int count) {
  int wrong = storm(count, true);
  wrong += use_gpu() != 0;
  wrong += storm(count, false);
  wrong += use_gpu() != 0;
  std::printf("%d children, %d wrong\n", 2 * count, wrong);
  return wrong == 0 ? 0 : kWrong;
}

/// Launches until the process ends, whatever the driver says.
void launch_for_ever(CUcontext context, CUfunction kernel, CUdeviceptr device) {
  cuCtxSetCurrent(context);
  for (unsigned seed = 0, iterations = 50;; ++seed) {
    void* parameters[] = {&device, &seed, &iterations};
    cuLaunchKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, parameters, nullptr);
    if (seed % 20 == 0) cuCtxSynchronize();
  }
}

/// Ends while two threads launch.
void end_while_launching(int way) {
  if (use_gpu() != 0) _exit(kWrong);
  CUcontext context = nullptr;
  CUdeviceptr device = 0;
  DRIVER_CHECK(cuCtxGetCurrent(&context));
  DRIVER_CHECK(cuMemAlloc(&device, kWords * sizeof(unsigned)));
  const CUfunction kernel = load_kernel(kScramblePtx, "scramble");
  for (int i = 0; i < 2; ++i) std::thread(launch_for_ever, context, kernel, device).detach();
  usleep(1000 * (way % 7));
  if (way % 5 == 0) _exit(50);
  if (way % 5 == 1) std::quick_exit(51);
  if (way % 5 == 2) kill(getpid(), SIGKILL);
  if (way % 5 == 3) execl("/bin/sh", "sh", "-c", "exit 53", static_cast<char*>(nullptr));
  // exit() while threads use the driver may crash without the library too: what they use is destroyed
  _Exit(54);
}

int exits(int count) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) end_while_launching(i);
    children.push_back(child);
  }
  const int wrong =
      wait_for(children, [](std::size_t i) { return i % 5 == 2 ? SIGKILL : exited(50 + static_cast<int>(i % 5)); });
  std::printf("%d children, %d wrong\n", count, wrong);
  return wrong == 0 ? 0 : kWrong;
}

int in_chroot(const char* directory) {
  if (chroot(directory) != 0 || chdir("/") != 0) return kCannot;
  setenv("SOFTGPU_TABLE", "/softgpu", 1);
  return gpu();
}

/// Installs a filter of system calls, for the life of the process.
bool filter_calls(std::vector<sock_filter> filter) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

constexpr sock_filter load_word(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offset));
}
constexpr sock_filter skip_unless(int call) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1);
}
constexpr sock_filter answer(unsigned with) {
  return BPF_STMT(BPF_RET | BPF_K, with);
}
constexpr unsigned kRefuse = SECCOMP_RET_ERRNO | EPERM, kUnknown = SECCOMP_RET_ERRNO | ENOSYS;

/// No sockets, or no processes: threads are clones that share the thread group, and clone3 hides its flags.
int denied(const std::string& what) {
  const std::vector<sock_filter> sockets = {load_word(offsetof(seccomp_data, nr)), skip_unless(SYS_socket),
                                            answer(kRefuse), answer(SECCOMP_RET_ALLOW)};
  const std::vector<sock_filter> processes = {
      load_word(offsetof(seccomp_data, nr)),
      skip_unless(SYS_clone3),
      answer(kUnknown),
#ifdef SYS_fork
      skip_unless(SYS_fork),
      answer(kRefuse),
      skip_unless(SYS_vfork),
      answer(kRefuse),
#endif
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      answer(SECCOMP_RET_ALLOW),
      load_word(offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
      answer(kRefuse),
      answer(SECCOMP_RET_ALLOW),
  };
  return filter_calls(what == "sockets" ? sockets : processes) ? gpu() : kCannot;
}

int opened_and_closed(const char* library) {
  unsigned wrong = 0;
  for (int i = 0; i < 3; ++i) {
    void* handle = dlopen(library, RTLD_NOW | (i == 0 ? RTLD_LOCAL : RTLD_GLOBAL));
    if (!handle) return kWrong;
    const auto attach = reinterpret_cast<int (*)(const char*)>(dlsym(handle, "gpuslice_attach"));
    const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(handle, "cuInit"));
    if (!attach || !init) return kWrong;
    if (i > 0 && attach("s") != 0) ++wrong;
    if (init(0) != CUDA_SUCCESS) ++wrong;
    wrong += use_gpu();
    if (dlclose(handle) != 0) ++wrong;
    usleep(300'000);  // its threads go on
    wrong += use_gpu();
  }
  std::printf("%u wrong\n", wrong);
  return wrong == 0 ? 0 : kWrong;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string way = count > 1 ? arguments[1] : "";
  const char* argument = count > 2 ? arguments[2] : "";
  if (way == "idle") return idle();
  if (way == "forks") return forks(std::atoi(argument));
  if (way == "exits") return exits(std::atoi(argument));
  if (way == "chroot") return in_chroot(argument);
  if (way == "deny") return denied(argument);
  if (way == "dlclose") return opened_and_closed(argument);
  if (way == "gpu") return gpu();
  return 2;
}
