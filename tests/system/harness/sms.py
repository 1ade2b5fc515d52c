"""On which SMs of the software GPU programs have blocks. %smid does not say so under MPS."""

import subprocess

from tests.system.harness import instance


def watch_sms(test, *options):
    """Watches from now on; seen_by() ends it, or, with options of sm_watch, who reads what it prints then."""
    watch = subprocess.Popen(
        [instance.DRIVER_PROGRAMS / "sm_watch", test.env["SOFTGPU_TABLE"], *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    test.addCleanup(watch.kill)
    test.assertEqual(watch.stdout.readline(), "ready\n")
    return watch


def seen_by(watch):
    """({pid: the SMs it was seen on}, how many times two were seen at work, and how many times on one SM)."""
    *seen, together, shared = watch.communicate()[0].split()
    return {int(pid): int(mask, 16) for pid, mask in (one.split(":") for one in seen)}, int(together), int(shared)
