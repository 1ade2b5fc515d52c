#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <mma.h>
namespace cg = cooperative_groups;
__global__ void tx(cudaTextureObject_t t, cudaSurfaceObject_t s, float* o) {
  o[threadIdx.x] = tex2D<float>(t, threadIdx.x, blockIdx.x) + tex3D<float4>(t, 1.f, 2.f, 3.f).y;
  surf2Dwrite(o[1], s, threadIdx.x * 4, blockIdx.y);
}
__global__ void mma(half* a, half* b, float* c) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, half, row_major> A;
  fragment<matrix_b, 16, 16, 16, half, col_major> B;
  fragment<accumulator, 16, 16, 16, float> C;
  fill_fragment(C, 0.f);
  load_matrix_sync(A, a, 16);
  load_matrix_sync(B, b, 16);
  mma_sync(C, A, B, C);
  store_matrix_sync(c, C, 16, mem_row_major);
}
__global__ void gs(int* a) {
  a[0] = 1;
  cg::this_grid().sync();
  a[1] = 2;
}
__global__ void tiles(int* a) {
  auto b = cg::this_thread_block();
  auto t = cg::tiled_partition<32>(b);
  a[t.thread_rank()] = t.ballot(a[0]);
  b.sync();
}
__global__ void hf(half2* a) {
  a[0] = __hfma2(a[1], a[2], a[3]);
}
__global__ void nb(int* a) {
  asm volatile("bar.sync 1, 64;");
  asm volatile("barrier.sync 2, 64;");
  a[0] = __syncthreads_count(a[1]);
  a[2] = __syncthreads_or(a[3]);
}
#if __CUDA_ARCH__ >= 900
__global__ void __cluster_dims__(2, 1, 1) cl(int* a) {
  a[0] = 1;
  cg::this_cluster().sync();
}
#endif
