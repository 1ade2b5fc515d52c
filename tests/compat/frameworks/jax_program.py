# compat: JAX: compiled functions of whole numbers, a loop on the device, sort, scan, an exact product
# modules: jax numpy
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = "--xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"

import jax
import jax.numpy
import numpy
from printed import check

ROUNDS = 60


@jax.jit
def mixed(left, right):
    return (left * 3 + right) & 0xFFFF


@jax.jit
def looped(values):
    return jax.lax.fori_loop(0, ROUNDS, lambda _, held: (held * 5 + 7) & 0xFFFF, values)


@jax.jit
def ordered(values):
    return jax.numpy.sort(values), jax.numpy.cumsum(values)


def main():
    if jax.default_backend() not in ("gpu", "cuda"):
        raise SystemExit("JAX does not use the GPU")
    rng = numpy.random.default_rng(1)
    left, right = (rng.integers(0, 1000, 1 << 18, dtype=numpy.int32) for _ in range(2))
    held = left
    for _ in range(ROUNDS):
        held = mixed(held, right)
    expected = left
    for _ in range(ROUNDS):
        expected = (expected * 3 + right) & 0xFFFF
    check("mixed", numpy.asarray(held), expected)

    expected = left
    for _ in range(ROUNDS):
        expected = (expected * 5 + 7) & 0xFFFF
    check("loop", numpy.asarray(looped(left)), expected)

    for _ in range(ROUNDS // 6):
        in_order, running = ordered(left)
    check("sort", numpy.asarray(in_order), numpy.sort(left))
    check("running sum", numpy.asarray(running), numpy.cumsum(left, dtype=numpy.int32))

    small = (left[: 256 * 256].reshape(256, 256) % 16).astype(numpy.float32)
    product = jax.jit(lambda a, b: jax.numpy.matmul(a, b, precision="highest"))
    for _ in range(ROUNDS):
        result = product(small, small)
    check("product", numpy.asarray(result), small @ small)


if __name__ == "__main__":
    main()
