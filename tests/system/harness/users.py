"""Processes of other users, for tests that run as root."""

import ctypes
import os
import signal

NOBODY = 65534
PR_SET_PDEATHSIG = 1  # sys/prctl.h


def start_as(test, uid, work):
    """Runs work() as another user in a process of its own, and waits until it is done. The process then stays until the
    test ends. Returns its process id and, as bytes, what work() returned.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            become(uid)
            said = work()
            os.write(write, said if isinstance(said, bytes) else b"ready")
            os.close(write)
            signal.pause()
        finally:
            os._exit(1)
    test.addCleanup(os.waitpid, child, 0)
    test.addCleanup(os.kill, child, signal.SIGKILL)
    os.close(write)
    with os.fdopen(read, "rb") as said:
        answer = said.read()
    test.assertTrue(answer, f"the process of user {uid} failed")
    return child, answer


def become(uid):
    """This process goes on as that user, without other groups."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)


def end_with_parent():
    """This process is killed when the one that forked it ends, in whatever way. To be called after become(), which
    would undo it.
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
