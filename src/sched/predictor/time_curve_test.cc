#include "sched/predictor/time_curve.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace gpuctl::sched::time_curve_test {
namespace {

constexpr CapSM kDevice{8};

/// Learns the times of a kernel that scales up to `most`.
void learn_all(TimeCurve& curve, std::uint32_t most, std::initializer_list<std::uint32_t> with) {
  for (const std::uint32_t n : with) curve.learn(CapSM{n}, 80e6 / std::min(n, most));
}

TEST(TimeCurve, IsPrunedToWhatIsFaster) {
  TimeCurve curve;
  for (const auto& [n, ns] : {std::pair{4, 30e3}, {1, 100e3}, {3, 35e3}, {2, 35e3}, {8, 31e3}})
    curve.learn(CapSM{static_cast<std::uint32_t>(n)}, ns);
  const auto points = curve.points();
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[1].capsm, CapSM{2});
  EXPECT_EQ(points[2].capsm, CapSM{4});
  EXPECT_EQ(points[2].whole, Time{30'000});
}

TEST(TimeCurve, TakesNoiseForNoGain) {
  TimeCurve curve;
  curve.learn(CapSM{2}, 20.0e6);
  curve.learn(CapSM{5}, 19.8e6);
  curve.learn(CapSM{8}, 19.5e6);
  ASSERT_EQ(curve.points().size(), 1u);
  EXPECT_EQ(curve.filled(kDevice).back().capsm, CapSM{2});
  TimeCurve scales;  // one CapSM more than 100 gains one in a hundred
  scales.learn(CapSM{100}, 1.01e6);
  scales.learn(CapSM{101}, 1.00e6);
  EXPECT_EQ(scales.points().size(), 2u);
}

TEST(TimeCurve, SaysNothingBeforeTwoPoints) {
  TimeCurve curve;
  EXPECT_TRUE(curve.filled(kDevice).empty());
  curve.learn(CapSM{8}, 10e6);
  curve.learn(CapSM{8}, 12e6);
  EXPECT_TRUE(curve.filled(kDevice).empty());
  curve.learn(CapSM{4}, 20e6);
  EXPECT_EQ(curve.filled(kDevice).size(), 8u);
}

TEST(TimeCurve, FillsGapsBySpeedAndBothEndsInProportion) {
  TimeCurve curve;
  curve.learn(CapSM{2}, 40e6);
  curve.learn(CapSM{4}, 25e6);
  const auto filled = curve.filled(kDevice);
  ASSERT_EQ(filled.size(), 8u);
  EXPECT_EQ(filled[0].whole, Time{80'000'000});
  EXPECT_EQ(filled[1].whole, Time{40'000'000});
  EXPECT_NEAR(static_cast<double>(filled[2].whole.count()), 1 / ((1 / 40e6 + 1 / 25e6) / 2), 1);
  EXPECT_EQ(filled[3].whole, Time{25'000'000});
  EXPECT_EQ(filled[7].whole, Time{12'500'000});
  EXPECT_EQ(curve.filled(CapSM{3}).size(), 3u) << "another device";
}

TEST(TimeCurve, EndsWhereMoreIsKnownToBeOfNoUse) {
  TimeCurve curve;
  learn_all(curve, 2, {8, 4, 2});
  ASSERT_EQ(curve.filled(kDevice).size(), 2u);
  EXPECT_EQ(curve.filled(kDevice)[1].whole, Time{40'000'000});
}

TEST(TimeCurve, FollowsAKernelThatChanges) {
  TimeCurve curve;
  learn_all(curve, 2, {8, 4, 2});
  for (int i = 0; i < 30; ++i) curve.learn(CapSM{2}, 160e6);  // its input grew: four times the time with 2
  EXPECT_GT(curve.filled(kDevice).size(), 2u) << "more are worth trying";
}

TEST(TimeCurve, TriesAgainWhatWasOfNoUseLongAgo) {
  TimeCurve curve;
  learn_all(curve, 2, {8, 1, 2});
  for (int i = 0; i < 200; ++i) curve.learn(CapSM{2}, 40e6);
  EXPECT_EQ(curve.filled(kDevice).size(), 2u);
  for (int i = 0; i < 100; ++i) curve.learn(CapSM{2}, 40e6);
  EXPECT_EQ(curve.filled(kDevice).size(), 8u) << "nobody knows any more that 8 are of no use";
  // But launches that always have the whole device do not make the curve forget the times with fewer.
  TimeCurve alone;
  learn_all(alone, 2, {8, 2});
  for (int i = 0; i < 1000; ++i) alone.learn(CapSM{8}, 40e6);
  EXPECT_EQ(alone.filled(kDevice).size(), 2u);
}

TEST(TimeCurve, KeepsABoundedNumberOfPoints) {
  TimeCurve curve;
  for (std::uint32_t n = 132; n > 0; --n) curve.learn(CapSM{n}, 1e9 / n);
  EXPECT_EQ(curve.points().size(), 32u);
  EXPECT_EQ(curve.points().front().capsm, CapSM{1}) << "the latest stay";
}

TEST(TimeCurve, IgnoresWhatCannotBe) {
  TimeCurve curve;
  curve.learn(CapSM{0}, 5);
  curve.learn(CapSM{1}, 0);
  curve.learn(CapSM{2}, -1);
  curve.learn(CapSM{3}, 1e17);
  EXPECT_TRUE(curve.points().empty());
}

TEST(TimeCurve, SurvivesARestart) {
  TimeCurve before, after;
  learn_all(before, 3, {8, 1, 3, 5});
  const std::string text = boost::json::serialize(before.to_json());
  ASSERT_TRUE(after.from_json(boost::json::parse(text)));
  EXPECT_EQ(boost::json::serialize(after.to_json()), text);
  ASSERT_EQ(after.filled(kDevice).size(), before.filled(kDevice).size());
  for (std::size_t i = 0; i < after.filled(kDevice).size(); ++i)
    EXPECT_EQ(after.filled(kDevice)[i].whole, before.filled(kDevice)[i].whole);
  for (const char* bad : {"3", "[3]", "[[1,2]]", "[[0,5,1,0]]", "[[1,0,1,0]]", "[[1,5,0,0]]", "[[1,5,1,-1]]",
                          "[[1,1e17,1,0]]", "[[1,5,1,\"x\"]]"})
    EXPECT_FALSE(after.from_json(boost::json::parse(bad))) << bad;
  EXPECT_EQ(boost::json::serialize(after.to_json()), text);
}

TEST(TimeWith, IsDefinedForAnyNumber) {
  const CurvePoint points[] = {{CapSM{2}, Time{400}}, {CapSM{4}, Time{200}}};
  EXPECT_DOUBLE_EQ(time_with(points, CapSM{1}), 800);
  EXPECT_DOUBLE_EQ(time_with(points, CapSM{2}), 400);
  EXPECT_NEAR(time_with(points, CapSM{3}), 800.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(time_with(points, CapSM{9}), 200);
}

}  // namespace
}  // namespace gpuctl::sched::time_curve_test
