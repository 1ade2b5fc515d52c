# compat: four threads of one program that launch in a stream each, all at once
# modules: torch numpy
import threading

import numpy
import torch
from printed import check

ROUNDS = 200


def work(values, results, number):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        held = torch.from_numpy(values).cuda(non_blocking=True)
        for turn in range(ROUNDS):
            held.mul_(5).add_(turn + number).bitwise_and_(0xFFFF)
        results[number] = held.cpu().numpy()


def main():
    values = numpy.random.default_rng(1).integers(0, 1000, 1 << 18)
    results = {}
    threads = [threading.Thread(target=work, args=(values, results, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        expected = values
        for turn in range(ROUNDS):
            expected = (expected * 5 + turn + number) & 0xFFFF
        check(f"thread {number}", results[number], expected)


if __name__ == "__main__":
    main()
