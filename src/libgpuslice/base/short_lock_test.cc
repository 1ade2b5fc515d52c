#include "libgpuslice/base/short_lock.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace gpuslice::short_lock_test {
namespace {

TEST(ShortLock, IsHeldByOneThreadAtATime) {
  ShortLock lock;
  int count = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50'000; ++i) {
        const std::lock_guard held(lock);
        ++count;
      }
    });
  threads.clear();
  EXPECT_EQ(count, 200'000);
}

/// A thread that waits sleeps, as whoever holds the lock may need its processor.
TEST(ShortLock, UsesLittleOfTheProcessorWhileItWaits) {
  ShortLock lock;
  lock.lock();
  std::promise<void> runs;
  std::chrono::nanoseconds used{};
  std::thread waits([&] {
    const auto cpu = [] {
      timespec time;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    };
    const auto before = cpu();
    runs.set_value();
    lock.lock();
    used = cpu() - before;
    lock.unlock();
  });
  runs.get_future().wait();
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < std::chrono::milliseconds(200)) std::this_thread::yield();
  lock.unlock();
  waits.join();
  EXPECT_LT(used, std::chrono::milliseconds(100));
}

}  // namespace
}  // namespace gpuslice::short_lock_test
