// Follows an object through the frames of a video with a cloud of guesses, its particles. Each frame takes three
// launches: every particle moves by chance and is weighed by how well it fits the frame; one block sums the weights up;
// and every particle is drawn anew, heavy ones more often, by walking along the sums until its share is reached, each
// thread as far as it must.
#include "kernels/arrays/block_scan.cuh"
#include "kernels/searches/particle_likelihood.h"

namespace {
using namespace gpuctl::bench;

constexpr unsigned kSumThreads = 256;

/// The disk of the object, as offsets from its middle.
__constant__ const signed char kDisk[][2] = {{-2, 0}, {-1, -1}, {-1, 0}, {-1, 1}, {0, -2}, {0, -1}, {0, 0},
                                             {0, 1},  {0, 2},   {1, -1}, {1, 0},  {1, 1},  {2, 0}};
constexpr int kDiskPixels = sizeof kDisk / sizeof kDisk[0];
}  // namespace

extern "C" __global__ void particleMove(const unsigned* video, const unsigned* seeds, const float2* from, float2* to,
                                        unsigned* weights, unsigned particles, unsigned frame) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= particles) return;
  const float2 before = from[i];
  const Particle particle = moved({before.x, before.y}, seeds[i], frame);
  const unsigned* picture = video + frame * kFrameSide * kFrameSide;
  int sum = 0;
  for (const auto& offset : kDisk) {
    const int x = pixel_of(add(particle.x, static_cast<float>(offset[0])));
    const int y = pixel_of(add(particle.y, static_cast<float>(offset[1])));
    sum += bright_rather_than_dark(static_cast<int>(picture[y * kFrameSide + x]));
  }
  to[i] = make_float2(particle.x, particle.y);
  weights[i] = weight_of(sum, kDiskPixels);
}

extern "C" __global__ void particleSum(unsigned* weights, unsigned particles) {
  sums_by_one_block<kSumThreads, Sum::kUpTo>(weights, particles);
}

extern "C" __global__ void particleDraw(const unsigned* sums, const float2* from, float2* to, unsigned particles) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= particles) return;
  const unsigned long long total = sums[particles - 1];
  const auto share = static_cast<unsigned>((2ull * i + 1) * total / (2ull * particles));
  unsigned drawn = 0;
  while (sums[drawn] <= share) ++drawn;
  to[i] = from[drawn];
}
