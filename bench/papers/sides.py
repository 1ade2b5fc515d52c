"""How the programs of an experiment share the GPU: NVIDIA's own means, isolated slices, and slices of gpuctl."""

import contextlib
import dataclasses

from ..corun.configurations import MANAGED, MPS, TIME_SLICED, OfSms
from ..lab.lab import LEAVES_MPS
from ..lab.modes import SOFTWARE

MPS_OF_GPUCTLD = 'daemon.mps = "manage"\n'


@dataclasses.dataclass(frozen=True)
class Side:
    """`slices`: path and settings of each, empty where gpuctl has no part. A program's role names its slice."""

    name: str
    mode: str = MPS
    slices: tuple = ()
    policy: str = "share"
    priorities: dict = dataclasses.field(default_factory=dict)  # of streams, by role
    env: dict = dataclasses.field(default_factory=dict)  # by role

    @property
    def ours(self):
        return bool(self.slices)


def stock(roles=("low", "high")):
    """NVIDIA's means for two roles: the second is to come first."""
    low, high = roles
    client = "CUDA_MPS_CLIENT_PRIORITY"
    return (
        Side("MPS"),
        Side("MPS, stream priorities", priorities={low: "low", high: "high"}),
        Side("MPS, client priorities", env={low: {client: "1"}, high: {client: "0"}}),
        Side("time-slicing", TIME_SLICED),
    )


def isolated(low, high):
    slices = ((low, ()), (high, ("--isolation", "isolated", "--priority", 50)))
    return Side("isolated slice", MANAGED, slices)


@contextlib.contextmanager
def entered(lab, mode):
    with lab.mode(SOFTWARE if lab.software else mode):
        lab.env["GPUSLICE_BACKGROUND"] = "0"  # kernels can be evicted from their first launch on
        yield


def in_sms(lab, option):
    return max(1, round(option.part * lab.sms())) if isinstance(option, OfSms) else option


@contextlib.contextmanager
def serving(lab, side):
    """A gpuctld with the slices of a side, where it has any."""
    if not side.ours:
        yield
        return
    with lab.gpuctld(config=MPS_OF_GPUCTLD if side.mode == MANAGED else LEAVES_MPS):
        for path, options in side.slices:
            lab.gpuctl("create-slice", path, *(in_sms(lab, option) for option in options))
        lab.gpuctl("set", "/", f"policy={side.policy}")
        yield
