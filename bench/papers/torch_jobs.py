"""A program whose jobs are PyTorch's: python3 torch_jobs.py JOB OPTION...

A job is an operation that is repeated, whose kernels come from PyTorch's libraries and keep their original form. The
program takes part in a measurement as gpuslice-bench does (`run --start-on-input --arrival periodic --samples FILE`):
it says `ready`, reads an instant of CLOCK_MONOTONIC in ns, does a job at each multiple of the period after it, and
writes when each was issued and was over. --calibrate-ms: it finds out how many repetitions take so long, and ends.
"""

import argparse
import json
import statistics
import sys
import time

WARM_UPS = 5
SPIN_NS = 200_000


def convolution(torch):
    image = torch.randn(16, 128, 56, 56, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    weights = torch.randn(128, 128, 3, 3, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
    return lambda: torch.nn.functional.conv2d(image, weights, padding=1)


def attention(torch):
    heads = [torch.randn(8, 16, 1024, 64, device="cuda", dtype=torch.half) for _ in range(3)]
    return lambda: torch.nn.functional.scaled_dot_product_attention(*heads)


def product(torch):
    left, right, out = (torch.randn(3072, 3072, device="cuda", dtype=torch.half) for _ in range(3))
    return lambda: torch.mm(left, right, out=out)


def gelu(torch):
    values = torch.randn(32 * 1024 * 1024, device="cuda", dtype=torch.half)
    return lambda: torch.nn.functional.gelu(values)


def softmax(torch):
    rows = torch.randn(8192, 4096, device="cuda", dtype=torch.half)
    return lambda: torch.softmax(rows, 1)


def sort(torch):
    values = torch.randn(1_000_000, device="cuda")
    return lambda: torch.sort(values)


JOBS = {one.__name__: one for one in (convolution, attention, product, gelu, softmax, sort)}


def wait_until(instant):
    while (left := instant - time.monotonic_ns()) > 0:
        time.sleep(max(0, (left - SPIN_NS) / 1e9))


def periodic(job, began, period_us, count):
    """Does a job at each multiple of the period, a late one at once. Returns when each was issued and was over."""
    times = []
    for number in range(count):
        wait_until(began + round(1000 * number * period_us))
        issued = time.monotonic_ns()
        job()
        times.append((issued, time.monotonic_ns()))
    return times


def repetitions(job_of, milliseconds):
    """How many repetitions take so long. job_of(N) makes a job of N."""
    repeats = 1
    while True:
        took = sorted(end - begin for begin, end in periodic(job_of(repeats), 0, 0, 9))
        ms = statistics.median(took) / 1e6
        if ms >= milliseconds / 2 or repeats >= 1_000_000:
            return max(1, round(repeats * milliseconds / ms))
        repeats *= 2


def write_samples(path, times):
    with open(path, "w", encoding="utf-8") as file:
        print("issue_ns complete_ns", file=file)
        for issued, complete in times:
            print(issued, complete, file=file)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--calibrate-ms", type=float)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--period-us", type=float)
    parser.add_argument("--count", type=int)
    parser.add_argument("--samples")
    return parser.parse_args()


def main():
    options = parse()
    import torch

    operation = JOBS[options.job](torch)

    def job_of(repeats):
        def job():
            for _ in range(repeats):
                operation()
            torch.cuda.synchronize()

        return job

    with torch.inference_mode():
        periodic(job_of(1), 0, 0, WARM_UPS)
        if options.calibrate_ms:
            print(json.dumps({"repeats": repetitions(job_of, options.calibrate_ms)}))
            return
        job = job_of(options.repeats)
        periodic(job, 0, 0, WARM_UPS)
        print("ready", file=sys.stderr, flush=True)
        times = periodic(job, int(sys.stdin.readline()), options.period_us, options.count)
    write_samples(options.samples, times)
    print(json.dumps({"mismatches": 0, "checked": 0, "launches": options.count}))


if __name__ == "__main__":
    main()
