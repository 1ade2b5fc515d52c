"""Amounts of a slice that are not the same number on every GPU: "25%", "1:16", "25%,1:8", as gpuctl(1) has them."""

from __future__ import annotations

import re
from typing import Any

from .model import Slice

LIFTED = {"max": "max_unlimited", "memory_max": "memory_unlimited", "memory_high": "memory_high_unlimited"}
AMOUNTS = ("reserve", "memory_min", *LIFTED)
SAME_ON_EACH = "none"
_SIZES = {"K": 10, "M": 20, "G": 30, "T": 40}


def number_of(text: str) -> int | None:
    """A whole number, of bytes with K, M, G or T; None if the text is none."""
    found = re.fullmatch(r"(\d+)([KMGT]?)", text)
    return int(found[1]) << _SIZES.get(found[2], 0) if found else None


def settings_of(name: str, value: int | str | None) -> dict[str, Any]:
    """The fields of `SliceSettings` that give the amount `name` a value. None, or "none", is no limit. What is no
    amount gpuctld refuses."""
    if not isinstance(value, str):
        return {LIFTED[name]: True} if value is None and name in LIFTED else {name: value}
    first, _, others = value.partition(",")
    number = number_of(first)
    lifted = first in ("none", "unlimited")
    if number is None and not lifted:
        others = value
    elif "," not in value:
        others = SAME_ON_EACH
    said: dict[str, Any] = {f"{name}_per_gpu": others}
    if name in LIFTED and number is None:
        return {LIFTED[name]: True, **said}
    return {name: number or 0, **said}


def value_of(one: Slice, name: str) -> int | str | None:
    """What is set, as `settings_of` takes it."""
    every: int | None = getattr(one, name)
    per_gpu: str = getattr(one, f"{name}_per_gpu")
    if per_gpu == SAME_ON_EACH:
        return every
    if every == (None if name in LIFTED else 0) or ":" not in per_gpu.split(",")[0]:
        return per_gpu
    return f"{every},{per_gpu}"
