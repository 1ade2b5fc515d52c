#include "libgpuslice/image/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace gpuslice {

namespace {

const void* handle(std::uintptr_t number) {
  return reinterpret_cast<const void*>(number << 4);
}

std::shared_ptr<KernelInfo> kernel(const char* name) {
  auto made = std::make_shared<KernelInfo>();
  made->name = name;
  return made;
}

/// Asks twice: the second answer is the thread's own.
KernelInfo* found(const void* of) {
  KernelInfo* first = Kernels::get().find(of);
  EXPECT_EQ(Kernels::get().find(of), first);
  const RecentKernel* recent = Kernels::find_recent(of);
  EXPECT_TRUE(recent && recent->kernel == first);
  return first;
}

TEST(Kernels, AHandleThatMeansAnotherKernelIsFoundAnew) {
  const auto one = kernel("one"), other = kernel("other");
  EXPECT_EQ(found(handle(1)), nullptr);
  Kernels::get().add(handle(1), one);
  EXPECT_EQ(found(handle(1)), one.get());
  Kernels::get().add(handle(1), other);
  EXPECT_EQ(found(handle(1)), other.get());
  Kernels::get().remove({other});
  EXPECT_EQ(found(handle(1)), nullptr);
}

/// What a report of what has changed says of the kernel; nothing: it is not in it.
std::string reason_in_report(const char* name) {
  for (const gpuctl::ipc::Kernel& one : Kernels::get().report(false))
    if (one.name == name) return one.reason;
  return {};
}

TEST(Kernels, TheReasonIsThatOfTheLatestLaunch) {
  const auto one = kernel("latest");
  one->reason = "understood";
  one->persistent = true;
  one->confined_sms = 4;
  Kernels::get().add(handle(4), one);
  one->count_free_launch();
  const std::string free = "launched while nothing is in force for its slice";
  EXPECT_EQ(reason_in_report("latest"), "understood; " + free + " in its original form");
  one->note_original("because it is short");
  EXPECT_EQ(reason_in_report("latest"),
            "understood; launched because it is short in its original form: starts when its slice has SMs, on 4 (a "
            "green context) until it ends");
  one->note_rewritten();
  EXPECT_EQ(reason_in_report("latest"), "understood");
  one->note_rewritten();
  EXPECT_EQ(reason_in_report("latest"), "") << "nothing has changed";
  one->note_original("cooperatively", true);
  one->note_rewritten();
  EXPECT_NE(reason_in_report("latest").find("launched cooperatively in its original form"), std::string::npos)
      << "such launches keep it in any mode";
  one->count_free_launch();
  one->note_rewritten();
  EXPECT_EQ(reason_in_report("latest"), "understood");
  one->persistent = false;
  one->count_free_launch();
  EXPECT_EQ(reason_in_report("latest"), "understood; " + free);
  one->note_original(nullptr);
  EXPECT_EQ(reason_in_report("latest"),
            "understood; starts when its slice has SMs, on 4 (a green context) until it ends");
  Kernels::get().remove({one});
}

TEST(Kernels, OfThoseThatWereLaunchedAnyMayWaitUnlessItIsKnownNotTo) {
  Kernels::get().forget_after_fork();
  const auto one = kernel("one"), other = kernel("other");
  Kernels::get().add(handle(5), one);
  Kernels::get().add(handle(6), other);
  EXPECT_FALSE(Kernels::get().any_may_wait());
  other->count_free_launch();
  EXPECT_TRUE(Kernels::get().any_may_wait()) << "nothing is known of it";
  other->blocks_wait = gpuctl::ptx::BlocksWait::kNo;
  EXPECT_FALSE(Kernels::get().any_may_wait());
  one->blocks_wait = gpuctl::ptx::BlocksWait::kYes;
  EXPECT_FALSE(Kernels::get().any_may_wait());
  one->count_launch();
  EXPECT_TRUE(Kernels::get().any_may_wait());
  Kernels::get().remove({one, other});
}

TEST(Kernels, WhatAnotherThreadTakesAwayIsNotFound) {
  const auto one = kernel("one");
  Kernels::get().add(handle(2), one);
  EXPECT_EQ(found(handle(2)), one.get());
  std::thread([&] { Kernels::get().remove({one}); }).join();
  EXPECT_EQ(Kernels::find_recent(handle(2)), nullptr);
  EXPECT_EQ(Kernels::get().find(handle(2)), nullptr);
}

TEST(Kernels, HandlesOfOneLineAreToldApart) {
  std::vector<const void*> same;
  const auto line = RecentKernels::lines_of(handle(100))[0];
  for (std::uintptr_t number = 100; same.size() < 9; ++number)
    if (RecentKernels::lines_of(handle(number))[0] == line) same.push_back(handle(number));
  std::vector<std::shared_ptr<KernelInfo>> kernels;
  for (const void* one : same) Kernels::get().add(one, kernels.emplace_back(kernel("one of nine")));
  for (int round = 0; round < 3; ++round)
    for (std::size_t i = 0; i < same.size(); ++i) EXPECT_EQ(found(same[i]), kernels[i].get());
}

TEST(Kernels, NearlyAllKernelsOfALargeNetworkAreRemembered) {
  constexpr std::ptrdiff_t kKernels = 200;
  std::mt19937_64 random(1);
  std::vector<const void*> handles;
  while (std::ssize(handles) < kKernels) handles.push_back(handle(random() & 0x7ffffffffff));
  for (const void* one : handles) Kernels::get().add(one, kernel("one of many"));
  for (const void* one : handles) Kernels::get().find(one);
  EXPECT_GE(std::count_if(handles.begin(), handles.end(), Kernels::find_recent), kKernels - 2);
}

TEST(Kernels, AThreadThatFoundNoneLatelyAsksAgain) {
  const auto one = kernel("one");
  Kernels::get().add(handle(3), one);
  std::thread([&] {
    EXPECT_EQ(Kernels::find_recent(handle(3)), nullptr);
    EXPECT_EQ(Kernels::get().find(handle(3)), one.get());
    EXPECT_NE(Kernels::find_recent(handle(3)), nullptr);
  }).join();
}

}  // namespace
}  // namespace gpuslice
