# compat: PyTorch: streams of two priorities that wait for each other's events; times between events
# modules: torch numpy
import numpy
import torch
from printed import check

ROUNDS = 40


def main():
    values = numpy.random.default_rng(1).integers(0, 1000, 1 << 18)
    held = torch.from_numpy(values).cuda()
    streams = [torch.cuda.Stream(priority=priority) for priority in (0, -1, 0)]
    began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    began.record(streams[0])
    done = began
    for turn in range(ROUNDS):
        stream = streams[turn % len(streams)]
        stream.wait_event(done)
        with torch.cuda.stream(stream):
            held.mul_(5).add_(turn).bitwise_and_(0xFFFF)
        done = stream.record_event()
    streams[0].wait_event(done)
    ended.record(streams[0])
    ended.synchronize()
    for turn in range(ROUNDS):
        values = (values * 5 + turn) & 0xFFFF
    check("chain", held.cpu().numpy(), values)
    print("took time", began.elapsed_time(ended) > 0, "done", all(stream.query() for stream in streams))


if __name__ == "__main__":
    main()
