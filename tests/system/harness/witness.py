"""Who may use and who uses the SMs, seen past the daemon: from the pages of its clients, and from the blocks that the
software GPU runs. What the daemon says it decided is not asked for.
"""

import collections
import mmap
import os
import subprocess
import threading

from tests.system.harness import instance

PAGE_BYTES = 57344
# src/ipc/stub.h, in words of 32 bits: the process, its sign of life, the first Grant and the first Usage.
PID, BEAT, GRANT, USAGE = 4, 15, 16, 16 + 16 * 16
CAPSM, EPOCH, FLAGS = GRANT, GRANT + 4, GRANT + 10
DEMAND, OUTSTANDING = USAGE, USAGE + 3
MODE_SHIFT, MODE_MASK = 4, 7  # src/ipc/mode.h
HAVE_OWN_SMS = (0, 3)  # modes `workers` and `part`
EVERY_S = 0.005
EXITING = 0x4  # PF_EXITING of the kernel's include/linux/sched.h
HOLDERS = 2  # of evicted launches, one for each that a program has outstanding: they do no work


def began(pid):
    """When the process that goes on began, as Linux counts; None if it is gone or ends: the page of one that ends says
    that it may use all.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            state, *numbers = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" or int(numbers[5]) & EXITING else numbers[18]


class Witness(threading.Thread):
    """Looks until stop(). `test.daemon` may be another one from time to time. The pages are found where the daemon has
    them open, and stay with the witness when that daemon has gone: a program obeys its latest page.
    """

    def __init__(self, test, pids=None):
        """`pids`: of the programs that are looked at, if others do not obey."""
        super().__init__(daemon=True)
        self.test, self.pids = test, pids
        self.pages = {}  # by the file's number, the oldest first; None: it is not looked at
        self.began = {}  # of pages that were in use: when their process began, as its number is another's later
        self.ended = threading.Event()
        self.looks = self.over = 0
        self.worst = {}  # what programs at work could use, where that was more than there is
        self.used = collections.Counter()  # looks, by on how many SMs each program had blocks, added up
        self.crowded = 0
        command = [instance.DRIVER_PROGRAMS / "sm_watch", test.env["SOFTGPU_TABLE"], "count"]
        self.blocks = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        test.addCleanup(self.blocks.kill)

    def run(self):
        while not self.ended.wait(EVERY_S):
            if not self.knows_all():
                self.find_pages()
            self.look()

    def knows_all(self):
        """Of programs that are named, and do not attach anew: to look for pages takes time for each that there is."""
        return self.pids is not None and self.pids <= {page[PID] for page in self.pages.values() if page}

    def look(self):
        in_use = {number: page for number, page in self.pages.items() if page and page[BEAT]}
        for number in in_use.keys() - self.began.keys():
            self.began[number] = began(in_use[number][PID])
        latest = {page[PID]: page for page in in_use.values()}
        since = {page[PID]: self.began[number] for number, page in in_use.items()}
        before = {pid: page[EPOCH] for pid, page in latest.items()}
        may_use = {
            pid: page[CAPSM]
            for pid, page in latest.items()
            if (self.pids is None or pid in self.pids)
            and (page[DEMAND] or page[OUTSTANDING])
            and page[FLAGS] >> MODE_SHIFT & MODE_MASK in HAVE_OWN_SMS
        }
        may_use = {pid: sms for pid, sms in may_use.items() if since[pid] and began(pid) == since[pid]}
        self.blocks.stdin.write("\n")
        words = [int(word) for word in self.blocks.stdout.readline().split()]
        if not may_use or any(page[EPOCH] != before[pid] for pid, page in latest.items()):
            return
        self.looks += 1
        if sum(may_use.values()) > instance.SMS:
            self.over += 1
            self.worst = may_use
        used = [sms for pid, sms in zip(words[::2], words[1::2]) if pid in may_use]
        self.used[sum(used)] += 1
        self.crowded += sum(used) > instance.SMS + HOLDERS * len(used)

    def find_pages(self):
        folder = f"/proc/{self.test.daemon.pid}/fd"
        try:
            for name in os.listdir(folder):
                path = f"{folder}/{name}"
                if "memfd:gpuctl-stub" not in os.readlink(path) or (number := os.stat(path).st_ino) in self.pages:
                    continue
                file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                page = memoryview(mmap.mmap(file, PAGE_BYTES, prot=mmap.PROT_READ)).cast("I")
                os.close(file)
                self.pages[number] = page if self.pids is None or page[PID] in self.pids else None
        except (OSError, ValueError):  # the daemon, or what it had open, has gone, or there is no memory for a page
            pass

    def stop(self):
        self.ended.set()
        self.join()
        self.blocks.communicate()

    def check(self):
        """A look at pages falls now and then between a program's end and what it is granted for that, and one at blocks
        before they have left.
        """
        self.test.assertGreater(self.looks, 20, self.says())
        self.test.assertLess(self.over, self.looks / 50, self.says())
        self.test.assertLess(self.crowded, self.looks / 4, self.says())

    def says(self):
        return (
            f"{self.looks} looks at {len(self.pages)} pages, {self.over} with more SMs than there are {self.worst}; "
            f"looks by SMs with blocks, added up by program: {dict(sorted(self.used.items()))}, crowded {self.crowded}"
        )
