// compat: memory of the device's heap: malloc and free in kernels, and null when it is exhausted, which is no error
#include "mix.h"

namespace {

/// Blocks of 1 MiB until there are none, then all of them back; words: whether null came, whether too many came.
__global__ void exhaust(unsigned* words) {
  void* taken[256];
  int count = 0;
  while (count < 256 && (taken[count] = malloc(1 << 20)) != nullptr) ++count;
  words[0] = count < 256;
  words[1] = count > 0;
  for (int i = 0; i < count; ++i) free(taken[i]);
}

/// Each thread keeps a list of its own, made of small pieces.
__global__ void lists(unsigned* out, int length) {
  struct Piece {
    Piece* next;
    unsigned value;
  };
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  Piece* head = nullptr;
  for (int at = 0; at < length; ++at) {
    Piece* piece = static_cast<Piece*>(malloc(sizeof(Piece)));
    if (piece == nullptr) break;
    piece->next = head;
    piece->value = mix(i, static_cast<unsigned>(at), 20);
    head = piece;
  }
  unsigned sum = 0;
  while (head != nullptr) {
    Piece* next = head->next;
    sum = sum * 31 + head->value;
    free(head);
    head = next;
  }
  out[i] = sum;
}

}  // namespace

int main() {
  constexpr int kCount = 1 << 13, kLength = 8;
  CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
  unsigned *words = nullptr, *out = nullptr;
  CHECK(cudaMalloc(&words, 2 * sizeof(unsigned)));
  CHECK(cudaMalloc(&out, kCount * sizeof(unsigned)));
  for (int turn = 0; turn < 5; ++turn) {
    exhaust<<<1, 1>>>(words);
    CHECK(cudaGetLastError());
    lists<<<blocks_for(kCount), 256>>>(out, kLength);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
  }
  unsigned said[2];
  CHECK(cudaMemcpy(said, words, sizeof said, cudaMemcpyDeviceToHost));
  std::printf("null came %u, memory came %u\n", said[0], said[1]);
  std::vector<unsigned> got(kCount);
  CHECK(cudaMemcpy(got.data(), out, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (unsigned i = 0; i < kCount; ++i) {
    unsigned sum = 0;
    for (int at = kLength - 1; at >= 0; --at) sum = sum * 31 + mix(i, static_cast<unsigned>(at), 20);
    wrong += got[i] != sum;
  }
  std::printf("lists %s\n", wrong == 0 ? "right" : "WRONG");
  print_hash("lists", got.data(), kCount * sizeof(unsigned));
  return 0;
}
