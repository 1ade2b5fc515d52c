"""A program becomes another one (exec) while its kernels run. Workers read memory of their process, which goes then,
and under MPS that would be a fault for every program on the GPU. So exec waits until the work is done, and the work may
have all SMs, since nobody asks for more any longer, even though the process lives on and a child has its descriptors.
Where programs take turns on the GPU the driver ends that work and no other program minds, so exec does not wait. A
program that does not become another one, since exec fails or a child calls it, stays in its slice.
"""

import signal
import sys

from tests.system.harness import driver_calls, instance

# Kernels of some 20 ms, in memory that children share; `launch_all()` launches them on the SMs that it may have.
LAUNCHES = (
    driver_calls.CALLS
    + r"""
import mmap, os, sys, time
PTX = '''
.version 7.0
.target sm_80
.address_size 64
.visible .entry slow(.param .u64 words, .param .u32 first)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd0, [words];
  ld.param.u32 %r0, [first];
  mov.u32 %r1, %ctaid.x;
  add.u32 %r0, %r0, %r1;
  mul.wide.u32 %rd1, %r0, 4;
  add.u64 %rd0, %rd0, %rd1;
  nanosleep.u32 1000000;
  mov.u32 %r2, %smid;
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd0], %r2;
  ret;
}
'''
BLOCKS, LAUNCHES = 1000, 10
P = ctypes.c_void_p
call("cuInit", 0)
call("cuCtxSetCurrent", made("cuDevicePrimaryCtxRetain", 0))
slow = made("cuModuleGetFunction", made("cuModuleLoadData", PTX.encode()), b"slow")
shared = mmap.mmap(-1, 4 * BLOCKS * LAUNCHES)
words = (ctypes.c_uint32 * (BLOCKS * LAUNCHES)).from_buffer(shared)
address = ctypes.c_uint64(ctypes.addressof(words))
call("cuMemHostRegister_v2", P(address.value), ctypes.c_size_t(len(shared)), 3)
def done(): return sum(word != 0 for word in words)
def launch_all():
    for launch in range(LAUNCHES):
        first = ctypes.c_uint32(launch * BLOCKS)
        parameters = (P * 2)(*[ctypes.cast(ctypes.byref(one), P) for one in (address, first)])
        call("cuLaunchKernel", slow, BLOCKS, 1, 1, 32, 1, 1, 0, None, parameters, None)
"""
)

# Launches them, forks a child that sees the stub page of its parent, and has its connection too, and becomes `sleep` by
# the function that it is told. The child says how many blocks have written their word when the parent is another
# program, and when the grant of the first device is no longer limited.
PROGRAM = (
    LAUNCHES
    + r"""
ALL_SMS, CAPSM = 0x00FFFFFF, 64  # ipc::kUnlimited; where the stub page has grant[0].polled.capsm
FLAGS, MODE, TURNS = 64 + 40, 7 << 4, 2 << 4  # where it has grant[0].flags; ipc::kModeMask, Mode::turns
launch_all()
page = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if "memfd:gpuctl-stub" in line)
def granted(): return ctypes.c_uint32.from_address(page + CAPSM).value
before, begun, parent = granted(), done(), os.getpid()
if os.fork() == 0:
    while "sleep" not in os.readlink(f"/proc/{parent}/exe"): pass
    print(done() - begun > BLOCKS, done() == BLOCKS * LAUNCHES, flush=True)
    while granted() != ALL_SMS: time.sleep(0.001)
    print(before, "then all", flush=True)
    os._exit(0)
flags = ctypes.c_uint32.from_address(page + FLAGS)
if "turns" in sys.argv: flags.value = flags.value & ~MODE | TURNS
c = ctypes.CDLL(None)
path, words_of_it = b"/bin/sleep", (b"sleep", b"600", None)
argv, environment = (ctypes.c_char_p * 3)(*words_of_it), (ctypes.c_char_p * 2)(b"A=1", None)
AT_FDCWD = -100
{
    "execv": lambda: c.execv(path, argv),
    "execve": lambda: c.execve(path, argv, environment),
    "execveat": lambda: c.execveat(AT_FDCWD, path, argv, environment, 0),
    "fexecve": lambda: c.fexecve(os.open(path, os.O_RDONLY), argv, environment),
    "execvp": lambda: c.execvp(b"sleep", argv),
    "execvpe": lambda: c.execvpe(b"sleep", argv, environment),
    "execl": lambda: c.execl(path, *words_of_it),
    "execle": lambda: c.execle(path, *words_of_it, environment),
    "execlp": lambda: c.execlp(b"sleep", *words_of_it),
    "os.execve of a descriptor": lambda: os.execve(os.open(path, os.O_RDONLY), ["sleep", "600"], {}),
}[sys.argv[1]]()
raise SystemExit("it returned")
"""
)
OPAQUE = "  bar.arrive 1, 64;\n  ret;\n"  # what a block leaves at a barrier is in the way of another block-task
WAYS = (
    "execv",
    "execve",
    "execveat",
    "fexecve",
    "execvp",
    "execvpe",
    "execl",
    "execle",
    "execlp",
    "os.execve of a descriptor",
)

# Launches some, calls exec in children and in vain, and launches them again. It says on how many SMs those ran, and
# waits.
STAYS = (
    LAUNCHES
    + r"""
import errno, pathlib, subprocess
LAUNCHES = 3
def tell(how):
    ctypes.memset(words, 0, len(shared))
    launch_all()
    try:
        how()
        code = "ok"
    except OSError as error:
        code = errno.errorcode[error.errno]
    over = done() == BLOCKS * LAUNCHES
    call("cuCtxSynchronize")
    launch_all()
    call("cuCtxSynchronize")
    sms = {word for word in words if word}
    print(how.__name__, code, len(sms), done() == BLOCKS * LAUNCHES, *[over] * (how in TRIED), flush=True)
def in_child(): subprocess.run(["/bin/true"], check=True)
def spawned(): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
def forked():
    child = os.fork()
    if child == 0: os.execv("/bin/true", ["true"])
    os.waitpid(child, 0)
def in_child_in_vain(): subprocess.run(["/nonexistent"], check=True)
def missing(): os.execv("/nonexistent", ["x"])
def missing_in_path(): os.execvp("nonexistent", ["x"])
def no_program():
    path = pathlib.Path(sys.argv[1])
    path.write_bytes(bytes(100))
    path.chmod(0o755)
    os.execv(path, ["x"])
def no_interpreter():
    path = pathlib.Path(sys.argv[1])
    path.write_text("#!/nonexistent\n")
    path.chmod(0o755)
    os.execv(path, ["x"])
def too_long(): os.execv("/bin/true", ["x" * (1 << 24)])
TRIED = (no_program, no_interpreter, too_long)
for how in (in_child, spawned, forked, in_child_in_vain, missing, missing_in_path, *TRIED): tell(how)
call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(1 << 20))
refused = cuda.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(64 << 20))
print("memory", refused, flush=True)
time.sleep(600)
"""
)
# The last ones are tried, and the kernels are over when they have failed.
STAYED = """\
in_child ok 2 True
spawned ok 2 True
forked ok 2 True
in_child_in_vain ENOENT 2 True
missing ENOENT 2 True
missing_in_path ENOENT 2 True
no_program ENOEXEC 2 True True
no_interpreter ENOENT 2 True True
too_long E2BIG 2 True True
memory 2
"""
TRIED = 3


class Exec(instance.SystemTest):
    def test_its_work_is_done_and_may_have_all_sms(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2)
        for way in WAYS:
            with self.subTest(way):
                program = self.start_in("few", sys.executable, "-c", PROGRAM, way)
                instance.wait_until(
                    lambda of=program: "all" in of.out() or of.process.poll() is not None, "the grant to be opened"
                )
                self.assertEqual(program.out(), "True True\n2 then all\n", program.err())
                self.assertIsNone(program.process.poll(), "the process lives on as another program")
                self.assertEqual(self.clients("few"), [])
                program.kill()

    def test_a_program_that_stays_itself_stays_in_its_slice(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2, "--memory-max", "32M")
        forms = {"rewritten": STAYS, "original": STAYS.replace("  ret;\n", OPAQUE)}
        for times, (form, code) in enumerate(forms.items(), 1):
            with self.subTest(form):
                program = self.start_in("few", sys.executable, "-c", code, self.scratch / "program")
                instance.wait_until(
                    lambda of=program: "memory" in of.out() or of.process.poll() is not None, "the program to try all"
                )
                self.assertEqual(program.out(), STAYED, program.err())
                self.assertEqual([client["pid"] for client in self.clients("few")], [program.pid])
                self.assertEqual(self.daemon.err().count("came back to slice few"), times * TRIED)
                self.gpuctl("kill", "few")
                self.assertEqual(program.wait(), -signal.SIGTERM)

    def test_kernels_in_original_form_are_over_too(self):
        """Of those the plain driver under MPS makes a fault too."""
        self.start_daemon()
        self.gpuctl("create-slice", "free")
        program = self.start_in("free", sys.executable, "-c", PROGRAM.replace("  ret;\n", OPAQUE), "execv")
        instance.wait_until(
            lambda: "all" in program.out() or program.process.poll() is not None, "the process to be another program"
        )
        self.assertEqual(program.out().split("\n")[0], "True True", program.err())

    def test_where_programs_take_turns_it_does_not_wait(self):
        self.start_daemon(config=instance.ALL_SHORT)
        self.gpuctl("create-slice", "few", "--max", 2)
        # As where there is no MPS: the software GPU has no such mode.
        program = self.start_in("few", sys.executable, "-c", PROGRAM, "execv", "turns")
        instance.wait_until(lambda: program.out().count("\n") == 2, "the grant to be opened")
        self.assertEqual(program.out().splitlines()[0].split()[1], "False", "its work was done when it became another")


if __name__ == "__main__":
    instance.main()
