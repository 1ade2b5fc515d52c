#include "sched/place_notes.h"

#include <gtest/gtest.h>

#include "sched/slice_tree.h"

namespace gpuctl::sched::place_notes_test {

constexpr Caller kRoot{0, {}};

using Lines = std::vector<std::string>;

SliceTree tree_of(const std::vector<std::pair<std::string, SliceSettings>>& slices) {
  SliceTree tree(CapSM{132}, 0);
  for (const auto& [path, settings] : slices) EXPECT_TRUE(tree.create(path, settings, kRoot)) << path;
  return tree;
}

Lines notes(const SliceTree& tree, const Lines& paths) {
  return place_notes(tree.slices(), paths);
}

TEST(PlaceNotes, APriorityThatNoSliceBelowHasIsSaidOnceOfParentAndChildren) {
  const SliceTree tree = tree_of({{"a", {.priority = 50}}, {"a/x", {}}, {"a/y", {}}, {"b", {.priority = 9}}});
  const Lines line{"priority 50 of slice a is for programs directly in it: slices below have 0, as none is set"};
  EXPECT_EQ(notes(tree, {"a"}), line);
  EXPECT_EQ(notes(tree, {"a/x"}), line);
  EXPECT_EQ(notes(tree, {"a", "a/x", "a/y"}), line);
  EXPECT_EQ(notes(tree, {"b"}), Lines{}) << "it has none below";
  EXPECT_EQ(notes(tree, {"/", "none"}), Lines{});
}

TEST(PlaceNotes, WhoGivesOneSliceAPriorityKnowsOfTheOthers) {
  const SliceTree tree = tree_of({{"a", {.priority = 50}}, {"a/x", {.priority = 50}}, {"a/y", {}}, {"a/y/z", {}}});
  EXPECT_EQ(notes(tree, {"a", "a/x", "a/y", "a/y/z"}), Lines{});
}

TEST(PlaceNotes, ATargetThatSlicesElsewhereDoNotSeeIsSaid) {
  const std::vector<std::pair<std::string, SliceSettings>> nested{{"a", {}}, {"a/x", {.latency = "5ms"}}, {"a/y", {}}};
  EXPECT_EQ(notes(tree_of(nested), {"a/x"}), Lines{}) << "nobody is elsewhere";
  auto beside = nested;
  beside.push_back({"b", {}});
  EXPECT_EQ(notes(tree_of(beside), {"a/x", "a/y", "a", "b"}),
            Lines{"to the latency of slice a/x only what is in a yields: if others are to, set it for a"});
  beside.front().second.latency = "9ms";
  EXPECT_EQ(notes(tree_of(beside), {"a/x", "a"}), Lines{}) << "a has its own";
}

TEST(PlaceNotes, AWholeDeviceThatIsReservedIsSaidOfWhoHasAPartInIt) {
  const SliceTree tree =
      tree_of({{"a", {.reserve = 100}}, {"a/x", {.reserve = 100}}, {"b", {.reserve = 32}}, {"c", {}}});
  const auto line = [&](const Lines& paths, std::uint32_t sms) {
    return all_reserved(tree.slices(), tree.nodes(), paths, CapSM{sms}, "GPU 1");
  };
  const std::string all = "all 132 SMs of GPU 1 are reserved now: none is left for others while these are kept";
  EXPECT_EQ(line({"b"}, 132), all);
  EXPECT_EQ(line({"a", "c"}, 132), all);
  EXPECT_EQ(line({"c"}, 132), "");
  EXPECT_EQ(line({"b"}, 133), "");
  EXPECT_NE(line({"b"}, 100), "") << "which has less than that";
}

}  // namespace gpuctl::sched::place_notes_test
