// A program in which libgpuslice is refused what it asks of the system, and nobody else is:
// starved WHAT FROM COUNT STEP.
//
//   memory        malloc
//   threads       pthread_create
//   descriptors   open, openat, socket, memfd_create
//
// One child process for each of FROM, FROM + STEP, ... (COUNT of them): there, that request of the library and all that
// follow are refused. Each child uses the GPU, checks its results, and that its signals are not blocked. The last line
// says how many requests there were at most, and how many children failed; exit status 0, or 3 if one did.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "driver.h"
#include "kernels.h"

extern "C" void* __libc_malloc(size_t);

namespace {

constexpr unsigned kThreads = 64, kBlocks = 40, kIterations = 20, kWords = kThreads * kBlocks, kRounds = 8;

enum What { kNothing, kMemory, kThreadsToo, kDescriptors };

std::uintptr_t library_begin = 0, library_end = 0;
What starved_of = kNothing;
long first_refused = 0;
std::atomic<long>* requests = nullptr;  ///< of all children, shared with them
std::atomic<long> seen{0};

/// Whether a request that was made from this address is to be refused.
bool refused(What what, const void* from) {
  const auto address = reinterpret_cast<std::uintptr_t>(from);
  if (what != starved_of || address < library_begin || address >= library_end) return false;
  const long number = ++seen;
  long most = requests->load();
  while (number > most && !requests->compare_exchange_weak(most, number)) {
  }
  return number >= first_refused;
}

int find_library(dl_phdr_info* info, std::size_t, void*) {
  if (!std::strstr(info->dlpi_name, "libgpuslice.so")) return 0;
  library_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD)
      library_end = std::max<std::uintptr_t>(library_end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define INSTEAD extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

INSTEAD void* malloc(size_t size) {
  if (refused(kMemory, CALLER)) return errno = ENOMEM, nullptr;
  return __libc_malloc(size);
}

INSTEAD int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  if (refused(kThreadsToo, CALLER)) return EAGAIN;
  static const auto real = next<decltype(&pthread_create)>("pthread_create");
  return real(thread, attributes, body, argument);
}

INSTEAD int open(const char* path, int flags, ...) {
  if (refused(kDescriptors, CALLER)) return errno = EMFILE, -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  return openat(AT_FDCWD, path, flags, mode);
}

INSTEAD int openat(int directory, const char* path, int flags, ...) {
  if (refused(kDescriptors, CALLER)) return errno = EMFILE, -1;
  va_list more;
  va_start(more, flags);
  const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;
  va_end(more);
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  return real(directory, path, flags, mode);
}

INSTEAD int socket(int domain, int type, int protocol) {
  if (refused(kDescriptors, CALLER)) return errno = EMFILE, -1;
  static const auto real = next<int (*)(int, int, int)>("socket");
  return real(domain, type, protocol);
}

INSTEAD int memfd_create(const char* name, unsigned flags) {
  if (refused(kDescriptors, CALLER)) return errno = EMFILE, -1;
  static const auto real = next<int (*)(const char*, unsigned)>("memfd_create");
  return real(name, flags);
}

namespace {

/// What the child does with the GPU. Returns how many results were wrong.
unsigned use_gpu() {
  DRIVER_CHECK(cuInit(0));
  use_first_gpu();
  const CUfunction kernel = load_kernel(kScramblePtx, "scramble");
  static unsigned host[kWords];
  unsigned wrong = 0;
  for (unsigned round = 0; round < kRounds; ++round) {
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

bool no_signal_is_blocked() {
  sigset_t now, none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, nullptr, &now);
  return std::memcmp(&now, &none, sizeof(unsigned long)) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const std::string what = arguments[1];
  const long from = std::atol(arguments[2]), children = std::atol(arguments[3]), step = std::atol(arguments[4]);
  const What of = what == "memory"        ? kMemory
                  : what == "threads"     ? kThreadsToo
                  : what == "descriptors" ? kDescriptors
                                          : kNothing;
  dl_iterate_phdr(find_library, nullptr);
  requests = static_cast<std::atomic<long>*>(
      mmap(nullptr, sizeof *requests, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  long failed = 0;
  for (long i = 0; i < children; ++i) {
    const long number = from + i * step;
    const pid_t child = fork();
    if (child == 0) {
      first_refused = number;
      starved_of = of;
      const unsigned wrong = use_gpu();
      if (wrong > 0) std::fprintf(stderr, "%u wrong results\n", wrong);
      if (!no_signal_is_blocked()) std::fprintf(stderr, "signals are blocked\n");
      std::exit(wrong > 0 || !no_signal_is_blocked() ? 3 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) continue;
    ++failed;
    std::fprintf(stderr, "without %s from request %ld on: status %d\n", what.c_str(), number, status);
  }
  std::printf("starved %s: %ld children, %ld failed, %ld requests\n", what.c_str(), children, failed, requests->load());
  return failed == 0 ? 0 : 3;
}
