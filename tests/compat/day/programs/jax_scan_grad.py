# compat: JAX: a scan, gradients, a map over a batch, of whole numbers
# modules: jax numpy
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy
import numpy
from printed import check


@jax.jit
def scanned(start, steps):
    return jax.lax.scan(lambda held, step: ((held * 5 + step) & 0xFFFF, held[:8]), start, steps)


@jax.jit
@jax.grad
def slope(weights, inputs, wanted):
    return ((jax.numpy.matmul(inputs, weights, precision="highest") - wanted) ** 2).sum()


def main():
    rng = numpy.random.default_rng(1)
    start, steps = rng.integers(0, 1000, 1 << 16, dtype=numpy.int32), numpy.arange(200, dtype=numpy.int32)
    last, heads = scanned(start, steps)
    expected, seen = start, []
    for step in steps:
        seen.append(expected[:8])
        expected = (expected * 5 + step) & 0xFFFF
    check("scan", numpy.asarray(last), expected)
    check("heads", numpy.asarray(heads), numpy.array(seen))

    inputs, weights, wanted = (
        rng.integers(-4, 4, shape).astype(numpy.float32) for shape in ((128, 32), (32, 8), (128, 8))
    )
    for _ in range(20):
        found = slope(weights, inputs, wanted)
    check("gradient", numpy.asarray(found), 2 * inputs.T @ (inputs @ weights - wanted))

    mapped = jax.jit(jax.vmap(lambda row: (row * 3).sum()))
    check(
        "map", numpy.asarray(mapped(start.reshape(256, 256))), (start.reshape(256, 256) * 3).sum(1, dtype=numpy.int32)
    )


if __name__ == "__main__":
    main()
