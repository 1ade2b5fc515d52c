#include "kernels/searches/md5_hash.h"

#include <algorithm>
#include <bit>

#include "kernels/problem/random.h"
#include "kernels/searches/md5_sines.h"

namespace gpuctl::bench::md5_hash {
namespace {
constexpr std::uint32_t kThreads = 384;
constexpr std::uint32_t kKeysPerBlock = kThreads * 8;
constexpr std::uint32_t kLetters = 7;
constexpr std::uint32_t kAlphabet = 26;
constexpr std::uint32_t kAgreeing = 7;  ///< the bits that are compared to count near misses
constexpr std::size_t kFoundWords = 5;  ///< number and digest of the key that was found
}  // namespace

std::array<std::uint32_t, 4> md5_of_key(std::uint32_t number) {
  constexpr std::array<std::uint32_t, 4> kStart = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  constexpr int kRotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  std::uint32_t message[16] = {};
  for (std::uint32_t i = 0; i <= kLetters; ++i) {
    const std::uint32_t byte = i < kLetters ? 'a' + number % kAlphabet : 0x80;
    message[i / 4] |= byte << (i % 4 * 8);
    number /= kAlphabet;
  }
  message[14] = kLetters * 8;

  auto [a, b, c, d] = kStart;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t mixed = 0;
    std::uint32_t word = 0;
    switch (i / 16) {
      case 0:
        mixed = (b & c) | (~b & d), word = i;
        break;
      case 1:
        mixed = (d & b) | (~d & c), word = 5 * i + 1;
        break;
      case 2:
        mixed = b ^ c ^ d, word = 3 * i + 5;
        break;
      default:
        mixed = c ^ (b | ~d), word = 7 * i;
        break;
    }
    const std::uint32_t sum = a + mixed + message[word % 16] + kMd5Sines[i];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kRotations[i / 16][i % 4]);
  }
  return {kStart[0] + a, kStart[1] + b, kStart[2] + c, kStart[3] + d};
}

Problem generate(const Extent& extent, std::uint64_t seed) {
  const auto sought = md5_of_key(static_cast<std::uint32_t>(Random(seed).bits() % extent.x));
  const std::uint32_t blocks = divide_up(extent.x, kKeysPerBlock);
  return OneLaunch{
      .grid = {blocks},
      .block = {kThreads},
      .inputs = {Words(sought.begin(), sought.end())},
      .output_words = kFoundWords + blocks,
      .poison = kPoison,
      .arguments = {Argument::input(0), Argument::output(), Argument::number(extent.x)},
      .once = true,
  };
}

Words reference(const Extent& extent, const Problem& problem) {
  const Words& sought = problem.inputs[0];
  Words out(problem.output_words, problem.poison);
  for (std::uint32_t key = 0; key < extent.x; ++key) {
    const std::array<std::uint32_t, 4> digest = md5_of_key(key);
    if (((digest[0] ^ sought[0]) & kAgreeing) == 0) ++out[kFoundWords + key / kKeysPerBlock];
    if (std::ranges::equal(digest, sought)) {
      out[0] = key;
      std::ranges::copy(digest, out.begin() + 1);
    }
  }
  return out;
}

}  // namespace gpuctl::bench::md5_hash
