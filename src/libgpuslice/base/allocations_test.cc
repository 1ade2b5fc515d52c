#include "libgpuslice/base/allocations.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <vector>

namespace gpuslice {
namespace {

constexpr CUdeviceptr kFirst = 0x7f0000000000, kSecond = 0x7f0000100000;

class AllocationsTest : public ::testing::Test {
 protected:
  std::uint64_t behind(const std::vector<CUdeviceptr>& words) const {
    return allocations_.bytes_behind(std::as_bytes(std::span(words)));
  }
  Allocations allocations_;
};

TEST_F(AllocationsTest, AddsUpWhatThePointersReach) {
  EXPECT_EQ(behind({kFirst}), 0u);
  allocations_.add(kFirst, 4096);
  allocations_.add(kSecond, 512);
  EXPECT_EQ(behind({kFirst, 7, kSecond}), 4608u);
  EXPECT_EQ(behind({kSecond + 511}), 512u) << "inside of it";
  EXPECT_EQ(behind({kSecond + 512}), 0u) << "behind it";
  EXPECT_EQ(behind({kFirst + 4096}), 0u) << "between the two";
  EXPECT_EQ(behind({kFirst - 1, 0, 42}), 0u);
}

TEST_F(AllocationsTest, CountsAnAllocationOnce) {
  allocations_.add(kFirst, 4096);
  EXPECT_EQ(behind({kFirst, kFirst + 8, kFirst}), 4096u);
}

TEST_F(AllocationsTest, KnowsWhatIsGone) {
  allocations_.add(kFirst, 4096);
  allocations_.remove(kFirst + 8);
  EXPECT_EQ(behind({kFirst}), 4096u);
  allocations_.remove(kFirst);
  EXPECT_EQ(behind({kFirst}), 0u);
  allocations_.add(kFirst, 64);
  EXPECT_EQ(behind({kFirst}), 64u);
}

TEST_F(AllocationsTest, ForgetsAllThatBeginInARange) {
  for (const CUdeviceptr address : {kFirst, kFirst + 64, kFirst + 128}) allocations_.add(address, 64);
  allocations_.remove(kFirst, 128);
  EXPECT_EQ(behind({kFirst, kFirst + 64, kFirst + 128}), 64u);
}

TEST_F(AllocationsTest, LooksAtAlignedWholeWordsAlone) {
  allocations_.add(kFirst, 4096);
  std::vector<std::byte> packed(20);
  const CUdeviceptr pointer = kFirst;
  std::memcpy(packed.data() + 12, &pointer, sizeof pointer);
  EXPECT_EQ(allocations_.bytes_behind(packed), 0u);
  std::memcpy(packed.data() + 8, &pointer, sizeof pointer);
  EXPECT_EQ(allocations_.bytes_behind(packed), 4096u);
  EXPECT_EQ(allocations_.bytes_behind(std::span(packed).first(15)), 0u);
}

TEST_F(AllocationsTest, StopsAfterSoManyAddresses) {
  std::vector<CUdeviceptr> words;
  for (std::size_t i = 0; i < Allocations::kMostPointers + 5; ++i) {
    words.push_back(kFirst + 4096 * i);
    allocations_.add(words.back(), 1);
  }
  EXPECT_EQ(behind(words), Allocations::kMostPointers);
}

}  // namespace
}  // namespace gpuslice
