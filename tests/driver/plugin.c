/* A library that launches by itself, as plugins of a program do. */
#include <cuda.h>

int plugin_launch(CUfunction kernel, unsigned blocks, unsigned threads, CUstream stream, void** parameters) {
  return (int)cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, NULL);
}
