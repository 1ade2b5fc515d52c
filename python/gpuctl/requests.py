"""Names this program's requests for gpuctl, which then measures how long each takes (docs/latency.md).

    with gpuctl.request():
        answer = model(question).cpu()

In a program that runs in no slice it does nothing. Any thread; requests may overlap and nest.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator


@functools.cache
def _functions() -> tuple[Callable[[], int], Callable[[int], int]] | None:
    """Those of the library that `gpuctl run` preloads."""
    loaded = ctypes.CDLL(None)
    try:
        begin, end = loaded.gpuslice_request_begin, loaded.gpuslice_request_end
    except AttributeError:
        return None
    begin.argtypes, begin.restype = [], ctypes.c_uint64
    end.argtypes, end.restype = [ctypes.c_uint64], ctypes.c_int
    return begin, end


@contextlib.contextmanager
def request() -> Iterator[None]:
    """A request from here to the end of the `with`. One that ends by an exception counts nothing."""
    functions = _functions()
    if functions is None:
        yield
        return
    begin, end = functions
    token = begin()
    yield
    end(token)
