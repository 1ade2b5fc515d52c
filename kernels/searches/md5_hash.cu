// Searches all keys for the one with a given MD5 digest (RFC 1321). Key number n is seven letters, the digits of n to
// base 26, least first. A thread hashes eight keys in a row. out[0] = the number of the key, out[1] to out[4] its
// digest, written by the thread that finds it. To out[5 + block] each thread adds how many of its digests agree with
// the one sought in their lowest three bits, so that the result tells of every block.
#include "kernels/searches/md5_sines.h"

using namespace gpuctl::bench;

namespace {

constexpr unsigned kKeysPerThread = 8;
constexpr unsigned kLetters = 7;
constexpr unsigned kAlphabet = 26;
constexpr unsigned kAgreeing = 7;

struct Digest {
  unsigned a, b, c, d;
};

__device__ __forceinline__ unsigned rotate(unsigned word, unsigned by) {
  return __funnelshift_l(word, word, by);
}

__device__ __forceinline__ unsigned choose(unsigned mask, unsigned one, unsigned zero) {
  return (mask & one) | (~mask & zero);
}

/// One step: `mixed` is the round's function of b, c and d.
__device__ __forceinline__ void step(Digest& s, unsigned mixed, unsigned word, unsigned number, unsigned by) {
  const unsigned b = s.b + rotate(s.a + mixed + word + kMd5Sines[number], by);
  s = {s.d, b, s.b, s.c};
}

__device__ __forceinline__ Digest md5(const unsigned (&words)[16]) {
  constexpr Digest kStart = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  constexpr unsigned kRotations[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  Digest s = kStart;
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) step(s, choose(s.b, s.c, s.d), words[i], i, kRotations[0][i % 4]);
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) {
    step(s, choose(s.d, s.b, s.c), words[(5 * i + 1) % 16], 16 + i, kRotations[1][i % 4]);
  }
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) {
    step(s, s.b ^ s.c ^ s.d, words[(3 * i + 5) % 16], 32 + i, kRotations[2][i % 4]);
  }
#pragma unroll
  for (unsigned i = 0; i < 16; ++i) step(s, s.c ^ (s.b | ~s.d), words[7 * i % 16], 48 + i, kRotations[3][i % 4]);
  return {s.a + kStart.a, s.b + kStart.b, s.c + kStart.c, s.d + kStart.d};
}

/// The one block of 64 bytes that MD5 makes of the key: its letters, a bit 1, zeros, its length in bits.
__device__ __forceinline__ Digest md5_of_key(unsigned number) {
  unsigned words[16] = {};
#pragma unroll
  for (unsigned i = 0; i < kLetters; ++i) {
    words[i / 4] |= ('a' + number % kAlphabet) << (i % 4 * 8);
    number /= kAlphabet;
  }
  words[kLetters / 4] |= 0x80u << (kLetters % 4 * 8);
  words[14] = kLetters * 8;
  return md5(words);
}

}  // namespace

extern "C" __global__ void md5Hash(const uint4* sought_digest, unsigned* out, unsigned keys) {
  const uint4 sought = *sought_digest;
  const unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * kKeysPerThread;
  unsigned agreeing = 0;
#pragma unroll 1
  for (unsigned key = first; key < first + kKeysPerThread && key < keys; ++key) {
    const Digest digest = md5_of_key(key);
    if (((digest.a ^ sought.x) & kAgreeing) == 0) ++agreeing;
    if (digest.a == sought.x && digest.b == sought.y && digest.c == sought.z && digest.d == sought.w) {
      out[0] = key;
      out[1] = digest.a;
      out[2] = digest.b;
      out[3] = digest.c;
      out[4] = digest.d;
    }
  }
  if (agreeing != 0) atomicAdd(&out[5 + blockIdx.x], agreeing);
}
