// sim where jobs share each SM: what it gives fits on an SM by registers, warps, blocks, shared memory and barriers.
#include <gtest/gtest.h>

#include <map>

#include "sched/temporal/scheduler.h"

namespace gpuctl::sched::sim_on_each_sm_test {
namespace {

using Workers = std::map<JobId, std::uint32_t>;
using std::chrono::milliseconds;

/// SiM Table 3.
constexpr BlockShape kFdtd3d{512, 58, 3848}, kLavaMd{128, 64, 7208}, kParticleFilter{128, 16, 8};

struct Kernel {
  BlockShape block;
  Time alone;
  std::vector<CurvePoint> curve = {};
};

/// Workers on each SM of a K40, of kernels 1, 2, ... that arrive in this order.
Workers divided(const char* policy, const std::vector<Kernel>& kernels) {
  const SmLimits sm = sm_limits("3.5").value();
  PolicyInputs inputs;
  inputs.sm = sm;
  inputs.blocks = [&](const Job& job) { return kernels[job.kernel - 1].block; };
  inputs.curves = [&](std::uint32_t kernel) { return std::span<const CurvePoint>(kernels[kernel - 1].curve); };
  Scheduler scheduler(std::move(*make_job_policy(policy, inputs)), CapSM{sm.blocks});
  for (std::uint32_t k = 1; k <= kernels.size(); ++k)
    scheduler.arrive(
        {.id = k, .kernel = k, .need = CapSM{most_blocks(sm, kernels[k - 1].block)}, .predicted = kernels[k - 1].alone},
        Time{});
  Workers result;
  for (const Grant& grant : scheduler.decide(Time{}).changed) result[grant.job] = grant.capsm.count;
  return result;
}

TEST(SimOnEachSm, GivesAKernelThatIsAloneAllThatFits) {
  EXPECT_EQ(divided("sim", {{kLavaMd, milliseconds{9}}}), (Workers{{1, 6}}));
  EXPECT_EQ(divided("sim", {{kFdtd3d, milliseconds{9}}}), (Workers{{1, 2}}));
}

// lavaMD is held up by shared memory, particleFilter by the number of blocks: they have 5/6 and 11/16 of an
// SM, which is more than one. 60 ms / n and 160 ms / m are longest in turn until 16 blocks are there.
TEST(SimOnEachSm, KernelsThatNeedDifferentThingsGetMoreThanOneSm) {
  EXPECT_EQ(divided("sim:floor=0", {{kLavaMd, milliseconds{10}}, {kParticleFilter, milliseconds{10}}}),
            (Workers{{1, 5}, {2, 11}}));
}

// FDTD3d 1: half of the registers are left. particleFilter stops at the end of its curve, and FDTD3d, the longer one,
// cannot have a second worker before that: 16 warps of 64 registers do not fit beside three of four warps.
TEST(SimOnEachSm, IsTheGreedyAlgorithmOverCurvesOfWorkers) {
  const std::vector<CurvePoint> flat{
      {CapSM{1}, milliseconds{12}}, {CapSM{2}, milliseconds{8}}, {CapSM{4}, milliseconds{6}}};
  const std::vector<CurvePoint> long_one{{CapSM{1}, milliseconds{40}}, {CapSM{2}, milliseconds{30}}};
  EXPECT_EQ(divided("sim:floor=0", {{kParticleFilter, milliseconds{6}, flat}, {kFdtd3d, milliseconds{30}, long_one}}),
            (Workers{{1, 4}, {2, 1}}));
}

TEST(SimOnEachSm, GivesEachOneIfNotEvenThatFits) {
  const Kernel half{{1024, 32, 0}, milliseconds{5}};
  EXPECT_EQ(divided("sim", {half, half, half}), (Workers{{1, 1}, {2, 1}, {3, 1}}));
}

TEST(SimOnEachSm, AFloorThatDoesNotFitIsLeftOut) {
  // Two kernels of 30 warps, and one of a warp that has 5 of 16 as its floor: 65 warps. Without, the rest of the warps
  // is for who has longest to go.
  const Kernel large{{960, 16, 0}, milliseconds{5}}, small{{32, 16, 0}, milliseconds{50}};
  EXPECT_EQ(divided("sim:floor=1", {large, large, small}), (Workers{{1, 1}, {2, 1}, {3, 4}}));
}

}  // namespace
}  // namespace gpuctl::sched::sim_on_each_sm_test
