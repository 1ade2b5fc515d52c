#include "gpuctld/ends/faults.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuctl::daemon {
namespace {

constexpr std::int64_t kStart = 1'795'000'000'000'000;  // 2026-11-18T11:06:40Z

Fault fault(std::int32_t pid, std::int64_t after_us = 0, bool shares = true) {
  return {.pid = pid,
          .command = "./a",
          .slice = "batch",
          .device = 0,
          .error = 700,
          .name = "CUDA_ERROR_ILLEGAL_ADDRESS",
          .time_us = kStart + after_us,
          .shares_faults = shares,
          .of_process = 0};
}

bool has(const std::string& line, const std::string& part) {
  return line.find(part) != line.npos;
}

TEST(Faults, ALineSaysWhoWhatWhereWhenAndWhatFollows) {
  Faults faults;
  EXPECT_EQ(faults.add(fault(42, 123'456, false)),
            "fault at 2026-11-18T11:06:40.123456Z on GPU 0: process 42 (./a, slice batch): CUDA_ERROR_ILLEGAL_ADDRESS "
            "(700); its grant is free; it can use the GPU again in a new context only; others on the GPU go on");
}

TEST(Faults, UnderMpsTheFirstIsNamed) {
  Faults faults;
  EXPECT_TRUE(has(faults.add(fault(42)), "the first on this GPU"));
  EXPECT_TRUE(has(faults.add(fault(43, 1500)), "number 2 on this GPU, 1.500 ms after process 42 (./a)"));
  EXPECT_TRUE(has(faults.add(fault(44, 2000)), "number 3 on this GPU, 2.000 ms after process 42 (./a)"));
  Fault elsewhere = fault(45, 2100);
  elsewhere.device = 1;
  EXPECT_TRUE(has(faults.add(elsewhere), "the first on this GPU"));
  EXPECT_TRUE(has(faults.add(fault(46, kFaultFollowsWithinUs)), "the first on this GPU"));
  EXPECT_TRUE(has(faults.add(fault(46, kFaultFollowsWithinUs + 1)), "the first on this GPU"));
}

TEST(Faults, AreCountedBySlice) {
  Faults faults;
  faults.add(fault(42));
  faults.add(fault(43));
  Fault other = fault(44);
  other.slice = "ls";
  faults.add(other);
  EXPECT_EQ(faults.of("batch"), 2);
  EXPECT_EQ(faults.of("ls"), 1);
  EXPECT_EQ(faults.of("none"), 0);
  faults.keep([](const std::string& slice) { return slice == "ls"; });
  EXPECT_EQ(faults.of("batch"), 0);
  EXPECT_EQ(faults.of("ls"), 1);
  EXPECT_EQ(faults.total(), 3);
}

TEST(Faults, WhatProgramsSayIsCutAndStaysOneLine) {
  Faults faults;
  Fault nasty = fault(42);
  nasty.command = "./a\nroot: all is well\x1b[2J";
  nasty.name = "x\n\x7f" + std::string(100'000, 'y') + "\xff";
  const std::string line = faults.add(nasty);
  EXPECT_LT(line.size(), 500u);
  EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7f; })) << line;
  nasty.name = "";
  EXPECT_TRUE(has(faults.add(nasty), "an error without a name (700)"));
}

TEST(Faults, AProcessHasSoManyLinesAndNoMore) {
  Faults faults;
  int lines = 0;
  for (int i = 0; i < 100; ++i) {
    Fault again = fault(42, i);
    again.of_process = i;
    lines += !faults.add(again).empty();
  }
  EXPECT_EQ(lines, kFaultLinesPerProcess);
  EXPECT_EQ(faults.of("batch"), 100);
}

}  // namespace
}  // namespace gpuctl::daemon
