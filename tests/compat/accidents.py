"""What a program that hangs or crashes under MPS does to those beside it, and which of them are to run again."""

import dataclasses
import re

# What programs see of an MPS server that does not serve them; programs of the suite have no such errors of their own.
MPS_ERROR = re.compile(
    r"cudaErrorMps\w+|CUDA_ERROR_MPS_\w+|cudaErrorDevices?Unavailable|CUDA_ERROR_DEVICE_UNAVAILABLE"
    r"|device\(s\) is/are busy or unavailable|MPS server is not ready"
)


@dataclasses.dataclass(frozen=True)
class Accident:
    """From when the program was started until MPS served again: time.monotonic()."""

    began: float
    until: float


def is_accident(outcome):
    """Whether a program was killed, by the runner too, or crashed: work that it had on the GPU may have been cut
    off."""
    return outcome.ended != "by itself" or outcome.status < 0


def meets(outcome, accident):
    """Whether a program ran at any time of an accident."""
    return outcome.began <= accident.until and outcome.began + outcome.wall_s >= accident.began


def was_reached(outcomes, accidents):
    """Whether to run a program again, by its runs and the accidents of others: one of its runs ended with an error of
    MPS while there was an accident. Not one that had an accident itself: what it did is its own."""
    if any(is_accident(outcome) for outcome in outcomes):
        return False
    return any(
        MPS_ERROR.search(outcome.out + outcome.err) and any(meets(outcome, accident) for accident in accidents)
        for outcome in outcomes
    )
