"""CuPy: element-wise operations on small arrays, some dozens of launches a step."""

from turns import main, need

cupy = need("cupy")
left, right = cupy.random.rand(4096, dtype=cupy.float32), cupy.random.rand(4096, dtype=cupy.float32)


def step():
    x = left
    for _ in range(20):
        x = cupy.sqrt(x * right + left)
        x -= x.mean()
        x = cupy.abs(x)


main(step, cupy.cuda.Device().synchronize)
