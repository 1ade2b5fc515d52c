// Priorities across processes. Three of the four SMs are held until a test is over. So all blocks under test pass one
// by one through the fourth SM, and the order of their placement is the order in which they run.
#include "softgpu/api/process_fixture.h"

namespace gpuctl::softgpu {
namespace {

/// wait_then_mark(flag, next, slot): the block waits until *flag != 0, then puts the old value of (*next)++ into
/// slot[ctaid.x]. For blocks of one thread.
constexpr char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry wait_then_mark(.param .u64 flag, .param .u64 next, .param .u64 slot)
{
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [flag];
  ld.param.u64 %rd1, [next];
  ld.param.u64 %rd2, [slot];
again:
  ld.relaxed.sys.global.u32 %r0, [%rd0];
  setp.ne.u32 %p, %r0, 0;
  @%p bra done;
  nanosleep.u32 200000;
  bra again;
done:
  mov.u32 %r0, %tid.x;
  setp.ne.u32 %p, %r0, 0;
  @%p ret;
  atom.global.add.u32 %r1, [%rd1], 1;
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.u64 %rd3, %rd2, %rd3;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";

class ProcessPriority : public ProcessApi {
 protected:
  /// True once that process has that many kernels in the table.
  static bool queued(pid_t pid, std::size_t kernels) {
    return eventually([&] {
      std::size_t found = 0;
      for (const KernelView& kernel : look().kernels) found += kernel.pid == static_cast<std::uint32_t>(pid) ? 1 : 0;
      return found == kernels;
    });
  }

  /// In a client: takes three SMs until the flag is set.
  void hold_three() {
    launch_wide_wait(3);
    EXPECT_TRUE(shows(getpid(), 3));
  }

  /// Starts a process that holds three SMs, and the fourth until `ready` is set.
  pid_t holder() {
    const pid_t child = client([&] {
      const CUfunction wait = load("wait_for");  // before the context is busy: loading waits until it is not
      hold_three();
      Word* ready = &shared_->ready;
      void* params[] = {&ready};
      launch_wide(wait, 1, stream(0), params);
      EXPECT_CU(cuCtxSynchronize());
    });
    EXPECT_TRUE(shows(child, 3) && shows(child, 1));
    return child;
  }

  /// In a client: queues a kernel whose blocks write their turns into the slots from `slot` on.
  void queue_mark(int priority, unsigned slot, unsigned blocks = 1) {
    Word* next = &shared_->next;
    Word* place = &shared_->slot[slot];
    void* params[] = {&next, &place};
    EXPECT_TRUE(queued(getpid(), marks_++));  // streams add their kernels to the table in any order
    if (!mark_) mark_ = load("mark");
    launch_wide(mark_, blocks, stream(priority), params);
  }

  std::size_t marks_ = 0;      ///< of this process
  CUfunction mark_ = nullptr;  ///< loaded before the first of them
};

TEST_F(ProcessPriority, GreaterPrioritiesGoFirstWheneverABlockEnds) {
  const pid_t batch = client([&] {
    const CUfunction wait = load("wait_then_mark", kPtx);
    hold_three();
    Word* ready = &shared_->ready;
    Word* next = &shared_->next;
    Word* slot = &shared_->slot[0];
    void* params[] = {&ready, &next, &slot};
    launch_wide(wait, 6, stream(0), params);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(batch, 1));  // of six
  const pid_t urgent = client([&] {
    queue_mark(-1, 10, 2);
    queue_mark(-5, 8, 2);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(queued(urgent, 2));
  shared_->ready = 1;
  EXPECT_EQ(wait_for(urgent), 0);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(batch), 0);
  EXPECT_EQ(shared_->slot[0], 0U);  // it was running
  for (unsigned turn = 1; turn <= 4; ++turn) EXPECT_EQ(shared_->slot[7 + turn], turn);
  for (unsigned block = 1; block < 6; ++block) EXPECT_GT(shared_->slot[block], 4U);
}

TEST_F(ProcessPriority, EqualPrioritiesOfTwoProcessesKeepTheirOrder) {
  const pid_t held = holder();
  const pid_t first = client([&] {
    queue_mark(-3, 0, 3);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(queued(first, 1));
  const pid_t second = client([&] {
    queue_mark(-3, 3, 3);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(queued(second, 1));
  shared_->ready = 1;
  EXPECT_EQ(wait_for(first), 0);
  EXPECT_EQ(wait_for(second), 0);
  for (unsigned turn = 0; turn < 6; ++turn) EXPECT_EQ(shared_->slot[turn], turn);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(held), 0);
}

TEST_F(ProcessPriority, KernelsOfOneProcessGoByPriority) {
  const pid_t held = holder();
  const pid_t child = client([&] {
    queue_mark(0, 0);
    queue_mark(-5, 1);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(queued(child, 2));
  shared_->ready = 1;
  EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(shared_->slot[1], 0U);
  EXPECT_EQ(shared_->slot[0], 1U);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(held), 0);
}

TEST_F(ProcessPriority, ProcessesBelowNormalGoLast) {
  const pid_t held = holder();
  const pid_t below = client(
      [&] {
        queue_mark(0, 0);
        queue_mark(-5, 1);
        EXPECT_CU(cuCtxSynchronize());
      },
      {{"CUDA_MPS_CLIENT_PRIORITY", "1"}});
  ASSERT_TRUE(queued(below, 2));
  const pid_t normal = client(
      [&] {
        queue_mark(0, 2);
        EXPECT_CU(cuCtxSynchronize());
      },
      {{"CUDA_MPS_CLIENT_PRIORITY", "0"}});
  ASSERT_TRUE(queued(normal, 1));
  shared_->ready = 1;
  EXPECT_EQ(wait_for(normal), 0);
  EXPECT_EQ(wait_for(below), 0);
  EXPECT_EQ(shared_->slot[2], 0U);
  EXPECT_EQ(shared_->slot[1], 1U);
  EXPECT_EQ(shared_->slot[0], 2U);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(held), 0);
}

TEST_F(ProcessPriority, SwitchedOffTheyMeanNothing) {
  const pid_t held = holder();
  const pid_t without = client(
      [&] {
        queue_mark(0, 0);
        queue_mark(-5, 1);
        EXPECT_CU(cuCtxSynchronize());
      },
      {{"SOFTGPU_PRIORITIES", "0"}, {"CUDA_MPS_CLIENT_PRIORITY", "1"}});
  ASSERT_TRUE(queued(without, 2));
  const pid_t other = client([&] {
    queue_mark(0, 2);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(queued(other, 1));
  shared_->ready = 1;
  EXPECT_EQ(wait_for(without), 0);
  EXPECT_EQ(wait_for(other), 0);
  for (unsigned turn = 0; turn < 3; ++turn) EXPECT_EQ(shared_->slot[turn], turn);
  shared_->flag = 1;
  EXPECT_EQ(wait_for(held), 0);
}

TEST_F(ProcessPriority, AKilledProcessesUrgentKernelHoldsUpNobody) {
  const pid_t held = holder();
  const pid_t victim = client([&] {
    queue_mark(-5, 8, 8);
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(victim, 0));
  const pid_t heir = client([&] {
    launch_mark(0, 0);  // fits beside what holds the SMs
    EXPECT_CU(cuCtxSynchronize());
  });
  ASSERT_TRUE(shows(heir, 0));
  EXPECT_EQ(shared_->next, 0U);
  kill(victim, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(victim)));
  EXPECT_EQ(wait_for(heir), 0);
  EXPECT_EQ(shared_->next, 1U);
  shared_->ready = shared_->flag = 1;
  EXPECT_EQ(wait_for(held), 0);
}

}  // namespace
}  // namespace gpuctl::softgpu
