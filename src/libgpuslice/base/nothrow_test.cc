#include "libgpuslice/base/nothrow.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <new>

namespace gpuslice {
namespace {

TEST(Nothrow, AnExceptionIsAnError) {
  EXPECT_EQ(nothrow([]() -> CUresult { throw std::bad_alloc(); }), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(nothrow([]() -> int { throw 7; }, 8), 8);
  EXPECT_EQ(nothrow([] { return CUDA_SUCCESS; }), CUDA_SUCCESS);
}

/// Where this fails the test ends by SIGABRT, as the program did.
TEST(Nothrow, AThreadIsCancelledOnlyBehindIt) {
  struct Seen {
    bool whole = false, behind = false;
  } seen;
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, nullptr,
                [](void* seen) -> void* {
                  pthread_cancel(pthread_self());
                  static_cast<Seen*>(seen)->whole = nothrow([] { return usleep(1) == 0; }, false);
                  usleep(1);
                  static_cast<Seen*>(seen)->behind = true;
                  return nullptr;
                },
                &seen),
            0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(seen.whole);
  EXPECT_FALSE(seen.behind);
}

}  // namespace
}  // namespace gpuslice
