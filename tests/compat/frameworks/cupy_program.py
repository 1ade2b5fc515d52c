# compat: CuPy: a RawKernel, an ElementwiseKernel, a ReductionKernel, sort, scan, an exact product
# modules: cupy numpy
import cupy
import numpy
from printed import check

ROUNDS = 60
SOURCE = r"""
extern "C" __global__ void transposed(const int* in, int* out, int side) {
  __shared__ int tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = in[y * side + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
  out[y * side + x] += tile[threadIdx.x][threadIdx.y];
}
"""


def main():
    rng = numpy.random.default_rng(1)
    side = 1024
    square = rng.integers(0, 1000, (side, side), dtype=numpy.int32)
    on_gpu, sums = cupy.asarray(square), cupy.zeros((side, side), dtype=cupy.int32)
    transposed = cupy.RawKernel(SOURCE, "transposed")
    for _ in range(ROUNDS):
        transposed((side // 32, side // 32), (32, 32), (on_gpu, sums, numpy.int32(side)))
    check("raw", cupy.asnumpy(sums), square.T * ROUNDS)

    mixed = cupy.ElementwiseKernel("int32 a, int32 b", "int32 c", "c = a * 3 + (b & 255)", "mixed")
    total = cupy.ReductionKernel("int64 x", "int64 y", "x * x", "a + b", "y = a", "0", "squares")
    for _ in range(ROUNDS):
        each, squares = mixed(on_gpu, sums), total(on_gpu.astype(cupy.int64), axis=1)
    check("elementwise", cupy.asnumpy(each), square * 3 + (square.T * ROUNDS & 255))
    check("reduction", cupy.asnumpy(squares), (square.astype(numpy.int64) ** 2).sum(1))

    flat = square.ravel()
    for _ in range(ROUNDS // 6):
        ordered, running = cupy.sort(on_gpu.ravel()), cupy.cumsum(on_gpu.ravel(), dtype=cupy.int64)
    check("sort", cupy.asnumpy(ordered), numpy.sort(flat))
    check("running sum", cupy.asnumpy(running), numpy.cumsum(flat, dtype=numpy.int64))

    small = (square[:256, :256] % 16).astype(numpy.float32)
    for _ in range(ROUNDS):
        product = cupy.asarray(small) @ cupy.asarray(small)
    check("product", cupy.asnumpy(product), small @ small)


if __name__ == "__main__":
    main()
