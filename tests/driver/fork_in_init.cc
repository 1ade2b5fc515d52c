// Forks while CUDA initialises: between the library's question to gpuctld and its attachment, when it sets a variable
// for the driver. Its setenv comes before the C library's. Parent and child both go on, say "PID: RESULT" of their
// cuInit, and stay until standard input ends.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

extern "C" int setenv(const char* name, const char* value, int overwrite) noexcept {
  static const auto real = reinterpret_cast<int (*)(const char*, const char*, int)>(dlsym(RTLD_NEXT, "setenv"));
  static bool forked = false;
  const int result = real(name, value, overwrite);
  if (!forked && std::strcmp(name, "CUDA_DEVICE_MAX_CONNECTIONS") == 0) {
    forked = true;
    if (fork() < 0) return -1;
  }
  return result;
}

int main() {
  const CUresult result = cuInit(0);
  std::printf("%d: %d\n", static_cast<int>(getpid()), static_cast<int>(result));
  std::fflush(stdout);
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  return 0;
}
