#include "libgpuslice/base/refusal.h"

#include <gtest/gtest.h>

namespace gpuslice {
namespace {

using namespace std::chrono_literals;

TEST(Refusal, IsTriedAgainAfterPausesThatGrow) {
  Refusal refusal;
  Refusal::Clock::time_point now{1h};
  EXPECT_FALSE(refusal.stands([] { return Refusal::Clock::time_point(); })) << "nothing was refused";
  for (const std::chrono::seconds pause : {2s, 4s, 8s, 16s, 32s, 64s, 64s}) {
    refusal.note(now);
    EXPECT_TRUE(refusal.stands([&] { return now + pause - 1ms; }));
    EXPECT_FALSE(refusal.stands([&] { return now + pause; }));
    now += pause;
  }
  refusal.over();
  refusal.note(now);
  EXPECT_FALSE(refusal.stands([&] { return now + 2s; })) << "it begins anew";
}

TEST(Refusal, IsOverAtOnceAfterASuccess) {
  Refusal refusal;
  refusal.note(Refusal::Clock::now());
  EXPECT_TRUE(refusal.stands());
  refusal.over();
  EXPECT_FALSE(refusal.stands());
}

}  // namespace
}  // namespace gpuslice
