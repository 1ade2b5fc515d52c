# compat: JAX's profiler: a trace is written, with events of the GPU that have a time
# modules: jax
import os
import pathlib
import sys

os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import jax
import jax.numpy


@jax.jit
def mixed(values):
    return (values * 5 + 7) & 0xFFFF


def main():
    values = mixed(jax.numpy.arange(1 << 20)).block_until_ready()
    with jax.profiler.trace("trace"):
        for _ in range(30):
            values = mixed(values)
        values.block_until_ready()
    written = sorted(pathlib.Path("trace").rglob("*.xplane.pb"))
    print("traces", len(written))
    trace = jax.profiler.ProfileData.from_file(str(written[0]))
    planes = [plane for plane in trace.planes if "GPU" in plane.name]
    timed = sum(event.duration_ns > 0 for plane in planes for line in plane.lines for event in line.events)
    print("planes", len(planes), "at least one event a round", timed >= 30)
    print("sum", int(values.sum()))
    if timed < 30:
        print("the profiler saw no kernels", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
