#include "sched/predictor/predictor.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

#include "base/random.h"

namespace gpuctl::sched {
namespace {

constexpr Time us(std::int64_t n) {
  return std::chrono::microseconds{n};
}

/// A kernel like those of FLEP: time in proportion to its input, with noise.
Time truth(const LaunchShape& shape, Random& random, double noise) {
  const double ns = 5000 + 12.5 * shape.blocks + 0.002 * shape.input_bytes;
  return Time{std::llround(ns * (1 + noise * random.normal()))};
}

LaunchShape draw(Random& random) {
  LaunchShape shape;
  shape.blocks = 100 + static_cast<double>(random.below(100000));
  shape.threads = 256;
  shape.input_bytes = static_cast<double>(random.below(1u << 30));
  shape.shared_bytes = static_cast<double>(random.below(4)) * 1024;
  return shape;
}

TEST(Ridge, FindsALinearLaw) {
  Random random(1);
  RidgeModel model;
  EXPECT_FALSE(model.predict({}).has_value());
  for (int i = 0; i < 100; ++i) {  // FLEP trains on 100 inputs
    const LaunchShape shape = draw(random);
    model.learn(shape, truth(shape, random, 0.02));
  }
  double off = 0;
  for (int i = 0; i < 200; ++i) {
    const LaunchShape shape = draw(random);
    const double real = static_cast<double>(truth(shape, random, 0).count());
    off += std::abs(static_cast<double>(model.predict(shape)->count()) / real - 1) / 200;
  }
  EXPECT_LT(off, 0.069);  // FLEP reports 6.9 % over its kernels
}

TEST(Ridge, OfOneShapeIsAboutTheMean) {
  RidgeModel model;
  for (const int t : {90, 100, 110}) model.learn({64, 256, 0, 0}, us(t));
  EXPECT_NEAR(static_cast<double>(model.predict({64, 256, 0, 0})->count()), 100e3, 500);
  EXPECT_NEAR(static_cast<double>(model.predict({6400, 256, 0, 0})->count()), 100e3, 500);  // independent of the grid
}

/// Every second launch takes ten times as long, which nothing tells beforehand.
TEST(Ridge, IsNotDrawnToTheShorterOfTwoThatLookAlike) {
  RidgeModel model;
  for (int i = 0; i < 400; ++i) model.learn({64, 256, 0, 0}, us(i % 2 == 0 ? 10 : 100));
  EXPECT_NEAR(static_cast<double>(model.predict({64, 256, 0, 0})->count()), 55e3, 3e3);
}

/// Errors count over the duration: a hundred times as long is a hundred times as wrong, in time.
TEST(Ridge, IsAsRightForShortLaunchesAsForLongOnes) {
  Random random(5);
  RidgeModel model;
  const auto law = [](double blocks) { return Time{std::llround(4000 + 10 * blocks)}; };
  const auto shape = [](double blocks) { return LaunchShape{blocks, 256, 1024 * blocks, 0}; };
  const auto drawn = [&] { return std::round(100 * std::pow(10, 3 * static_cast<double>(random.below(1000)) / 1000)); };
  for (int i = 0; i < 60; ++i) {
    const double blocks = drawn();
    model.learn(shape(blocks),
                Time{std::llround(static_cast<double>(law(blocks).count()) * (1 + 0.05 * random.normal()))});
  }
  for (const double blocks : {100.0, 1000.0, 100000.0}) {
    const double off =
        static_cast<double>(model.predict(shape(blocks))->count()) / static_cast<double>(law(blocks).count());
    EXPECT_NEAR(off, 1, 0.05) << blocks << " blocks";
  }
}

/// rows x columns x inner, with a block for each 256 results.
TEST(Ridge, KnowsTheProductsOfMatrices) {
  Random random(6);
  RidgeModel model;
  const auto drawn = [&](double least, double most) {
    return std::round(least * std::pow(most / least, static_cast<double>(random.below(1000)) / 1000));
  };
  double off = 0;
  constexpr int kLearnt = 40, kAsked = 200;
  for (int i = 0; i < kLearnt + kAsked; ++i) {
    const double rows = drawn(128, 4096), columns = drawn(509, 1100), inner = drawn(263, 1000);
    const LaunchShape shape{rows * columns / 256, 256, 4 * (rows * inner + inner * columns + rows * columns), 0};
    const double ns = 3000 + rows * columns * inner / 4000;
    if (i < kLearnt)
      model.learn(shape, Time{std::llround(ns)});
    else
      off += std::abs(static_cast<double>(model.predict(shape)->count()) / ns - 1) / kAsked;
  }
  EXPECT_LT(off, 0.15);  // 0.26 with blocks and bytes alone and all launches weighing alike
}

TEST(Ridge, StaysWithinReachOfWhatItSaw) {
  RidgeModel model;
  model.learn({10, 1, 0, 0}, us(10));
  model.learn({20, 1, 0, 0}, us(20));
  EXPECT_GE(*model.predict({0, 1, 0, 0}), us(1));
  EXPECT_EQ(*model.predict({1e9, 1, 0, 0}), us(200));
}

TEST(Predictor, ReportsItsErrorPerKernel) {
  Random random(2);
  Predictor predictor;
  const auto steady = predictor.id("steady"), wild = predictor.id("wild");
  EXPECT_EQ(predictor.predict(steady, {}, us(7)), us(7));
  for (int i = 0; i < 200; ++i) {
    const LaunchShape shape = draw(random);
    predictor.learn(steady, shape, truth(shape, random, 0.01));
    predictor.learn(wild, shape, us(static_cast<std::int64_t>(1 + random.below(1000))));
  }
  const auto known = predictor.knowledge();
  EXPECT_EQ(known[0].name, "steady");
  EXPECT_EQ(known[0].launches, 200u);
  EXPECT_LT(known[0].error, 0.1);
  EXPECT_GT(known[1].error, 0.5);
}

TEST(Predictor, TakesTheMeanOfEvictions) {
  Predictor predictor;
  const auto k = predictor.id("k");
  EXPECT_EQ(predictor.eviction(k, us(20)), us(20));
  predictor.learn_eviction(k, us(30));
  predictor.learn_eviction(k, us(50));
  EXPECT_EQ(predictor.eviction(k, us(20)), us(40));
}

TEST(Predictor, ComparesLaunchesOfAnySizeInACurve) {
  Predictor predictor;
  const auto k = predictor.id("k");
  predictor.learn_curve(k, CapSM{8}, 800, us(100));
  EXPECT_TRUE(predictor.curve(k, CapSM{8}).empty());
  predictor.learn_curve(k, CapSM{2}, 80, us(40));
  const auto curve = predictor.curve(k, CapSM{8});
  ASSERT_EQ(curve.size(), 8u);
  EXPECT_EQ(curve[1].whole, us(500'000)) << "of a million block-tasks";
  EXPECT_EQ(curve[7].whole, us(125'000));
  EXPECT_TRUE(predictor.curve(k + 1, CapSM{8}).empty());
}

TEST(Predictor, CorrectsByProgress) {
  EXPECT_EQ(corrected_remaining(us(100), us(0), 0, 10), us(100));
  EXPECT_EQ(corrected_remaining(us(100), us(50), 5, 10), us(50));
  EXPECT_EQ(corrected_remaining(us(100), us(100), 5, 10), us(75));  // twice as slow: (100 + 200) / 2, half of it left
  EXPECT_EQ(corrected_remaining(us(100), us(100), 10, 10), us(0));
}

TEST(Predictor, SurvivesARestart) {
  Random random(3);
  Predictor before;
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 20; ++i) {
      const LaunchShape shape = draw(random);
      before.learn(before.id(name), shape, truth(shape, random, 0.05));
    }
  before.learn_curve(before.id("b"), CapSM{3}, 10, us(77));
  before.learn_eviction(before.id("a"), us(31));
  Predictor after;
  ASSERT_TRUE(after.from_json(boost::json::parse(boost::json::serialize(before.to_json()))));
  const LaunchShape shape = draw(random);
  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(after.predict(after.id(name), shape, us(0)), before.predict(before.id(name), shape, us(1)));
    EXPECT_EQ(after.eviction(after.id(name), us(9)), before.eviction(before.id(name), us(9)));
  }
  ASSERT_EQ(after.knowledge()[after.id("b")].curve.size(), 1u);
  EXPECT_EQ(after.knowledge()[after.id("b")].curve[0].whole, us(7'700'000));
}

TEST(Predictor, ForgetsDurationsOfADaemonWhoseLaunchesWeighedAlike) {
  Predictor predictor;
  predictor.learn(predictor.id("k"), {1, 1, 1, 1}, us(5));
  predictor.learn_eviction(predictor.id("k"), us(31));
  boost::json::value state = predictor.to_json();
  state.at("kernels").at(0).at("model") = {{"weight", 1}, {"mean", {1, 1, 1, 1, 5000}}};
  ASSERT_TRUE(predictor.from_json(state));
  EXPECT_EQ(predictor.predict(predictor.id("k"), {1, 1, 1, 1}, us(7)), us(7));
  EXPECT_EQ(predictor.eviction(predictor.id("k"), us(9)), us(31));
}

TEST(Predictor, RefusesWhatItCannotHaveWritten) {
  Predictor predictor;
  predictor.learn(predictor.id("k"), {1, 1, 1, 1}, us(5));
  const std::string good = boost::json::serialize(predictor.to_json());
  for (const char* bad : {"3", "{}", R"({"version":2,"kernels":[]})", R"({"version":1,"kernels":[{}]})",
                          R"({"version":1,"kernels":[{"name":"k","launches":-1}]})"}) {
    EXPECT_FALSE(predictor.from_json(boost::json::parse(bad))) << bad;
  }
  std::string cut = good;
  cut.replace(cut.find("\"mean\":["), 8, "\"mean\":[1,");
  const auto refused = predictor.from_json(boost::json::parse(cut));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "predictor state: kernel \"k\": model: field \"mean\"");
  EXPECT_EQ(predictor.predict(predictor.id("k"), {1, 1, 1, 1}, us(0)), us(5));
}

}  // namespace
}  // namespace gpuctl::sched
