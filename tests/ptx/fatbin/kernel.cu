__global__ void k(int* a) {
  a[blockIdx.x] = threadIdx.x;
}
