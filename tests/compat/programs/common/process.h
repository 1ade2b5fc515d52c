// What the programs of several processes share: work with a known result, starting themselves anew, and waiting.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "mix.h"

extern char** environ;

/// Mixes numbers on the GPU; whether the result is right.
inline bool compute(unsigned seed, std::uint64_t* hash = nullptr) {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 19, depth = small ? 3 : 300;
  const unsigned rounds = small ? 3 : 60;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  for (unsigned round = 0; round < rounds; ++round) launch_mix(data, count, round + seed, depth);
  std::vector<unsigned> got(static_cast<std::size_t>(count));
  CHECK(cudaMemcpy(got.data(), data, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
  CHECK(cudaFree(data));
  if (hash) *hash = hash_of(got.data(), got.size() * sizeof(unsigned));
  for (unsigned i = 0; i < got.size(); i += static_cast<unsigned>(count) / 61) {
    unsigned x = i;
    for (unsigned round = 0; round < rounds; ++round) x = mix(x, round + seed, depth);
    if (got[i] != x) return false;
  }
  return true;
}

inline void print_compute(const char* name, unsigned seed) {
  std::uint64_t hash = 0;
  const bool right = compute(seed, &hash);
  std::printf("%s %s %016llx\n", name, right ? "right" : "WRONG", static_cast<unsigned long long>(hash));
  std::fflush(stdout);
}

/// Kernels that are still running when the call returns.
inline void leave_running() {
  const bool small = on_software();
  const int count = small ? 1024 : 1 << 19;
  unsigned* data = nullptr;
  CHECK(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(data, count);
  for (unsigned round = 0; round < (small ? 3 : 200); ++round) launch_mix(data, count, round, small ? 3 : 1000);
}

/// Replaces this process by this program anew, with `arguments`.
[[noreturn]] inline void exec_self(const std::vector<std::string>& arguments, char** environment = environ) {
  std::string self = "/proc/self/exe";
  std::vector<char*> words = {self.data()};
  std::vector<std::string> copies = arguments;
  for (std::string& word : copies) words.push_back(word.data());
  words.push_back(nullptr);
  execve("/proc/self/exe", words.data(), environment);
  _exit(127);
}

/// Waits for `child` and says how it ended.
inline void print_end(const char* name, pid_t child) {
  int status = 0;
  const pid_t got = waitpid(child, &status, 0);
  if (got != child) {
    std::printf("%s: waitpid failed, error %d\n", name, errno);
  } else if (WIFEXITED(status)) {
    std::printf("%s: status %d\n", name, WEXITSTATUS(status));
  } else {
    std::printf("%s: signal %d\n", name, WTERMSIG(status));
  }
  std::fflush(stdout);
}
