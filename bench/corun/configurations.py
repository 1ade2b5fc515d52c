"""The ways in which LS and batch share the GPU. `stock` configurations use nothing of this project. In `ours` the
programs set no priorities themselves.
"""

import dataclasses
import pathlib
import re

SHIPPED = pathlib.Path(__file__).resolve().parents[2] / "etc/gpuctl.toml"
TIME_SLICED, MPS, MANAGED = "time-sliced", "mps", "mps of gpuctld"
ALONE, STOCK, OURS = "alone", "stock", "ours"
MANAGES = ('daemon.mps = "manage"',)
RESERVE = "RESERVE"  # stands for the SMs of the workload's reserve
PRIORITY = 50


@dataclasses.dataclass(frozen=True)
class OfSms:
    """Stands for so much of the GPU's SMs."""

    part: float


@dataclasses.dataclass(frozen=True)
class Configuration:
    name: str
    description: str
    kind: str
    mode: str
    ls_priority: str = "none"  # of the program's stream
    ls_env: tuple = ()
    batch_env: tuple = ()
    ls_slice: tuple = ()  # options of gpuctl create-slice
    batch_slice: tuple = ()
    policy: str = ""  # of the root slice
    daemon: tuple = ()  # lines of gpuctl.toml
    plain: tuple = ()  # of "ls" and "batch": those outside of gpuctl, to see which side of a pair costs what
    again: bool = False  # its programs run once before, so that gpuctld knows them

    def started_as(self):
        """All that cannot be changed while the programs run. Configurations that are alike in it differ by settings."""
        if self.kind != OURS:
            return self.name
        fixed = [self.isolation_at_start(of) for of in ("ls", "batch")]
        return (
            *(self.mode, self.daemon, self.policy, self.plain, self.ls_priority, self.ls_env, self.batch_env),
            *(self.again and self.name, *fixed),
        )

    def isolation_at_start(self, of):
        """A slice with a target of which nothing is known begins isolated, and a program stays as it began. None: as
        the slice above has it.
        """
        settings = self.settings(of)
        return settings.get("isolation", "isolated" if "latency" in settings else None)

    def settings(self, of):
        """The settings of the slice of LS or of batch, as `gpuctl set` has them."""
        options = self.ls_slice if of == "ls" else self.batch_slice
        names = [option.removeprefix("--") for option in options[::2]]
        return dict(zip(names, options[1::2]))


def stock(name, description, mode=MPS, **rest):
    return Configuration(name, description, STOCK, mode, **rest)


def ours(name, description, mode=MPS, **rest):
    return Configuration(name, description, OURS, mode, **rest)


def isolated(name, what, *options):
    """LS has a context of its own, and batch the MPS that gpuctld starts."""
    return ours(
        name,
        f"ours, LS isolated, batch in an MPS of gpuctld's, {what}",
        MANAGED,
        ls_slice=("--isolation", "isolated", *options),
        daemon=MANAGES,
    )


def percentage(part):
    return (("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", str(part)),)


def stream_and_percentage(name, part, of="batch"):
    return stock(
        name,
        f"MPS, the greatest stream priority for LS, {part} % of the threads for {of}",
        ls_priority="high",
        batch_env=percentage(part),
    )


LS_FIRST, BATCH_LAST = (("CUDA_MPS_CLIENT_PRIORITY", "0"),), (("CUDA_MPS_CLIENT_PRIORITY", "1"),)

CONFIGURATIONS = {
    configuration.name: configuration
    for configuration in (
        Configuration("alone", "each program by itself, nothing set", ALONE, TIME_SLICED),
        stock("sliced", "time-sliced, nothing set", TIME_SLICED),
        ours("ours-sliced", "ours, time-sliced, two slices with nothing set", TIME_SLICED),
        ours(
            "ours-sliced-priority",
            f"ours, time-sliced, priority {PRIORITY} for LS",
            TIME_SLICED,
            ls_slice=("--priority", PRIORITY),
        ),
        stock("mps", "MPS, nothing set"),
        stock("mps-stream", "MPS, the greatest stream priority for LS", ls_priority="high"),
        stock("mps-stream-middle", "MPS, the stream priority -2 for LS, of 0 to -5", ls_priority="middle"),
        stock("mps-client", "MPS, client priority 1 (below normal) for batch", ls_env=LS_FIRST, batch_env=BATCH_LAST),
        stock("mps-90", "MPS, 90 % of the threads for batch", batch_env=percentage(90)),
        stock("mps-75", "MPS, 75 % of the threads for batch", batch_env=percentage(75)),
        stock("mps-50", "MPS, 50 % of the threads for batch", batch_env=percentage(50)),
        stream_and_percentage("mps-stream-90", 90),
        stream_and_percentage("mps-stream-75", 75),
        stream_and_percentage("mps-stream-90-of-two", 45, "each of two batch programs"),
        stream_and_percentage("mps-stream-90-of-eight", 11.25, "each of eight batch programs"),
        stream_and_percentage("mps-stream-75-of-eight", 9.375, "each of eight batch programs"),
        ours("ours", "ours, MPS, two slices with nothing set"),
        ours("ours-own-high", "as ours, and LS asks for the greatest stream priority", ls_priority="high"),
        ours("ours-priority", f"ours, MPS, priority {PRIORITY} for LS", ls_slice=("--priority", PRIORITY)),
        ours(
            "ours-priority-own-high",
            "as ours-priority, and LS asks for the greatest stream priority",
            ls_priority="high",
            ls_slice=("--priority", PRIORITY),
        ),
        ours(
            "ours-priority-batch-plain",
            f"ours, MPS, priority {PRIORITY} for LS; batch outside of gpuctl",
            ls_slice=("--priority", PRIORITY),
            plain=("batch",),
        ),
        *(
            ours(
                f"ours-priority-{mode}",
                f"ours, MPS, priority {PRIORITY} and a reserve for LS, {mode}",
                ls_slice=("--priority", PRIORITY, "--reserve", RESERVE, "--reserve-mode", mode),
            )
            for mode in ("strict", "active")
        ),
        ours(
            "ours-strict",
            "ours, MPS, reserve for LS, strict",
            ls_slice=("--reserve", RESERVE, "--reserve-mode", "strict"),
        ),
        ours(
            "ours-active",
            "ours, MPS, reserve for LS, kept while LS is active",
            ls_slice=("--reserve", RESERVE, "--reserve-mode", "active"),
        ),
        ours(
            "ours-weights",
            "ours, MPS, weight 200 for LS, 100 for batch",
            ls_slice=("--weight", 200),
            batch_slice=("--weight", 100),
        ),
        ours("ours-max-75", "ours, MPS, max of 75 % of the SMs for batch", batch_slice=("--max", OfSms(0.75))),
        ours(
            "ours-priority-max-75",
            f"ours, MPS, priority {PRIORITY} for LS, max of 75 % of the SMs for batch",
            ls_slice=("--priority", PRIORITY),
            batch_slice=("--max", OfSms(0.75)),
        ),
        ours(
            "ours-max-75-ls-plain",
            "as ours-max-75, but LS outside of gpuctl, with the greatest stream priority",
            ls_priority="high",
            batch_slice=("--max", OfSms(0.75)),
            plain=("ls",),
        ),
        ours(
            "ours-priority-batch-plain-75",
            f"ours, MPS, priority {PRIORITY} for LS; batch outside of gpuctl, with 75 % of the threads",
            ls_slice=("--priority", PRIORITY),
            batch_env=percentage(75),
            plain=("batch",),
        ),
        *(
            ours(
                f"auto-{target}{'-again' if again else ''}",
                f"ours, latency={target} for LS and nothing else, in a gpuctld that may start MPS"
                + (", at the second start" if again else ""),
                MANAGED,
                ls_slice=("--latency", target),
                daemon=MANAGES,
                again=again,
            )
            for again in (False, True)
            for target in ("2x", "1.3x")
        ),
        isolated("isolated", "nothing else set"),
        isolated("isolated-priority", f"priority {PRIORITY}", "--priority", PRIORITY),
        *(
            dataclasses.replace(
                isolated(f"isolated-{turn_us}us", f"turns of {turn_us} us for batch", "--priority", PRIORITY),
                daemon=(*MANAGES, f"lab.second_time_slice_us = {turn_us}"),
            )
            for turn_us in (50, 100, 200, 500, 1000, 2000)
        ),
        isolated("isolated-2x", "latency=2x", "--latency", "2x"),
        isolated("isolated-1.3x", "latency=1.3x", "--latency", "1.3x"),
        *(
            ours(
                f"ours-latency-{target}",
                f"ours, MPS, LS shares it, latency={target} for LS",
                ls_slice=("--isolation", "shared", "--latency", target),
            )
            for target in ("2x", "1.3x")
        ),
        ours(
            "ours-hpf",
            f"ours, MPS, policy hpf, priority {PRIORITY} for LS",
            ls_slice=("--priority", PRIORITY),
            policy="hpf",
        ),
    )
}


def with_changes(name):
    """The configuration of a name, or of NAME:KEY=VALUE: with a key of [daemon] or [lab] of gpuctl.toml, or with
    another `reserve`, as a part of the SMs, to try values beside each other. More keys follow in the same way.
    KeyError: there is none; ValueError: it has no daemon or no reserve, or a key no value.
    """
    name, *keys = name.split(":")
    configuration = CONFIGURATIONS[name]
    if not keys:
        return configuration
    if configuration.kind != OURS:
        raise ValueError(f"{name} has no gpuctld to set a key of")
    lines, ls_slice = [], configuration.ls_slice
    for key in keys:
        key, equals, value = key.partition("=")
        if not key or not equals or not value:
            raise ValueError(f"{name}: write :KEY=VALUE, not :{key}{equals}{value}")
        if key == "reserve":
            if RESERVE not in ls_slice:
                raise ValueError(f"{name} has no reserve to change")
            ls_slice = tuple(OfSms(part_of_sms(name, value)) if option == RESERVE else option for option in ls_slice)
        else:
            lines.append(f"{table_of(key)}.{key} = {value}")
    return dataclasses.replace(
        configuration,
        name=":".join((name, *keys)),
        description=f"{configuration.description}; {', '.join(key.replace('=', ' = ') for key in keys)}",
        daemon=configuration.daemon + tuple(lines),
        ls_slice=ls_slice,
    )


def table_of(key):
    """The shipped file has all keys of [daemon]; any other is one of [lab] (bench/lab.md)."""
    section = SHIPPED.read_text().partition("[daemon]")[2].partition("[[")[0]
    return "daemon" if re.search(rf"^#?{re.escape(key)} =", section, re.MULTILINE) else "lab"


def part_of_sms(name, value):
    try:
        part = float(value)
    except ValueError:
        part = 0
    if not 0 < part <= 1:
        raise ValueError(f"{name}: the reserve is a part of the SMs, above 0 and at most 1, not {value}")
    return part
