#include "gpuctl/doctor/child.h"

#include <gtest/gtest.h>

namespace gpuctl::cli {
namespace {

using namespace std::chrono_literals;

TEST(AskChild, SaysWhatItSaysAndHowItEnds) {
  const auto said = ask_child({"sh", "-c", "echo one; echo two >&2; echo $THREE; exit 4"}, {{"THREE", "three"}});
  ASSERT_TRUE(said);
  EXPECT_EQ(said->status, 4);
  EXPECT_EQ(said->text, "one\ntwo\nthree\n");
  EXPECT_EQ(ask_child({"sh", "-c", "kill -TERM $$"})->status, 128 + 15);
}

TEST(AskChild, WhatCannotBeStartedOrTakesTooLongSaysNothing) {
  EXPECT_FALSE(ask_child({"/no/such/program"}));
  EXPECT_FALSE(ask_child({"sleep", "600"}, {}, 50ms));
}

TEST(AskChild, OneThatClosesItsOutputAndGoesOnIsNotWaitedFor) {
  const auto before = std::chrono::steady_clock::now();
  const auto said = ask_child({"sh", "-c", "exec sleep 600 >/dev/null 2>&1"}, {}, 200ms);
  EXPECT_TRUE(!said || said->status == 128 + 9);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 60s);
}

TEST(AskChild, EndlessTalkIsCutOff) {
  const auto said = ask_child({"sh", "-c", "head -c 1000000 /dev/zero"});
  ASSERT_TRUE(said);
  EXPECT_LT(said->text.size(), 100'000u);
}

}  // namespace
}  // namespace gpuctl::cli
