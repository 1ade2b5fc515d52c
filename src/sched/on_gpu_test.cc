#include "sched/on_gpu.h"

#include <gtest/gtest.h>

#include <utility>

#include "sched/slice_tree.h"

namespace gpuctl::sched {
namespace {

const Caller kOwnerOfAll{.uid = 0, .gids = {}};
const GpuSize kLarge{.index = 0, .uuid = "GPU-aa00", .sms = CapSM{132}, .memory = 80'000},
    kSmall{.index = 1, .uuid = "GPU-bb00", .sms = CapSM{78}, .memory = 40'000};

SliceTree two_gpus() {
  return SliceTree({kLarge, kSmall}, 0);
}

Slice slice_on(const SliceTree& tree, std::string_view path, const GpuSize& gpu) {
  return *tree.on(gpu).find(path);
}

TEST(OnGpu, AQuotaMayBeThatOfOneGpu) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("one", {.quota = "1:40ms/100ms", .burst = "20ms"}, kOwnerOfAll));
  EXPECT_TRUE(differ_by_gpu(tree.slices()));
  EXPECT_FALSE(quota_of(slice_on(tree, "one", kLarge)).any());
  const Quota there = quota_of(slice_on(tree, "one", kSmall));
  EXPECT_EQ(there.time, std::chrono::milliseconds{40});
  EXPECT_EQ(there.burst, std::chrono::milliseconds{20});
  EXPECT_TRUE(tree.nodes().back().has_quota) << "somewhere";
  EXPECT_FALSE(tree.on(kLarge).nodes().back().has_quota);
  ASSERT_TRUE(tree.change("one", {.quota = "50ms/100ms,GPU-bb:none", .burst = "none"}, kOwnerOfAll));
  EXPECT_TRUE(quota_of(slice_on(tree, "one", kLarge)).any());
  EXPECT_FALSE(quota_of(slice_on(tree, "one", kSmall)).any());
}

TEST(OnGpu, PartsAreOfEachGpu) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create(
      "ls", {.reserve_per_gpu = "25%", .max_per_gpu = "50%", .memory_max_per_gpu = "25%", .memory_high_per_gpu = "20%"},
      kOwnerOfAll));
  EXPECT_EQ(slice_on(tree, "ls", kSmall).memory_high, 8'000u);
  EXPECT_EQ(tree.effective().back().memory_high, 16'000u);
  EXPECT_EQ(slice_on(tree, "ls", kLarge).reserve, CapSM{33});
  EXPECT_EQ(slice_on(tree, "ls", kSmall).reserve, CapSM{19});
  EXPECT_EQ(slice_on(tree, "ls", kLarge).max, CapSM{66});
  EXPECT_EQ(slice_on(tree, "ls", kSmall).max, CapSM{39});
  EXPECT_EQ(slice_on(tree, "ls", kLarge).memory_max, 20'000u);
  EXPECT_EQ(slice_on(tree, "ls", kSmall).memory_max, 10'000u);
  const Effective most = tree.effective().back();
  EXPECT_EQ(most.reserve, CapSM{33});
  EXPECT_EQ(most.max, CapSM{66});
  EXPECT_EQ(most.memory_max, 20'000u);
}

TEST(OnGpu, OneGpuHasAnother) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("ls", {.reserve = 8, .reserve_per_gpu = "1:16", .max_per_gpu = "GPU-bb:40"}, kOwnerOfAll));
  EXPECT_EQ(slice_on(tree, "ls", kLarge).reserve, CapSM{8});
  EXPECT_EQ(slice_on(tree, "ls", kSmall).reserve, CapSM{16});
  EXPECT_EQ(slice_on(tree, "ls", kLarge).max, kUnlimitedCapSM);
  EXPECT_EQ(slice_on(tree, "ls", kSmall).max, CapSM{40});
  EXPECT_EQ(tree.nodes().back().max, kUnlimitedCapSM);
}

TEST(OnGpu, APartIsAnSmAtLeastAndNothingIsNothing) {
  const GpuSize tiny{.index = 0, .uuid = {}, .sms = CapSM{8}};
  SliceTree tree({tiny}, 0);
  ASSERT_TRUE(tree.create("a", {.max_per_gpu = "1%"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("b", {.max_per_gpu = "0%"}, kOwnerOfAll));
  EXPECT_EQ(slice_on(tree, "a", tiny).max, CapSM{1});
  EXPECT_EQ(slice_on(tree, "b", tiny).max, CapSM{0});
}

TEST(OnGpu, ANumberByItselfIsForEveryGpu) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("ls", {.reserve_per_gpu = "25%", .max_per_gpu = "1:40"}, kOwnerOfAll));
  ASSERT_TRUE(tree.change("ls", {.reserve = 8, .max_unlimited = true}, kOwnerOfAll));
  EXPECT_FALSE(differ_by_gpu(tree.slices()));
  EXPECT_EQ(tree.find("ls")->reserve, CapSM{8});
  ASSERT_TRUE(tree.change("ls", {.reserve_per_gpu = "0:4", .weight = 5}, kOwnerOfAll));
  EXPECT_EQ(slice_on(tree, "ls", kLarge).reserve, CapSM{4});
  EXPECT_EQ(slice_on(tree, "ls", kSmall).reserve, CapSM{8});
}

TEST(OnGpu, ReservesFitEachGpuThatTheyName) {
  SliceTree tree = two_gpus();
  for (const char* path : {"a", "b", "c", "d"}) ASSERT_TRUE(tree.create(path, {.reserve_per_gpu = "25%"}, kOwnerOfAll));
  const auto refused = tree.create("e", {.reserve_per_gpu = "1:4"}, kOwnerOfAll);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "reserve of slice e does not fit: 4 asked, 2 available on GPU 1");
  EXPECT_TRUE(tree.create("e", {.reserve_per_gpu = "1:2"}, kOwnerOfAll));
  // A number for every GPU has only to fit the largest, which is full.
  EXPECT_FALSE(tree.create("f", {.reserve = 1}, kOwnerOfAll));
  EXPECT_FALSE(tree.change("a", {.reserve_per_gpu = "80%"}, kOwnerOfAll));
}

TEST(OnGpu, AReserveIsBelowTheMaxOnEachGpuThatTheyName) {
  SliceTree tree = two_gpus();
  const auto refused = tree.create("ls", {.reserve = 8, .max_per_gpu = "1:4"}, kOwnerOfAll);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "reserve: reserve 8 is above max 4 on GPU 1");
  EXPECT_TRUE(tree.create("ls", {.reserve = 8, .reserve_per_gpu = "1:4", .max_per_gpu = "1:4"}, kOwnerOfAll));
}

TEST(OnGpu, ManySlicesAtOnceExchangeWhatTheyHaveThere) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("a", {.reserve_per_gpu = "1:70"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("b", {.reserve_per_gpu = "1:8"}, kOwnerOfAll));
  const SliceChange less{.reserve_per_gpu = "1:8"}, more{.reserve_per_gpu = "1:70"},
      too_much{.reserve_per_gpu = "1:71"};
  std::size_t at = 0;
  const std::vector<SliceTree::Edit> fits{{"a", &less}, {"b", &more}}, does_not{{"a", &less}, {"b", &too_much}};
  EXPECT_FALSE(tree.apply(does_not, kOwnerOfAll, tree.capacity(), at));
  EXPECT_EQ(at, 1u);
  EXPECT_TRUE(tree.apply(fits, kOwnerOfAll, tree.capacity(), at));
  EXPECT_EQ(slice_on(tree, "b", kSmall).reserve, CapSM{70});
}

/// What others name decides nothing for a slice that was admitted where GPUs have more.
TEST(OnGpu, ASmallGpuThatOthersNameChangesNothingForASlice) {
  const GpuSize eight{.index = 0, .uuid = "GPU-a", .sms = CapSM{8}}, six{.index = 1, .uuid = "GPU-b", .sms = CapSM{6}};
  SliceTree tree({eight, six}, 0);
  ASSERT_TRUE(tree.create("x", {.reserve = 4, .max_per_gpu = "50%"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("p", {.reserve_per_gpu = "50%"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("p/c", {.reserve = 4}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("z", {.max_per_gpu = "1:3"}, kOwnerOfAll));
  for (const char* path : {"x", "p", "p/c"}) {
    EXPECT_TRUE(tree.change(path, {.frozen = "yes"}, kOwnerOfAll)) << path;
    EXPECT_TRUE(tree.change(path, {.weight = 7}, kOwnerOfAll)) << path;
  }
  std::size_t at = 0;
  const SliceChange x{.reserve = 4, .max_per_gpu = "50%"}, p{.reserve_per_gpu = "50%"}, c{.reserve = 4},
      z{.max_per_gpu = "1:3"};
  const std::vector<SliceTree::Edit> all{{"p", &p}, {"p/c", &c}, {"x", &x}, {"z", &z}};
  EXPECT_TRUE(tree.apply(all, kOwnerOfAll, tree.capacity(), at));
  // Where nobody knows the GPU, as from a file, any such tree is taken.
  SliceTree small({six}, 0);
  EXPECT_TRUE(small.apply(all, kOwnerOfAll, CapSM{256}, at));
  EXPECT_FALSE(SliceTree({six}, 0).apply(all, kOwnerOfAll, CapSM{6}, at));
}

/// Whether programs of the slice see the large and the small GPU.
std::pair<bool, bool> seen(const SliceTree& tree, std::string_view path) {
  return {sees(tree.slices(), path, kLarge), sees(tree.slices(), path, kSmall)};
}

TEST(OnGpu, ASliceSeesWhatItNamesOfWhatThoseAboveSee) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("a", {.devices = "GPU-bb"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("a/any", {}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("a/both", {.devices = "0,1"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("a/other", {.devices = "0"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("b", {}, kOwnerOfAll));
  EXPECT_EQ(seen(tree, "b"), std::pair(true, true));
  EXPECT_FALSE(names_devices(tree.slices(), "b"));
  for (const char* path : {"a", "a/any", "a/both"}) {
    EXPECT_EQ(seen(tree, path), std::pair(false, true)) << path;
    EXPECT_FALSE(slice_on(tree, path, kLarge).seen) << path;
    EXPECT_TRUE(slice_on(tree, path, kSmall).seen) << path;
    EXPECT_TRUE(names_devices(tree.slices(), path)) << path;
  }
  EXPECT_EQ(seen(tree, "a/other"), std::pair(false, false));
  EXPECT_FALSE(tree.effective()[4].seen);
  EXPECT_TRUE(tree.effective()[1].seen);
  ASSERT_TRUE(tree.change("/", {.devices = "0"}, kOwnerOfAll));
  EXPECT_EQ(seen(tree, "b"), std::pair(true, false));
  EXPECT_EQ(seen(tree, "a"), std::pair(false, false));
}

TEST(OnGpu, WhereItsProgramsSeeNothingASliceHasNoReserve) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("a", {.reserve = 100, .devices = "0"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("a/b", {.reserve = 60}, kOwnerOfAll)) << "it sees what the slice above sees";
  EXPECT_EQ(slice_on(tree, "a", kSmall).reserve, CapSM{0});
  EXPECT_EQ(slice_on(tree, "a/b", kSmall).reserve, CapSM{0});
  EXPECT_EQ(slice_on(tree, "a/b", kLarge).reserve, CapSM{60});
  EXPECT_EQ(tree.effective().back().reserve, CapSM{60});
  // What others cannot have there, they can elsewhere.
  EXPECT_FALSE(tree.create("c", {.reserve = 40}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("c", {.reserve = 40, .devices = "1"}, kOwnerOfAll));
  EXPECT_FALSE(tree.create("d", {.reserve = 39, .devices = "1"}, kOwnerOfAll)) << "of 78 SMs";
  EXPECT_FALSE(tree.change("c", {.devices = "all"}, kOwnerOfAll)) << "the reserve is for another GPU then";
  EXPECT_TRUE(tree.change("c", {.reserve = 32, .devices = "all"}, kOwnerOfAll));
}

TEST(OnGpu, ManySlicesAtOnceFitWhereTheirProgramsSee) {
  SliceTree tree = two_gpus();
  const SliceChange a{.reserve = 100, .devices = "0"}, b{.reserve = 70, .devices = "1"}, both{.reserve = 70};
  const SliceChange below{.reserve = 70};
  std::size_t at = 0;
  EXPECT_FALSE(tree.apply(std::vector<SliceTree::Edit>{{"a", &a}, {"b", &both}}, kOwnerOfAll, tree.capacity(), at));
  EXPECT_TRUE(tree.apply(std::vector<SliceTree::Edit>{{"a", &a}, {"b", &b}, {"b/c", &below}}, kOwnerOfAll,
                         tree.capacity(), at));
  EXPECT_EQ(slice_on(tree, "b/c", kSmall).reserve, CapSM{70});
  EXPECT_EQ(slice_on(tree, "b/c", kLarge).reserve, CapSM{0});
}

TEST(OnGpu, AGpuAsLargeAsTheLargestCounts) {
  const GpuSize one{.index = 0, .uuid = "GPU-a", .sms = CapSM{8}}, two{.index = 1, .uuid = "GPU-b", .sms = CapSM{8}};
  SliceTree tree({one, two}, 0);
  EXPECT_FALSE(tree.create("b", {.reserve = 4, .max = 1, .max_per_gpu = "0:8"}, kOwnerOfAll));
}

TEST(OnGpu, AParentThatGivesLessIsCheckedWithItsChildren) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("p", {.reserve_per_gpu = "1:8"}, kOwnerOfAll));
  ASSERT_TRUE(tree.create("p/c", {.reserve_per_gpu = "1:6"}, kOwnerOfAll));
  const SliceChange less{.reserve_per_gpu = "1:4"}, same{.reserve_per_gpu = "1:6"};
  const std::vector<SliceTree::Edit> edits{{"p", &less}, {"p/c", &same}};
  std::size_t at = 0;
  EXPECT_FALSE(tree.apply(edits, kOwnerOfAll, tree.capacity(), at));
  EXPECT_EQ(at, 1u);
}

TEST(OnGpu, TheMostOnAnyGpuIsOfTheLargest) {
  SliceTree tree = two_gpus();
  ASSERT_TRUE(tree.create("a", {.max_per_gpu = "50%"}, kOwnerOfAll));
  EXPECT_EQ(most_on_any(*tree.find("a"), tree.gpus()).max, CapSM{66});
  EXPECT_EQ(most_on_any(*tree.find("/"), tree.gpus()).reserve, CapSM{132});
}

TEST(OnGpu, WhatIsNoAmountIsRefused) {
  SliceTree tree = two_gpus();
  EXPECT_EQ(tree.create("a", {.reserve_per_gpu = "lots"}, kOwnerOfAll).error().field, "reserve_per_gpu");
  EXPECT_EQ(tree.create("a", {.reserve_per_gpu = "0:none"}, kOwnerOfAll).error().field, "reserve_per_gpu");
  EXPECT_EQ(tree.create("a", {.max_per_gpu = "101%"}, kOwnerOfAll).error().field, "max_per_gpu");
  EXPECT_EQ(tree.change("/", {.reserve_per_gpu = "50%"}, kOwnerOfAll).error().field, "reserve_per_gpu");
  EXPECT_TRUE(tree.change("/", {.max_per_gpu = "50%"}, kOwnerOfAll));
}

}  // namespace
}  // namespace gpuctl::sched
