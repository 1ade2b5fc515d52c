# compat: JAX: more memory than there is, at once and bit by bit; the program goes on
# modules: jax
# ignore: (?m)^.*(allocator|RESOURCE_EXHAUSTED).*$
import os

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.03"

import jax
import jax.numpy


def is_out_of_memory(error):
    return any(word in str(error) for word in ("RESOURCE_EXHAUSTED", "Out of memory", "out of memory"))


def main():
    try:
        jax.numpy.zeros((1 << 14, 1 << 26), dtype="int32").block_until_ready()
    except Exception as error:
        print("at once:", is_out_of_memory(error))
    held = []
    try:
        for turn in range(1000):
            held.append(jax.numpy.full((1 << 26,), turn, dtype="int32").block_until_ready())
    except Exception as error:
        print("bit by bit:", is_out_of_memory(error), "after some" if held else "after none")
    print("kept", [int(each[-1]) for each in held[:2]])
    held.clear()
    print("on", int(jax.numpy.arange(1 << 15).sum()))


if __name__ == "__main__":
    main()
