"""The beginning of a test's Python program that calls the driver by itself: `call` ends the program where the driver
refuses, `made` gives the handle that a call makes."""

CALLS = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code != 0: raise SystemExit(f"{name}: {code}")
def made(name, *arguments):
    result = ctypes.c_void_p()
    call(name, ctypes.byref(result), *arguments)
    return result
"""
