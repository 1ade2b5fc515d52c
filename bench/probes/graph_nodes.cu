// Can a graph be confined to a part of a GPU (a green context)? Prints on how many SMs a kernel of 264 blocks runs.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <cstring>
template <class F>
F fn(const char* n) {
  void* p = nullptr;
  cudaDriverEntryPointQueryResult q;
  cudaGetDriverEntryPoint(n, &p, cudaEnableDefault, &q);
  return (F)p;
}
#define F(name) auto d_##name = fn<decltype(&name)>(#name)
__global__ void ids(unsigned* seen) {
  unsigned s;
  asm volatile("mov.u32 %0, %smid;" : "=r"(s));
  if (threadIdx.x == 0) atomicAdd(&seen[s], 1);
  long long t, t0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t0));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  while (t - t0 < 100000);
}
static unsigned* seen;
static int count() {
  int n = 0;
  for (int i = 0; i < 1024; ++i) n += seen[i] != 0;
  memset(seen, 0, 4096);
  return n;
}
int main() {
  cudaSetDevice(0);
  cudaHostAlloc(&seen, 4096, 0);
  memset(seen, 0, 4096);
  F(cuDeviceGetDevResource);
  F(cuDevSmResourceSplitByCount);
  F(cuDevResourceGenerateDesc);
  F(cuGreenCtxCreate);
  F(cuGreenCtxStreamCreate);
  F(cuCtxFromGreenCtx);
  F(cuStreamBeginCapture);
  F(cuStreamEndCapture);
  F(cuGraphInstantiateWithFlags);
  F(cuGraphLaunch);
  F(cuStreamSynchronize);
  F(cuGraphGetNodes);
  F(cuGraphKernelNodeGetParams);
  F(cuGraphKernelNodeSetParams);
  F(cuGraphExecKernelNodeSetParams);
  F(cuGraphClone);
  F(cuStreamCreate);
  F(cuGraphAddKernelNode);
  F(cuGraphCreate);
  CUdevResource all, part, rest;
  unsigned n = 1;
  d_cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);
  d_cuDevSmResourceSplitByCount(&part, &n, &all, &rest, 0, 8);
  CUdevResourceDesc d;
  d_cuDevResourceGenerateDesc(&d, &part, 1);
  CUgreenCtx g;
  d_cuGreenCtxCreate(&g, d, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  CUstream gs, ps;
  d_cuGreenCtxStreamCreate(&gs, g, CU_STREAM_NON_BLOCKING, 0);
  d_cuStreamCreate(&ps, CU_STREAM_NON_BLOCKING);
  CUcontext gc;
  printf("cuCtxFromGreenCtx: %d\n", d_cuCtxFromGreenCtx(&gc, g));
  ids<<<264, 1024, 0, ps>>>(seen);
  cudaDeviceSynchronize();
  printf("plain: %d\n", count());
  ids<<<264, 1024, 0, gs>>>(seen);
  printf("in the part: %d", cudaDeviceSynchronize());
  printf(" %d SMs\n", count());
  CUgraph of[2];
  CUstream by[2] = {ps, gs};
  for (int i = 0; i < 2; ++i) {
    int r = d_cuStreamBeginCapture(by[i], CU_STREAM_CAPTURE_MODE_GLOBAL);
    ids<<<264, 1024, 0, by[i]>>>(seen);
    int e = d_cuStreamEndCapture(by[i], &of[i]);
    printf("capture in %s: %d %d\n", i ? "the part" : "a stream", r, e);
    CUgraphExec x;
    r = d_cuGraphInstantiateWithFlags(&x, of[i], 0);
    for (int j = 0; j < 2; ++j) {
      int l = d_cuGraphLaunch(x, by[j]);
      int s = d_cuStreamSynchronize(by[j]);
      printf("  launched in %s: %d %d %d, %d SMs\n", j ? "the part" : "a stream", r, l, s, count());
    }
  }
  CUgraphNode node;
  size_t c = 1;
  d_cuGraphGetNodes(of[0], &node, &c);
  CUDA_KERNEL_NODE_PARAMS p;
  int r = d_cuGraphKernelNodeGetParams(node, &p);
  printf("params: %d, ctx %p, func %p, kern %p\n", r, p.ctx, p.func, p.kern);
  CUgraphExec x;
  d_cuGraphInstantiateWithFlags(&x, of[0], 0);
  CUDA_KERNEL_NODE_PARAMS q = p;
  q.ctx = gc;
  printf("exec node to the part: %d", d_cuGraphExecKernelNodeSetParams(x, node, &q));
  {
    int l = d_cuGraphLaunch(x, ps);
    int s = d_cuStreamSynchronize(ps);
    printf(" launched %d %d, %d SMs\n", l, s, count());
  }
  CUgraph clone;
  d_cuGraphClone(&clone, of[0]);
  c = 1;
  d_cuGraphGetNodes(clone, &node, &c);
  printf("node of a clone to the part: %d", d_cuGraphKernelNodeSetParams(node, &q));
  r = d_cuGraphInstantiateWithFlags(&x, clone, 0);
  {
    int l = d_cuGraphLaunch(x, ps);
    int s = d_cuStreamSynchronize(ps);
    printf(" instantiated %d launched %d %d, %d SMs\n", r, l, s, count());
  }
  d_cuGraphClone(&clone, of[1]);
  c = 1;
  d_cuGraphGetNodes(clone, &node, &c);
  r = d_cuGraphKernelNodeGetParams(node, &p);
  printf("captured in the part: %d, ctx %p (part %p), func %p, kern %p\n", r, p.ctx, gc, p.func, p.kern);
  CUgraph made;
  d_cuGraphCreate(&made, 0);
  q = p;
  q.ctx = gc;
  r = d_cuGraphAddKernelNode(&node, made, nullptr, 0, &q);
  printf("a node made for the part: %d", r);
  r = d_cuGraphInstantiateWithFlags(&x, made, 0);
  {
    int l = d_cuGraphLaunch(x, ps);
    int s = d_cuStreamSynchronize(ps);
    printf(" instantiated %d launched %d %d, %d SMs\n", r, l, s, count());
  }
}
