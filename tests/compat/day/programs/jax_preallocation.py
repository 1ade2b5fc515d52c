# compat: JAX with its memory taken at the start, a tenth of the GPU's, and without
# modules: jax
# args: true
# args: false
import os
import sys

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = sys.argv[1]
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.1"

import jax
import jax.numpy


def main():
    held = [jax.numpy.full((1 << 20,), turn, dtype="int32") for turn in range(100)]
    print("sum", int(sum(held)[0]))
    stats = jax.devices()[0].memory_stats()
    print("in use", stats["bytes_in_use"] >= 400 << 20, "limit", stats["bytes_limit"] > 1 << 30)


if __name__ == "__main__":
    main()
