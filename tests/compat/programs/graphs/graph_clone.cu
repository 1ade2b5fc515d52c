// compat: a cloned graph, changed and launched beside the one it was made from
// soft: yes
#include "mix.h"

int main() {
  const bool small = on_software();
  int count = small ? 1024 : 1 << 18, depth = small ? 3 : 300;
  const int launches = small ? 4 : 40;
  unsigned *one = nullptr, *other = nullptr;
  CHECK(cudaMalloc(&one, static_cast<std::size_t>(count) * sizeof(unsigned)));
  CHECK(cudaMalloc(&other, static_cast<std::size_t>(count) * sizeof(unsigned)));
  number_kernel<<<blocks_for(count), 256>>>(one, count);
  number_kernel<<<blocks_for(count), 256>>>(other, count);
  CHECK(cudaDeviceSynchronize());

  cudaGraph_t graph, clone;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t nodes[3];
  unsigned round = 0;
  void* arguments[] = {&one, &count, &round, &depth};
  cudaKernelNodeParams parameters = {};
  parameters.func = reinterpret_cast<void*>(mix_kernel);
  parameters.gridDim = dim3(static_cast<unsigned>(blocks_for(count)));
  parameters.blockDim = dim3(256);
  parameters.kernelParams = arguments;
  for (; round < 3; ++round)
    CHECK(
        cudaGraphAddKernelNode(&nodes[round], graph, round ? &nodes[round - 1] : nullptr, round ? 1 : 0, &parameters));

  CHECK(cudaGraphClone(&clone, graph));
  arguments[0] = &other;
  for (round = 0; round < 3; ++round) {
    cudaGraphNode_t in_clone;
    CHECK(cudaGraphNodeFindInClone(&in_clone, nodes[round], clone));
    unsigned changed = round + 10;
    arguments[2] = &changed;
    CHECK(cudaGraphKernelNodeSetParams(in_clone, &parameters));
  }
  cudaGraphExec_t exec, exec_clone;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphInstantiate(&exec_clone, clone, 0));
  CHECK(cudaGraphDestroy(clone));
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 0; i < launches; ++i) {
    CHECK(cudaGraphLaunch(exec, streams[0]));
    CHECK(cudaGraphLaunch(exec_clone, streams[1]));
  }
  CHECK(cudaDeviceSynchronize());
  for (const unsigned first : {0u, 10u}) {
    std::vector<unsigned> got(static_cast<std::size_t>(count));
    CHECK(cudaMemcpy(got.data(), first ? other : one, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned x = 17;
    for (int i = 0; i < launches; ++i)
      for (unsigned step = 0; step < 3; ++step) x = mix(x, first + step, depth);
    std::printf("%s %s\n", first ? "clone" : "graph", got[17] == x ? "right" : "WRONG");
    print_hash(first ? "clone" : "graph", got.data(), got.size() * sizeof(unsigned));
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphExecDestroy(exec_clone));
  return 0;
}
