"""Runs every benchmark kernel in its rewritten form under compute-sanitizer, for out-of-bounds accesses and for races
in shared memory.
"""

import re
import time

from ..lab.lab import ALWAYS_REWRITTEN, LEAVES_MPS, toolkit_program

TOOLS = ("memcheck", "racecheck")
AT_ONCE = 6  # each with a gpuctld of its own, so that none is evicted for another while the tool holds up its launches
RUN_LIMIT_S = 30
BUDGET_S = 100
SUMMARY = {
    "memcheck": re.compile(r"ERROR SUMMARY: (\d+) error()"),
    "racecheck": re.compile(r"RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warnings?\)"),
}
OPTIONS = ("--target-processes", "all", "--launch-timeout", "30")
# The tool puts libraries of its own into LD_PRELOAD. gpuctl keeps those behind libgpuslice and becomes the program; or
# the tool is told to put libgpuslice in front of its own. The first way that works is used.
WAYS = ("gpuctl run within the tool", "libgpuslice preloaded by the tool", "plain")


class Check:
    """One kernel under one tool."""

    def __init__(self, lab, sanitizer, kernel, tool, socket, way):
        self.lab, self.kernel, self.tool, self.way = lab, kernel, tool, way
        self.in_slice = way != WAYS[2]
        name = f"{tool}-{kernel}{'' if self.in_slice else '-plain'}"
        (lab.out / "memcheck").mkdir(exist_ok=True)
        self.log, self.debug = (lab.out.resolve() / "memcheck" / f"{name}.{kind}" for kind in ("txt", "debug"))
        for file in (self.log, self.debug):
            file.unlink(missing_ok=True)
        command = [sanitizer, "--tool", tool, *OPTIONS, "--log-file", self.log]
        environment = {"GPUSLICE_DEBUG": str(self.debug)}
        if way == WAYS[0]:
            environment |= {"GPUCTL_SOCKET": str(socket)}
            command += [lab.gpuctl_path, "run", "--slice", "s", "--"]
        elif way == WAYS[1]:
            environment |= {"GPUCTL_SOCKET": str(socket), "GPUCTL_SLICE": "s"}
            command += ["--preload-library", lab.build / "src/libgpuslice/libgpuslice.so"]
        size = lab.size("small", "trivial")
        before = lab.env
        lab.env = {name: value for name, value in before.items() if name != "GPUCTL_SOCKET"} | environment
        self.began = time.monotonic()
        self.program = lab.start(
            None,
            *command,
            lab.bench_path,
            "run",
            kernel,
            "--size",
            size,
            "--count",
            2,
            "--warmup",
            1,
            "--check",
            "last",
            "--json",
            limit_s=RUN_LIMIT_S,
        )
        lab.env = before

    def ended(self):
        return self.program.process.poll() is not None

    def result(self):
        """The text for the table, and whether the tool found no error."""
        status = self.program.process.returncode
        seconds = time.monotonic() - self.began
        log = self.log.read_text(errors="replace") if self.log.exists() else ""
        summary = SUMMARY[self.tool].search(log + self.program.out() + self.program.err())
        debug = self.debug.read_text(errors="replace") if self.debug.exists() else ""
        forms = list(dict(re.findall(r" kernel (\S+) of .*?: (persistent|opaque),", debug)).values())
        self.persistent = forms.count("persistent")
        errors = int(summary[1]) if summary else None
        warnings = int(summary[2] or 0) if summary else 0
        self.lab.record(
            kernel=self.kernel,
            tool=self.tool,
            way=self.way,
            status=status,
            seconds=seconds,
            errors=errors,
            warnings=warnings,
            persistent=self.persistent,
            kernels=len(forms),
            log=log[-4000:],
        )
        if errors is None or status not in (0, 3):
            why = f"still running after {RUN_LIMIT_S} s" if status in (124, 137) else f"exit status {status}"
            return f"NOT CHECKED: {why}; {' '.join((log + self.program.err()).split())[-160:]}", False
        text = f"{errors} errors" + (f", {warnings} warnings" if self.tool == "racecheck" else "")
        if self.in_slice:
            text += f"; {self.persistent} of {len(forms)} kernels persistent"
        return text + ("; WRONG RESULT" if status == 3 else ""), errors == 0 and not warnings and status == 0


def step_memcheck(lab):
    """compute-sanitizer over all benchmark kernels in rewritten form, small sizes; without MPS."""
    sanitizer = toolkit_program("compute-sanitizer")
    if sanitizer is None:
        raise RuntimeError("no compute-sanitizer here")
    before = lab.env
    lab.env = {name: value for name, value in before.items() if name != "CUDA_MPS_PIPE_DIRECTORY"}
    try:
        yield from check_all(lab, sanitizer, time.monotonic() + BUDGET_S)
    finally:
        lab.env = before


def check_all(lab, sanitizer, deadline):
    free = start_daemons(lab)
    way = find_way(lab, sanitizer, free[0])
    yield ("compute-sanitizer and libgpuslice in one process", "", way)
    waiting = [(kernel, tool, way) for tool in TOOLS for kernel in lab.kernels()]
    running, clean, done = [], 0, 0
    while waiting or running:
        while waiting and free and time.monotonic() < deadline - 15:
            kernel, tool, how = waiting.pop(0)
            socket = free.pop()
            running.append((Check(lab, sanitizer, kernel, tool, socket, how), socket))
        if not running:
            break
        time.sleep(0.01)
        for check, socket in [one for one in running if one[0].ended()]:
            running.remove((check, socket))
            free.append(socket)
            text, nothing = check.result()
            if check.in_slice:
                done += 1
                clean += nothing
                if not nothing:  # and as the program is without us?
                    waiting.append((check.kernel, check.tool, WAYS[2]))
            yield (
                f"{check.kernel}, {check.tool}{'' if check.in_slice else ', plain'}",
                "0 errors" if check.in_slice else "",
                text,
            )
    if waiting:
        yield (
            f"NOT CHECKED, no time left: {len(waiting)} runs",
            "",
            ", ".join(f"{kernel} {tool}" for kernel, tool, _ in waiting)[:300],
        )
    yield ("runs in rewritten form in which the tools found nothing", "", f"{clean} of {done}")


def find_way(lab, sanitizer, socket):
    """The first way in which the tool ends with a summary and the kernel was rewritten."""
    said = []
    for way in WAYS[:2]:
        check = Check(lab, sanitizer, "vectorAdd", TOOLS[0], socket, way)
        check.program.process.wait()
        text, _ = check.result()
        said.append(f"{way}: {text}")
        if check.persistent and not text.startswith("NOT CHECKED"):
            return way
    raise RuntimeError("; ".join(said))


def start_daemons(lab):
    """Starts daemons and returns their sockets. Each daemon has the whole GPU to give."""
    config = lab.scratch / "memcheck.toml"
    config.write_text(LEAVES_MPS + ALWAYS_REWRITTEN)
    before, sockets, daemons = lab.env, [], []
    for number in range(lab.size(AT_ONCE, 2)):
        socket = lab.scratch / f"memcheck{number}.sock"
        lab.env = {**before, "GPUCTL_SOCKET": str(socket)}
        options = ["--software-gpu"] if lab.options.rehearse else []
        daemons.append(
            lab.start(
                None,
                lab.build / "src/gpuctld/gpuctld",
                "--socket",
                socket,
                "--config",
                config,
                "--state",
                lab.scratch / f"memcheck{number}.state",
                *options,
                limit_s=BUDGET_S + 60,
            )
        )
        sockets.append(socket)
    for socket, daemon in zip(sockets, daemons):
        lab.env = {**before, "GPUCTL_SOCKET": str(socket)}
        lab.wait_for(lambda: socket.exists() and daemon.process.poll() is None, daemon.failure("does not start"))
        lab.gpuctl("create-slice", "s")
    lab.env = before
    return sockets
