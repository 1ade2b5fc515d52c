#include "gpuctl/views/slice_rows.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using Lines = std::vector<std::string>;

std::vector<ipc::Slice> slices() {
  return {{.path = "batch/train",
           .reserve = 4,
           .reserve_mode = "strict",
           .max = 40,
           .weight = 50,
           .owner_uid = 4000000000,
           .owner_gid = 4000000001,
           .granted = 36,
           .demand = 40,
           .clients = 1},
          {.path = "ls", .reserve = 8, .priority = 10, .owner_gid = -1, .granted = 8, .demand = 8, .clients = 1},
          {.path = "batch-2", .reserve_mode = "strict", .owner_gid = -1},
          {.path = "/", .reserve_mode = "strict", .owner_gid = -1, .granted = 132, .demand = 140},
          {.path = "batch",
           .reserve_mode = "strict",
           .max = 100,
           .weight = 50,
           .memory_max = 1 << 30,
           .owner_gid = -1,
           .granted = 36,
           .demand = 40}};
}

TEST(SliceRows, TreeOrderAndIndentation) {
  const std::vector<ipc::Slice> all = slices();
  Lines labels;
  for (const TreeRow& row : tree_rows(all)) labels.push_back(row.label);
  EXPECT_EQ(labels, (Lines{"/", "  batch", "    train", "  batch-2", "  ls"}));
}

TEST(SliceRows, AModeIsShownUnlessItIsTheUsualOne) {
  EXPECT_EQ(reserve_text({.path = "a", .reserve = 8}), "8");
  EXPECT_EQ(reserve_text({.path = "a", .reserve = 8, .reserve_mode = "strict"}), "8 strict");
  EXPECT_EQ(reserve_text({.path = "a", .reserve = 0, .reserve_mode = "strict"}), "-");
  EXPECT_EQ(reserve_text({.path = "a", .reserve = 0, .reserve_per_gpu = "25%"}), "25%");
  EXPECT_EQ(reserve_text({.path = "a", .reserve = 8, .reserve_per_gpu = "1:4", .reserve_mode = "strict"}),
            "8,1:4 strict");
  EXPECT_EQ(max_text({.path = "a", .max_per_gpu = "0:none,1:4"}), "0:none,1:4");
}

TEST(SliceRows, WhatIsInForceStandsBesideWhatIsSet) {
  ipc::Slice bound{.path = "a/b", .reserve = 8, .reserve_mode = "strict", .priority = 100};
  EXPECT_EQ(bounds_text(bound), "");
  bound.effective_priority = -10;
  bound.effective_max = 40;
  bound.effective_reserve_mode = "active";
  bound.effective_memory_max = 1 << 30;
  EXPECT_EQ(priority_text(bound), "100 (-10)");
  EXPECT_EQ(max_text(bound), "- (40)");
  EXPECT_EQ(reserve_text(bound), "8 strict (active)");
  EXPECT_EQ(
      bounds_text(bound),
      "slices above bound it: priority -10 instead of 100, max 40 instead of none, reserve mode active instead of "
      "strict, memory max 1 GiB instead of none");
  ipc::Slice part{.path = "a/b", .max_per_gpu = "50%"};
  part.memory_max_per_gpu = "1:16G";
  part.effective_max = 3;
  part.effective_memory_max = 1 << 30;
  EXPECT_EQ(bounds_text(part), "slices above bound it: max 3 instead of 50%, memory max 1 GiB instead of 1:16G");
}

TEST(SliceRows, MemoryThatIsKeptIsSaidWhereItIsLess) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  ipc::Slice slice{.path = "a", .memory_min = 8 * kGiB};
  slice.on_gpus = {{.device = 0, .memory_min = 8 * kGiB, .same = true}};
  EXPECT_EQ(bounds_text(slice), "");
  slice.on_gpus.push_back({.device = 1, .memory_min = 4 * kGiB, .same = true});
  EXPECT_EQ(bounds_text(slice), "memory min 4 GiB of GPU 1 instead of 8 GiB");
  EXPECT_TRUE(gpu_lines(slice).empty()) << "its amounts are the same on each";
}

TEST(SliceRows, WhatASliceHasOfEachGpuIsALine) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  ipc::Slice slice{.path = "a", .memory_refusals = 3};
  EXPECT_TRUE(use_lines(slice).empty());
  EXPECT_EQ(refusals_text(slice), "3 refusals for want of memory");
  slice.on_gpus = {
      {.device = 0, .granted = 8, .memory = kGiB, .memory_peak = 2 * kGiB, .max_refusals = 1},
      {.device = 1},
      {.device = 2, .granted = 1, .memory = 0, .memory_peak = kGiB, .max_refusals = 1, .driver_max = 5 * kGiB},
      {.device = 3, .driver_max = 6 * kGiB}};
  EXPECT_EQ(use_lines(slice),
            (Lines{"GPU 0: 8 SMs granted, memory 1 GiB, at most 2 GiB",
                   "GPU 2: 1 SM granted, memory 0 B, at most 1 GiB; the driver enforces 5 GiB, contexts "
                   "included",
                   "GPU 3: 0 SMs granted, memory 0 B, at most 0 B; the driver enforces 6 GiB, contexts "
                   "included"}));
  EXPECT_EQ(refusals_text(slice), "3 refusals for want of memory, 2 by its own memory max");
}

TEST(SliceRows, AQuotaAndItsBurstAreToldOfEachGpuThatHasThem) {
  ipc::Slice slice{.path = "a", .quota = "40ms/100ms,2:none", .burst = "1:20ms"};
  slice.on_gpus = {{.device = 0, .same = false, .quota = "40ms/100ms"},
                   {.device = 1, .same = false, .quota = "40ms/100ms", .burst = "20ms"},
                   {.device = 2, .same = false}};
  EXPECT_EQ(gpu_lines(slice), (Lines{"GPU 0: reserve 0, max none, memory max none, quota 40ms/100ms",
                                     "GPU 1: reserve 0, max none, memory max none, quota 40ms/100ms, burst 20ms",
                                     "GPU 2: reserve 0, max none, memory max none"}));
}

TEST(SliceRows, PressureIsALineEach) {
  EXPECT_TRUE(pressure_lines({.path = "a"}).empty());
  const ipc::Slice waits{.path = "a", .pressure = {{"some", 12.34, 4, 1, 2'500'000}, {"full", 0, 0, 0, 0}}};
  EXPECT_EQ(pressure_lines(waits), (Lines{"some 12.3 % of 10 s, 4.0 % of 60 s, 1.0 % of 300 s; 2.5 s in all",
                                          "full 0.0 % of 10 s, 0.0 % of 60 s, 0.0 % of 300 s; 0 us in all"}));
}

TEST(SliceRows, WhatIsFrozenSaysSo) {
  ipc::Slice own{.path = "a", .max = 40, .frozen = "yes"}, below{.path = "a/b", .reserve = 4};
  own.effective_max = 0;
  EXPECT_EQ(max_text(own), "40 (frozen)");
  EXPECT_EQ(bounds_text(own), "") << "no slice above does that";
  below.effective_max = below.effective_reserve = 0;
  below.effective_frozen = "yes";
  EXPECT_EQ(max_text(below), "- (frozen)");
  EXPECT_EQ(bounds_text(below), "slices above bound it: frozen yes instead of no");
}

TEST(SliceRows, TheTopmostPolicyForJobsRules) {
  const std::vector<ipc::Slice> all{{.path = "/", .policy = "share"},
                                    {.path = "a", .policy = "srt:protect_ms=5"},
                                    {.path = "a/b", .policy = "hpf"},
                                    {.path = "a-c", .policy = "share"}};
  EXPECT_EQ(ruling_policy(all, "a/b"), "policy srt:protect_ms=5 of a");
  EXPECT_EQ(ruling_policy(all, "a"), "policy srt:protect_ms=5 of a");
  EXPECT_EQ(ruling_policy(all, "a-c"), "");
  EXPECT_EQ(ruling_policy(all, "/"), "");
}

TEST(SliceRows, Listing) {
  EXPECT_EQ(
      slice_table(slices()).lines(),
      (Lines{"SLICE       RESERVE  MAX  WEIGHT  PRIORITY  POLICY  OWNER                  GRANTED  DEMAND  CLIENTS",
             "/                 -    -     100         0  share   root                       132     140      0+2",
             "  batch           -  100      50         0  share   root                        36      40      0+1",
             "    train  4 strict   40      50         0  share   4000000000:4000000001       36      40        1",
             "  batch-2         -    -     100         0  share   root                         0       0        0",
             "  ls              8    -     100        10  share   root                         8       8        1"}));
}

}  // namespace
}  // namespace gpuctl::cli
