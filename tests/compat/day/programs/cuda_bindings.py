# compat: cuda.bindings: the driver and NVRTC called one by one
# modules: cuda.bindings numpy
import ctypes
import sys

import numpy
from cuda.bindings import driver, nvrtc
from printed import check

COUNT, ROUNDS = 1 << 18, 50
SOURCE = b"""
extern "C" __global__ void mixed(int* data, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = (data[i] * 5 + 7) & 0xFFFF;
}
"""


def made(answer):
    """What a call returns behind its status."""
    if int(answer[0]) != 0:
        sys.exit(f"a call failed: {answer[0]}")
    return answer[1] if len(answer) == 2 else None


def compiled(device):
    attribute = driver.CUdevice_attribute
    parts = (
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
    )
    arch = "".join(str(made(driver.cuDeviceGetAttribute(part, device))) for part in parts)
    program = made(nvrtc.nvrtcCreateProgram(SOURCE, b"mixed.cu", 0, [], []))
    made(nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture=sm_{arch}".encode()]))
    cubin = b" " * made(nvrtc.nvrtcGetCUBINSize(program))
    made(nvrtc.nvrtcGetCUBIN(program, cubin))
    return numpy.frombuffer(cubin, dtype=numpy.uint8)


def main():
    made(driver.cuInit(0))
    device = made(driver.cuDeviceGet(0))
    made(driver.cuCtxSetCurrent(made(driver.cuDevicePrimaryCtxRetain(device))))
    cubin = compiled(device)
    kernel = made(driver.cuModuleGetFunction(made(driver.cuModuleLoadData(cubin.ctypes.data)), b"mixed"))
    stream = made(driver.cuStreamCreate(1))
    values = numpy.arange(COUNT, dtype=numpy.int32)
    data = made(driver.cuMemAlloc(values.nbytes))
    made(driver.cuMemcpyHtoDAsync(data, values.ctypes.data, values.nbytes, stream))
    parameters = ((int(data), COUNT), (ctypes.c_void_p, ctypes.c_int))
    for _ in range(ROUNDS):
        made(driver.cuLaunchKernel(kernel, COUNT // 256, 1, 1, 256, 1, 1, 0, stream, parameters, 0))
    got = numpy.empty_like(values)
    made(driver.cuMemcpyDtoHAsync(got.ctypes.data, data, values.nbytes, stream))
    made(driver.cuStreamSynchronize(stream))
    for _ in range(ROUNDS):
        values = (values * 5 + 7) & 0xFFFF
    check("mixed", got, values)
    made(driver.cuMemFree(data))
    made(driver.cuDevicePrimaryCtxRelease(device))


if __name__ == "__main__":
    main()
