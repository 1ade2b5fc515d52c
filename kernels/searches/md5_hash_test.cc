#include "kernels/searches/md5_hash.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpuctl::bench::md5_hash {
namespace {

using Digest = std::array<std::uint32_t, 4>;

// Digests of the words as any MD5 program prints them.
TEST(Md5Hash, DigestsAreThoseOfMd5) {
  EXPECT_EQ(md5_of_key(0), (Digest{0xc53f795d, 0x48230ab0, 0xb59afbc3, 0x8aa95c9e}));            // aaaaaaa
  EXPECT_EQ(md5_of_key(1), (Digest{0x53b1fdf9, 0x8d40884d, 0xcddb7472, 0xc60d8822}));            // baaaaaa
  EXPECT_EQ(md5_of_key(26), (Digest{0x655de00d, 0x2a0e2708, 0x87349a5b, 0xb41856b5}));           // abaaaaa
  EXPECT_EQ(md5_of_key(123'456'789), (Digest{0x51d6bfb5, 0x927c7275, 0xafc39aa9, 0x3703c129}));  // bkeekka
}

TEST(Md5Hash, TheKeyIsFound) {
  const Problem problem = generate({10'000}, 3);
  const Words out = reference({10'000}, problem);
  ASSERT_LT(out[0], 10'000u);
  const Digest digest = md5_of_key(out[0]);
  EXPECT_TRUE(std::ranges::equal(digest, problem.inputs[0]));
  EXPECT_TRUE(std::equal(digest.begin(), digest.end(), out.begin() + 1));
}

}  // namespace
}  // namespace gpuctl::bench::md5_hash
