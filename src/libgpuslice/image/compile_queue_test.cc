#include "libgpuslice/image/compile_queue.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "libgpuslice/client/spare_descriptors.h"

namespace gpuslice {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// The helper answers nothing, and ends when the test says so.
class CompileQueueTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char name[] = "/tmp/gpuctl-queue-test.XXXXXX";
    scratch_ = mkdtemp(name);
    const std::string helper = scratch_ / "helper";
    std::ofstream(helper) << "#!/bin/sh\necho $1 >>" << (scratch_ / "started").string() << "\nwhile [ ! -e "
                          << (scratch_ / "end").string() << " ]; do sleep 0.01; done\n";
    std::filesystem::permissions(helper, std::filesystem::perms::owner_all);
    setenv("GPUSLICE_COMPILE_HELPER", helper.c_str(), 1);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(scratch_); }
  ~CompileQueueTest() override {
    let_helpers_end();
    std::filesystem::remove(scratch_ / "end");
    std::filesystem::remove(scratch_ / "started");
  }

  void add(std::size_t bytes = 1) {
    queue_.add({.ptx = std::string(bytes, 'x'), .key = {}, .linker = {}},
               [this](const CompileResult& result) { said_.push_back(result ? "forms" : result.error().message); });
  }
  /// Until every one of them has its result.
  void let_helpers_end(std::size_t all = 0) {
    std::ofstream(scratch_ / "end") << "now";
    for (int i = 0; i < 10000 && said_.size() < all; ++i) {
      queue_.tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GE(said_.size(), all);
  }

  static constexpr std::size_t kMost = 1000;
  static inline std::filesystem::path scratch_;
  std::vector<std::string> said_;
  CompileQueue queue_{kMost};
};

TEST_F(CompileQueueTest, WhatWaitsHasNoDescriptor) {
  constexpr int kMany = 60;
  const std::size_t before = open_descriptors();
  for (int i = 0; i < kMany; ++i) {
    add();
    ASSERT_EQ(open_descriptors(), before);
  }
  EXPECT_TRUE(said_.empty()) << said_.front();
  let_helpers_end(kMany);
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(said_.front(), "the compile helper ended without an answer");
}

TEST_F(CompileQueueTest, WhatIsTooMuchIsRefused) {
  add();  // for the helper
  add(kMost - 1);
  add(5 * kMost);  // one may be longer than all that may wait
  EXPECT_TRUE(said_.empty());
  add();
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0], "too much waits for the compile helper; the program's next start goes on with it");
  let_helpers_end(4);
  add();
  let_helpers_end(5);
  EXPECT_EQ(said_[4], "the compile helper ended without an answer") << "there is room again";
}

TEST_F(CompileQueueTest, LeavesTheProgramItsLastDescriptors) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{open_descriptors() + kSpareDescriptors - 4, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  add();
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(said_.empty()) << said_.front();
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "started"));
  let_helpers_end(1);
  EXPECT_TRUE(std::filesystem::exists(scratch_ / "started")) << "it is compiled when there are some again";
}

}  // namespace
}  // namespace gpuslice
