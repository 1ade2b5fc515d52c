#include "gpuctl/run/run_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpuctl::cli {
namespace {

namespace fs = std::filesystem;

/// Of a child that ends while it is read, the kernel shows the beginning: CUDA, and not the library that lies behind
/// it.
TEST(RunWatch, AChildThatEndsMeanwhileIsNotWithoutTheLibrary) {
  constexpr std::size_t kPages = 2000;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  std::string pattern = testing::TempDir() + "gpuctl-watch-XXXXXX";
  const fs::path directory = ::mkdtemp(pattern.data());
  void* const begin = ::mmap(nullptr, kPages * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(begin, MAP_FAILED);
  auto* const bytes = static_cast<std::byte*>(begin);
  const auto map = [&](const char* name, std::size_t at) {
    std::ofstream(directory / name) << std::string(page, 'x');
    const int fd = ::open((directory / name).c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(::mmap(bytes + at * page, page, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0), bytes + at * page);
    ::close(fd);
  };
  map("libcuda.so.1", 0);
  for (std::size_t at = 2; at < kPages - 1; at += 2) ASSERT_EQ(::mprotect(bytes + at * page, page, PROT_READ), 0);
  map("libgpuslice.so", kPages - 1);

  const pid_t program = ::fork();
  ASSERT_GE(program, 0);
  if (program == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned lives_us = 0;; lives_us = (lives_us + 100) % 10'000) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::usleep(lives_us);
        ::_exit(0);
      }
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
  }
  int looks = 0, wrong = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (; std::chrono::steady_clock::now() < end; ++looks) {
    const CudaUse use = cuda_use(program, "");
    EXPECT_EQ(use.managed != 0 || use.unmanaged != 0, true);
    wrong += use.unmanaged != 0;
  }
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
  ::munmap(begin, kPages * page);
  fs::remove_all(directory);
  EXPECT_GT(looks, 0);
  EXPECT_EQ(wrong, 0) << "of " << looks << " looks";
}

/// One that is not dumpable, to its own user and to others.
TEST(RunWatch, WhatMayNotBeLookedAtIsHidden) {
  constexpr uid_t kNobody = 65534;
  ::prctl(PR_SET_DUMPABLE, 0);  // a child inherits it
  const pid_t program = ::fork();
  if (program == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  const pid_t looks = ::fork();
  if (looks == 0) {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
    const CudaUse use = cuda_use(program, "");
    ::_exit(use.hidden == program && use.managed == 0 && use.unmanaged == 0 ? 0 : 1);
  }
  ::prctl(PR_SET_DUMPABLE, 1);
  int status = -1;
  EXPECT_EQ(::waitpid(looks, &status, 0), looks);
  EXPECT_EQ(status, 0);
  ::kill(program, SIGKILL);
  ::waitpid(program, nullptr, 0);
}

}  // namespace
}  // namespace gpuctl::cli
