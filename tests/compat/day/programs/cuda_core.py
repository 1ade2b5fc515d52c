# compat: cuda.core: a program compiled at run time, streams, events, device and pinned memory
# modules: cuda.core numpy
import numpy
from printed import check

try:
    from cuda.core import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch
except ImportError:
    from cuda.core.experimental import Device, LaunchConfig, LegacyPinnedMemoryResource, Program, ProgramOptions, launch

COUNT, ROUNDS = 1 << 18, 50
SOURCE = """
extern "C" __global__ void number(int* data, unsigned long long count) {
  unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = int(i);
}
extern "C" __global__ void mixed(int* data, int* seen, unsigned long long count) {
  unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) seen[i] = data[i] = (data[i] * 5 + 7) & 0xFFFF;
}
"""


def main():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    program = Program(SOURCE, code_type="c++", options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
    module = program.compile("cubin")
    number, mixed = module.get_kernel("number"), module.get_kernel("mixed")
    data = device.memory_resource.allocate(4 * COUNT, stream=stream)
    pinned = LegacyPinnedMemoryResource().allocate(4 * COUNT, stream=stream)
    config = LaunchConfig(grid=COUNT // 256, block=256)
    launch(stream, config, number, data, numpy.uint64(COUNT))
    for _ in range(ROUNDS):
        launch(stream, config, mixed, data, pinned, numpy.uint64(COUNT))
    stream.sync()
    expected = numpy.arange(COUNT, dtype=numpy.int32)
    for _ in range(ROUNDS):
        expected = (expected * 5 + 7) & 0xFFFF
    check("mixed", numpy.from_dlpack(pinned).view(numpy.int32), expected)
    data.close(stream)
    pinned.close(stream)
    stream.close()


if __name__ == "__main__":
    main()
