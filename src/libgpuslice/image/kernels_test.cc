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
