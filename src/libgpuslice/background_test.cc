#include "libgpuslice/background.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <vector>

namespace gpuslice {
namespace {

CUcontext context(std::uintptr_t number) {
  return reinterpret_cast<CUcontext>(number);
}

/// A job that waits to be let go on, and says what became of it.
struct Held {
  std::promise<void> go_on;
  std::promise<void> begun;
  std::atomic<bool> done{false}, dropped{false};

  Background::Job job(CUcontext where = nullptr, CUdevice device = 0) {
    return {.context = where,
            .device = device,
            .run =
                [this] {
                  begun.set_value();
                  go_on.get_future().wait();
                  done = true;
                },
            .dropped = [this] { dropped = true; }};
  }
};

TEST(Background, DoesOneAfterTheOther) {
  Background background;
  std::vector<int> order;
  std::promise<void> last;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(background.add({.run =
                                    [&, i] {
                                      order.push_back(i);
                                      if (i == 4) last.set_value();
                                    },
                                .dropped = {}}));
  }
  last.get_future().wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  background.stop();
}

TEST(Background, TheThreadIsNicerAndTakesNoSignals) {
  Background background;
  std::promise<std::pair<int, bool>> told;
  ASSERT_TRUE(background.add({.run =
                                  [&] {
                                    sigset_t blocked;
                                    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                                    told.set_value({getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid))),
                                                    sigismember(&blocked, SIGTERM) == 1});
                                  },
                              .dropped = {}}));
  const auto [nice, blocked] = told.get_future().get();
  EXPECT_TRUE(nice > getpriority(PRIO_PROCESS, 0) || nice == 19);
  EXPECT_TRUE(blocked);
  background.stop();
}

TEST(Background, AContextThatEndsWaitsForItsOwnAlone) {
  Background background;
  Held running, other, same;
  ASSERT_TRUE(background.add(running.job(context(1))));
  ASSERT_TRUE(background.add(same.job(context(1))));
  ASSERT_TRUE(background.add(other.job(context(2))));
  running.begun.get_future().wait();
  background.leave(context(3));  // not held up
  std::thread ends([&] {
    background.leave(context(1));
    EXPECT_TRUE(running.done);
  });
  while (!same.dropped) std::this_thread::yield();
  running.go_on.set_value();
  ends.join();
  EXPECT_FALSE(same.done);
  EXPECT_FALSE(other.dropped);
  other.go_on.set_value();
  other.begun.get_future().wait();
  background.stop();
  EXPECT_TRUE(other.done);
}

TEST(Background, StoppedItDropsWhatHasNotBegun) {
  Background background;
  Held running, waiting;
  ASSERT_TRUE(background.add(running.job(nullptr, 0)));
  ASSERT_TRUE(background.add(waiting.job(nullptr, 1)));
  running.begun.get_future().wait();
  background.leave_device(1);
  EXPECT_TRUE(waiting.dropped);
  running.go_on.set_value();
  background.stop();
  EXPECT_TRUE(running.done);
  EXPECT_FALSE(background.add({.run = [] {}, .dropped = {}}));
}

}  // namespace
}  // namespace gpuslice
