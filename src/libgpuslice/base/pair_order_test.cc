#include "libgpuslice/base/pair_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace gpuslice {
namespace {

/// A resource with these of the SMs 0 to 63, as the driver might keep it: behind an address and a number of its own.
CUdevResource resource(std::initializer_list<unsigned> sms, std::uint64_t number = 0) {
  CUdevResource made{};
  made.type = CU_DEV_RESOURCE_TYPE_SM;
  made.sm.smCount = static_cast<unsigned>(sms.size());
  std::uint64_t fields[] = {0x7f5500aa1230, number, 0};
  for (const unsigned sm : sms) fields[2] |= std::uint64_t{1} << sm;
  std::memcpy(made._internal_padding, fields, sizeof fields);
  return made;
}

std::uint64_t sms_of(const CUdevResource& resource) {
  std::uint64_t fields[3];
  std::memcpy(fields, resource._internal_padding, sizeof fields);
  return fields[2];
}

const std::vector<CUdevResource> kPairs{resource({0, 1}), resource({2, 3}), resource({4, 5}), resource({6, 7}),
                                        resource({8, 9})};

TEST(PairOrder, IsThatOfTheGroupsInWhichThePairsLie) {
  const std::vector<CUdevResource> groups{resource({0, 1, 4, 5}), resource({2, 3, 6, 7, 8, 9})};
  std::vector<std::uint64_t> found;
  for (const CUdevResource& pair : in_order_of_groups(kPairs, groups)) found.push_back(sms_of(pair));
  EXPECT_EQ(found, (std::vector<std::uint64_t>{0x003, 0x030, 0x00c, 0x0c0, 0x300}));
}

TEST(PairOrder, CannotBeToldWhereTheyDoNotFitTogether) {
  const CUdevResource one = resource({0, 1, 4, 5}), other = resource({2, 3, 6, 7, 8, 9});
  const auto empty = [](const std::vector<CUdevResource>& pairs, const std::vector<CUdevResource>& groups) {
    return in_order_of_groups(pairs, groups).empty();
  };
  EXPECT_TRUE(empty({}, {}));
  EXPECT_TRUE(empty(kPairs, {})) << "no group";
  EXPECT_TRUE(empty(kPairs, {one})) << "pairs in no group";
  EXPECT_TRUE(empty(kPairs, {one, other, one})) << "a pair in two groups";
  EXPECT_TRUE(empty(kPairs, {one, resource({2, 3, 6, 7, 8, 9, 10, 11})})) << "a group with SMs of no pair";
  EXPECT_TRUE(empty({resource({0, 1}), resource({0, 1})}, {resource({0, 1, 2, 3})})) << "pairs that do not differ";
}

/// Numbers that are counted up have bits that one resource alone has. The group does not have them.
TEST(PairOrder, CannotBeToldIfTheyDifferInSomethingElse) {
  EXPECT_TRUE(
      in_order_of_groups(std::vector{resource({0, 1}, 1), resource({2, 3}, 2)}, std::vector{resource({0, 1, 2, 3}, 8)})
          .empty());
}

}  // namespace
}  // namespace gpuslice
