#include "gpuctld/clients/told_needs.h"

#include <gtest/gtest.h>

namespace gpuctl::daemon {
namespace {

const sched::SmLimits kH100 = sched::sm_limits("9.0").value();

TEST(ToldNeeds, AreThoseOfAllKernels) {
  ipc::Needs page{.version = 2, .count = 2, .kinds = {{256, 32, 8, 0, 0}, {32, 16, 4, 0, 48 * 1024}}};
  ToldNeeds needs;
  EXPECT_TRUE(needs.read(page, kH100));
  EXPECT_FALSE(needs.read(page, kH100)) << "nothing changed";
  ASSERT_EQ(needs.footprint().blocks.size(), 2u);
  EXPECT_EQ(needs.footprint().blocks[1], (sched::BlockShape{32, 16, 48 * 1024}));
  page.count = 1;
  EXPECT_TRUE(needs.read(page, kH100));
  EXPECT_EQ(needs.footprint().blocks.size(), 1u);
  EXPECT_TRUE(needs.forget());
  EXPECT_FALSE(needs.forget());
  EXPECT_TRUE(needs.footprint().blocks.empty());
}

TEST(ToldNeeds, WhatCannotBeIsNotKnown) {
  const ipc::Needs good{.version = 2, .count = 1, .kinds = {{256, 32, 8, 0, 0}}};
  const auto known = [&](auto change) {
    ToldNeeds needs;
    EXPECT_TRUE(needs.read(good, kH100));
    ipc::Needs page = good;
    change(page);
    needs.read(page, kH100);
    return needs.footprint().blocks.size();
  };
  EXPECT_EQ(known([](ipc::Needs&) {}), 1u);
  EXPECT_EQ(known([](ipc::Needs& page) { page.version = 3; }), 0u) << "it is being written";
  EXPECT_EQ(known([](ipc::Needs& page) { page.count = ipc::kMostNeeds + 1; }), 0u);
  EXPECT_EQ(known([](ipc::Needs& page) { page.kinds[0].per_sm = 7; }), 0u) << "there is something else that it needs";
  EXPECT_EQ(known([](ipc::Needs& page) { page.kinds[0].registers = 33; }), 0u) << "six would fit";
  EXPECT_EQ(known([](ipc::Needs& page) { page.kinds[0].threads = 0; }), 0u);
  EXPECT_EQ(known([](ipc::Needs& page) { page.kinds[0].shared = ~0u; }), 0u);
}

}  // namespace
}  // namespace gpuctl::daemon
