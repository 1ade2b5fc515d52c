#include <gtest/gtest.h>

#include "libgpuslice/modules/image_load.h"

namespace gpuslice {
namespace {

LoadPlan plan(std::optional<Forms> forms, bool own_code_alone = false) {
  ImageLoad load;
  load.forms = std::move(forms);
  load.own_code_alone = own_code_alone;
  plan_load(load);
  return load.plan;
}

TEST(PlanLoad, WithoutMachineCodeTheImageAlone) {
  EXPECT_EQ(plan(std::nullopt), LoadPlan::kOriginal);
  EXPECT_EQ(plan(Forms{.code = {}, .kernels = {}, .stands_alone = true, .reason = "why"}), LoadPlan::kOriginal);
}

TEST(PlanLoad, VariablesExistOnce) {
  const Forms forms{.code = "code", .kernels = {}, .stands_alone = false, .reason = {}};
  EXPECT_EQ(plan(forms), LoadPlan::kInPlace);
  EXPECT_EQ(plan(forms, true), LoadPlan::kInPlace);
}

TEST(PlanLoad, CodeThatStandsAloneBesideTheImage) {
  const Forms forms{.code = "code", .kernels = {}, .stands_alone = true, .reason = {}};
  EXPECT_EQ(plan(forms), LoadPlan::kBeside);
  EXPECT_EQ(plan(forms, true), LoadPlan::kBesideOrInPlace);
}

}  // namespace
}  // namespace gpuslice
