#include "libgpuslice/launch/agent_link.h"

#include <gtest/gtest.h>

#include <thread>

#include "libgpuslice/base/clock.h"
#include "libgpuslice/base/look_gate.h"

namespace gpuslice {
namespace {

using AgentIs = AgentLink::AgentIs;
constexpr std::uint64_t kLongNs = 600'000'000'000;  ///< longer than the test may take

auto in_long() {
  return std::chrono::steady_clock::now() + std::chrono::nanoseconds(kLongNs);
}

TEST(AgentLink, AWakeUpEndsASleepEvenIfItCameBefore) {
  AgentLink link;
  const std::uint32_t seen = link.wake_ups();
  link.wake();
  link.sleep(seen, nullptr, 0, kLongNs);
}

TEST(AgentLink, AnotherWordEndsASleepToo) {
  AgentLink link;
  const std::uint32_t word = 2;
  link.sleep(link.wake_ups(), &word, 1, kLongNs);
}

TEST(AgentLink, ASleepEndsWhenItsTimeIsOver) {
  AgentLink link;
  const std::uint64_t before = monotonic_ns();
  link.sleep(link.wake_ups(), nullptr, 0, 2'000'000);
  EXPECT_GE(monotonic_ns() - before, 2'000'000u);
}

TEST(AgentLink, OnlyASleepingAgentIsWokenByALaunch) {
  AgentLink link;
  const std::uint32_t before = link.wake_ups();
  link.rouse();
  link.wake_if_asleep();
  EXPECT_EQ(link.wake_ups(), before);
  link.fall_asleep();
  link.rouse();
  link.wake_if_asleep();
  EXPECT_EQ(link.wake_ups(), before + 2);
  link.awake();
  link.rouse();
  EXPECT_EQ(link.wake_ups(), before + 2);
}

TEST(AgentLink, ForAPolicyForJobsItIsWokenOnceWhenWorkBegins) {
  AgentLink link;
  const std::uint32_t before = link.wake_ups();
  link.note_work_begins();
  link.rouse();
  link.rouse();
  EXPECT_EQ(link.wake_ups(), before + 1);
}

TEST(AgentLink, AThreadThatWaitsForAChangeIsSeenAndWakesTheAgent) {
  AgentLink link;
  std::mutex mutex;
  bool changed = false;
  std::thread program([&] {
    std::unique_lock lock(mutex);
    while (!changed) link.wait_for_change(lock);
  });
  link.sleep(0, nullptr, 0, kLongNs);
  while (!link.awaited()) std::this_thread::yield();
  {
    std::lock_guard lock(mutex);
    changed = true;
  }
  link.notify_change();
  program.join();
  EXPECT_FALSE(link.awaited());
}

TEST(AgentLink, TheAgentIsHeldUntilAllHaveLetGo) {
  AgentLink link;
  link.hold();
  link.hold();
  std::thread agent([&] {
    EXPECT_TRUE(link.wait_while_held());
    link.set_over();
  });
  EXPECT_TRUE(link.wait_until_agent_is(AgentIs::kHeld, in_long()));
  link.release();
  EXPECT_FALSE(link.wait_until_agent_is(AgentIs::kOver, std::chrono::steady_clock::now()));
  link.release();
  EXPECT_TRUE(link.wait_until_agent_is(AgentIs::kOver, in_long()));
  agent.join();
}

TEST(AgentLink, AnAgentThatIsOverIsHeldToo) {
  AgentLink link;
  link.set_over();
  link.hold();
  EXPECT_TRUE(link.wait_until_agent_is(AgentIs::kHeld, in_long()));
}

TEST(AgentLink, PatienceBeginsWhenLooksGoOn) {
  constexpr std::chrono::milliseconds kPatience{1};
  AgentLink link;
  EXPECT_FALSE(link.wait_patiently_until_agent_is(AgentIs::kOver, kPatience));
  LookGate::get().close();
  std::thread agent([&] {
    std::this_thread::sleep_for(20 * kPatience);
    link.set_over();
  });
  EXPECT_TRUE(link.wait_patiently_until_agent_is(AgentIs::kOver, kPatience));
  agent.join();
  AgentLink of_the_lost;
  LookGate::get().close_for_good();
  EXPECT_FALSE(of_the_lost.wait_patiently_until_agent_is(AgentIs::kOver, kPatience));
  LookGate::get().forget_after_fork();
}

TEST(AgentLink, TheEndLetsAHeldAgentGo) {
  AgentLink link;
  link.hold();
  std::thread agent([&] { EXPECT_FALSE(link.wait_while_held()); });
  EXPECT_TRUE(link.wait_until_agent_is(AgentIs::kHeld, in_long()));
  EXPECT_TRUE(link.set_ended());
  EXPECT_FALSE(link.set_ended());
  link.wake();
  agent.join();
}

TEST(AgentLink, TheAgentIsStuckIfItIsInTheSameCallAtTwoLooks) {
  AgentLink link;
  {
    const DriverCalls::Inside call(link.driver_calls());
    EXPECT_FALSE(link.stuck_since_last_look(true));
    EXPECT_TRUE(link.stuck_since_last_look(true));
    EXPECT_FALSE(link.stuck_since_last_look(false));
  }
  EXPECT_FALSE(link.stuck_since_last_look(true));
  EXPECT_FALSE(link.stuck_since_last_look(true));
}

}  // namespace
}  // namespace gpuslice
