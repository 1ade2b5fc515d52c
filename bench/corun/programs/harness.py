"""Shared by the Python programs of the matrix: options, stream, rounds, and the figures of a round.

A program calls `Program` (PyTorch) or `JaxProgram`, makes its model, warms up, and calls serve_requests() or
run_steps(). These use the protocol of kernels.cu: the program prints READY; for each round it reads
`GO start_ns settle_s seconds seed` and prints a line of JSON. --tiny: small sizes, on the CPU if there is no GPU, to
try it.
"""

import argparse
import collections
import contextlib
import gc
import json
import math
import random
import sys
import time

SPIN_S = 0.0002
STREAM_PRIORITIES = {"high": -5, "middle": -2, "low": 0}  # -5 is the greatest; PyTorch takes what the GPU has


def need(*modules):
    """Imports these modules; ends the program with one line if one is missing."""
    found = []
    for name in modules:
        try:
            found.append(__import__(name))
        except ImportError as error:
            sys.exit(f"{sys.argv[0]}: Python has no {name} here: {error}")
    return found[0] if len(found) == 1 else found


class Player:
    """Options and rounds, whatever the framework. A subclass has synchronize(), mark() and wait()."""

    def __init__(self, period_s, depth):
        parser = argparse.ArgumentParser()
        parser.add_argument("--priority", choices=("none", *STREAM_PRIORITIES), default="none", help="of the stream")
        parser.add_argument("--tiny", action="store_true", help="small sizes, on the CPU where there is no GPU")
        if period_s:
            parser.add_argument("--period-s", type=float, default=period_s, help="mean time between requests")
        else:
            parser.add_argument("--depth", type=int, default=depth, help="steps issued ahead")
        self.options = parser.parse_args()

    def size(self, real, tiny):
        return tiny if self.options.tiny else real

    def serve_requests(self, request):
        """Calls request(), which returns when its answer is there."""
        for start, counts_from, end, seed in self.rounds():
            print(json.dumps(self.requests(request, start, counts_from, end, random.Random(seed))), flush=True)

    def requests(self, request, start, counts_from, end, rng):
        latencies, services, unserved, due = [], [], 0, start
        while (due := due + rng.expovariate(1 / self.options.period_s)) < end:
            wait_until(due)
            begin = time.monotonic()
            if begin >= end:
                if due >= counts_from:
                    unserved += 1
                    latencies.append(end - due)
                continue
            request()
            done = time.monotonic()
            if due >= counts_from:
                latencies.append(done - due)
                services.append(done - begin)
        return {
            "count": len(latencies),
            "unserved": unserved,
            **{f"p{part}_us": percentile(latencies, part) for part in (50, 90, 99)},
            "max_us": percentile(latencies, 100),
            "service_p50_us": percentile(services, 50),
            "service_p99_us": percentile(services, 99),
        }

    def run_steps(self, step):
        """Calls step(), which issues one step; some steps are issued ahead. mark() takes what it returns."""
        for start, counts_from, end, _ in self.rounds():
            wait_until(start)
            ends = []
            in_flight = collections.deque()
            while not ends or ends[-1] < end:
                while len(in_flight) < self.options.depth:
                    in_flight.append(self.mark(step()))
                self.wait(in_flight.popleft())
                ends.append(time.monotonic())
            self.synchronize()
            counted = [at for at in ends if at >= counts_from]
            rate = (len(counted) - 1) / (counted[-1] - counted[0]) if len(counted) > 1 else 1 / (ends[-1] - start)
            print(json.dumps({"count": len(counted), "rate": rate}), flush=True)

    def rounds(self):
        self.synchronize()
        # Python would look through all that is there now again and again, in the middle of requests.
        gc.collect()
        gc.freeze()
        print("READY", flush=True)
        for line in sys.stdin:
            word, start_ns, settle_s, seconds, seed = line.split()
            if word != "GO":
                sys.exit(f"{sys.argv[0]}: not a round: {line}")
            start = int(start_ns) / 1e9
            yield start, start + float(settle_s), start + float(settle_s) + float(seconds), int(seed)


class Program(Player):
    def __init__(self, period_s=None, depth=2):
        super().__init__(period_s, depth)
        self.torch = need("torch")
        self.gpu = self.torch.cuda.is_available()
        if not self.gpu and not self.options.tiny:
            sys.exit(f"{sys.argv[0]}: PyTorch finds no GPU")
        self.device = "cuda" if self.gpu else "cpu"
        self.torch.manual_seed(1)

    def stream(self):
        """The stream in which everything of the program runs, if a priority was requested."""
        if not self.gpu or self.options.priority == "none":
            return contextlib.nullcontext()
        stream = self.torch.cuda.Stream(priority=STREAM_PRIORITIES[self.options.priority])
        stream.wait_stream(self.torch.cuda.current_stream())
        return self.torch.cuda.stream(stream)

    def train(self, step, warm_ups):
        """run_steps(), in the stream that was requested and after some steps that warm up."""
        with self.stream():
            for _ in range(self.size(warm_ups, 1)):
                step()
            self.run_steps(step)

    def synchronize(self):
        if self.gpu:
            self.torch.cuda.current_stream().synchronize()

    def mark(self, _):
        if not self.gpu:
            return None
        event = self.torch.cuda.Event()
        event.record()
        return event

    @staticmethod
    def wait(event):
        if event is not None:
            event.synchronize()


def captured(program, compute):
    """A function that does what compute() does, as a CUDA graph where there is a GPU."""
    if not program.gpu:
        return compute
    torch = program.torch
    current = torch.cuda.current_stream()
    # The launches of a graph have the priority of the stream that they were captured in.
    side = torch.cuda.Stream(priority=current.priority) if current == torch.cuda.default_stream() else current
    side.wait_stream(current)
    with torch.cuda.stream(side):
        for _ in range(3):
            compute()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=side):
        answer = compute()

    def replay():
        graph.replay()
        return answer

    return replay


class JaxProgram(Player):
    """The program has no streams of its own: JAX takes no priority."""

    def __init__(self, period_s=None, depth=2):
        super().__init__(period_s, depth)
        self.jax = need("jax")
        if self.jax.default_backend() != "gpu" and not self.options.tiny:
            sys.exit(f"{sys.argv[0]}: JAX finds no GPU")

    def synchronize(self):
        self.jax.effects_barrier()

    @staticmethod
    def mark(result):
        return result

    def wait(self, result):
        self.jax.block_until_ready(result)


def wait_until(at):
    """Wakes up early, then spins until the time."""
    time.sleep(max(0, at - SPIN_S - time.monotonic()))
    while time.monotonic() < at:
        pass


def percentile(values, part):
    """The smallest value, in us, that at least this part of all values does not exceed."""
    if not values:
        return 0.0
    return round(1e6 * sorted(values)[max(1, math.ceil(part / 100 * len(values))) - 1], 1)
