"""What `gpuslice-bench --samples FILE` wrote: one launch a line."""


def read_samples(path):
    """One dict per launch, by the names in the first line. All are int, except gpu_us."""
    names, *lines = path.read_text(encoding="utf-8").splitlines()
    return [
        {name: (float if name == "gpu_us" else int)(word) for name, word in zip(names.split(), line.split())}
        for line in lines
    ]
