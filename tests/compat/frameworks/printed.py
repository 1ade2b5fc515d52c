"""What the programs of frameworks/ share: results as one line each, and the end of a program whose result is wrong."""

import hashlib
import sys


def print_hash(name, array):
    """A name, and the hash of a NumPy array's type, shape and bytes."""
    digest = hashlib.sha256(f"{array.dtype} {array.shape} ".encode() + array.tobytes()).hexdigest()[:16]
    print(f"{name} {digest}", flush=True)


def check(name, array, expected):
    """Prints the hash of a result that must be the expected one, to the bit."""
    if array.shape != expected.shape or not (array == expected).all():
        sys.exit(f"{name}: wrong")
    print_hash(name, array)


def about(name, value, within):
    """A number that another run need not have to the bit, and how far off it may be there."""
    print(f"{name} ~{value:.6f} within {within}", flush=True)
