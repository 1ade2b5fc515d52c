"""Long images with machine code do not hold up a program: their persistent forms are compiled beside it. The software
GPU compiles for as long as a file is not there, so each test says when that is over."""

import json
import pathlib
import time

from tests.system.harness import instance

SHELL = instance.DRIVER_PROGRAMS / "image_shell"
IMAGE = instance.CUDA_PROGRAMS / "long_image.fatbin"
WITH_VARIABLE = instance.CUDA_PROGRAMS / "long_image_with_variable.fatbin"
COMPILING = "original form until its persistent form is compiled"
WAITING = "original form until its persistent form is loaded"
NEXT_START = "original form; persistent from the next start on (its module has variables)"


class BackgroundForms(instance.SystemTest):
    warp_instruction_ns = 2000

    def setUp(self):
        super().setUp()
        self.compiled = self.scratch / "compiled"
        self.env["SOFTGPU_COMPILE_UNTIL"] = str(self.compiled)
        del self.env["GPUSLICE_BACKGROUND"]
        self.start_daemon()
        self.gpuctl("create-slice", "s")

    def shell(self, **more):
        return instance.Conversation(self, [instance.GPUCTL, "run", "--slice", "s", SHELL], {**self.env, **more})

    def kernel(self, shell, name="scale"):
        """What gpuctl explain says of it now."""

        def known():
            said = self.gpuctl("explain", shell.pid, "--json", check=False)
            kernels = json.loads(said.stdout)["kernels"] if said.returncode == 0 else []
            return next((kernel for kernel in kernels if kernel["name"] == name), None)

        return instance.wait_until(known, f"{name} to be explained")

    def assertIsOriginal(self, shell, phrase, name="scale"):
        instance.wait_until(
            lambda: self.kernel(shell, name)["reason"].startswith(phrase), f"{name} to be called {phrase}"
        )
        self.assertEqual(self.kernel(shell, name)["form"], "opaque")

    def assertBecomesPersistent(self, shell):
        def persistent():
            self.assertEqual(shell.ask("run", 20), "right")
            return self.kernel(shell)["form"] == "persistent"

        instance.wait_until(persistent, "a persistent form")
        self.assertNotIn("original form", self.kernel(shell)["reason"])

    def compiled_images(self):
        return list((self.scratch / "cache/gpuctl").glob("*.compiled"))

    def helper_is_at_work(self):
        """Whether there is a compile helper that was started for this test."""

        def is_ours(process):
            try:
                return (process / "comm").read_text().startswith("gpuslice-comp") and str(self.compiled).encode() in (
                    process / "environ"
                ).read_bytes()
            except OSError:  # it has ended
                return False

        return any(is_ours(process) for process in pathlib.Path("/proc").glob("[0-9]*"))

    def wait_until_kept(self):
        instance.wait_until(self.compiled_images, "what was compiled to be kept")

    def end(self, shell):
        """In good order; what it is held up by is another thread's affair."""
        shell.process.stdin.close()
        self.assertEqual(shell.process.wait(instance.PATIENCE_S), 0, shell.err())

    def test_launches_are_right_before_and_behind(self):
        for kind in ("module", "library"):
            with self.subTest(kind):
                self.compiled.unlink(missing_ok=True)
                for kept in self.compiled_images():
                    kept.unlink()
                shell = self.shell()
                self.assertEqual(shell.ask(kind, IMAGE), "ok")  # it is not compiled yet
                self.assertEqual(shell.ask("run", 20), "right")
                self.assertIsOriginal(shell, COMPILING)
                self.compiled.touch()
                self.assertBecomesPersistent(shell)
                self.assertEqual(shell.ask("run", 300), "right")
                self.assertEqual(shell.ask("unload"), "ok")
                self.end(shell)

    def test_the_next_start_takes_what_was_compiled(self):
        for kind, image in (("module", IMAGE), ("library", WITH_VARIABLE)):
            with self.subTest(kind):
                shell = self.shell()
                self.assertEqual(shell.ask(kind, image), "ok")
                before = len(self.compiled_images())
                self.compiled.touch()
                instance.wait_until(lambda: len(self.compiled_images()) > before, "what was compiled to be kept")
                self.end(shell)
                self.compiled.unlink()  # whoever compiles now does not end
                shell = self.shell()
                self.assertEqual(shell.ask(kind, image), "ok")
                self.assertEqual(shell.ask("run", 20), "right")
                self.assertEqual(self.kernel(shell)["form"], "persistent")

    def test_variables_exist_once(self):
        shell = self.shell()
        self.assertEqual(shell.ask("module", WITH_VARIABLE), "ok")
        self.assertEqual((shell.ask("add", 5), shell.ask("total")), ("ok", "5"))
        self.assertIsOriginal(shell, COMPILING, "add")
        self.compiled.touch()
        self.wait_until_kept()
        self.assertEqual((shell.ask("add", 7), shell.ask("total")), ("ok", "12"))
        self.assertIsOriginal(shell, NEXT_START, "add")
        self.end(shell)
        self.compiled.unlink()
        shell = self.shell()
        self.assertEqual(shell.ask("module", WITH_VARIABLE), "ok")
        self.assertEqual((shell.ask("add", 30), shell.ask("add", 5), shell.ask("total")), ("ok", "ok", "35"))
        self.assertEqual(self.kernel(shell, "add")["form"], "persistent")

    def test_nothing_is_loaded_beside_work_on_the_gpu(self):
        shell = self.shell()
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("hold"), "ok")
        self.compiled.touch()
        self.assertEqual(shell.ask("run", 20), "right")
        self.assertIsOriginal(shell, WAITING)
        deadline = time.monotonic() + 1.5  # long enough for the library to hold up a launch for it, in vain
        while time.monotonic() < deadline:
            self.assertEqual(shell.ask("run", 20), "right")
        self.assertIsOriginal(shell, WAITING)
        self.assertEqual(shell.ask("release"), "ok")
        self.assertBecomesPersistent(shell)

    def test_nothing_is_loaded_while_a_stream_waits_for_the_host(self):
        """The host function may wait for the thread that would load, and the driver for the host function."""
        shell = self.shell()
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.assertEqual(shell.ask("wait"), "ok")
        self.compiled.touch()
        self.assertIsOriginal(shell, WAITING)
        deadline = time.monotonic() + 1.5  # long enough for the library to hold up a launch for it, in vain
        while time.monotonic() < deadline:
            self.assertEqual(shell.ask("run", 20), "right")
        self.assertIsOriginal(shell, WAITING)
        self.assertEqual(shell.ask("go"), "ok")
        self.assertBecomesPersistent(shell)

    def test_the_functions_of_launched_kernels_are_loaded_with_the_image(self):
        shell = self.shell(CUDA_MODULE_LOADING="LAZY")
        for kind in ("module", "library"):
            with self.subTest(kind):
                self.compiled.unlink(missing_ok=True)
                for kept in self.compiled_images():
                    kept.unlink()
                self.assertEqual(shell.ask(kind, IMAGE), "ok")
                self.assertEqual(shell.ask("more"), "ok")
                self.assertEqual(shell.ask("run", 20), "right")
                self.assertIsOriginal(shell, COMPILING)  # and not what was said of the other kind
                self.compiled.touch()
                self.assertBecomesPersistent(shell)
                self.assertEqual(shell.ask("wait"), "ok")
                self.assertEqual(shell.ask("more"), "ok")
                self.assertEqual(shell.ask("run", 20), "right")
                self.assertEqual(shell.ask("go"), "ok")
                self.assertEqual(shell.ask("unload"), "ok")

    def test_attributes_set_before_count_behind(self):
        shell = self.shell()
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("shared", 100_000), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.compiled.touch()
        self.assertBecomesPersistent(shell)

    def test_unloaded_while_it_is_compiled(self):
        shell = self.shell()
        for kind in ("module", "library"):
            self.assertEqual(shell.ask(kind, IMAGE), "ok")
            self.assertEqual(shell.ask("run", 20), "right")
            self.assertEqual(shell.ask("unload"), "ok")
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.compiled.touch()
        self.assertBecomesPersistent(shell)
        self.assertEqual(len(self.compiled_images()), 1)

    def test_a_forked_child_ends_by_itself(self):
        shell = self.shell()
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("fork"), "0")  # nothing is compiled yet: it did not wait for that
        self.assertEqual(shell.ask("run", 20), "right")
        self.assertIsOriginal(shell, COMPILING)
        self.compiled.touch()
        self.assertBecomesPersistent(shell)

    def test_a_program_ends_though_the_helper_has_not(self):
        debug = self.scratch / "debug"
        shell = self.shell(GPUSLICE_DEBUG=str(debug))
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.end(shell)
        self.assertEqual(self.compiled_images(), [])
        self.compiled.touch()  # from here on the helper can end
        self.wait_until_kept()

    def test_programs_that_start_together_compile_once(self):
        shells = [self.shell() for _ in range(3)]
        for shell in shells:
            self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.compiled.touch()
        for shell in shells:
            self.assertBecomesPersistent(shell)
        self.assertEqual(len(self.compiled_images()), 1)

    def test_without_a_helper_kernels_keep_their_original_form(self):
        shell = self.shell(GPUSLICE_COMPILE_HELPER="/nowhere/gpuslice-compile")
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.assertIsOriginal(
            shell, "original form: its persistent form was not compiled: the compile helper ended without an answer"
        )

    def test_who_would_rather_wait(self):
        shell = self.shell(GPUSLICE_BACKGROUND="0")
        shell.process.stdin.write(f"module {IMAGE}\n")
        shell.process.stdin.flush()
        instance.wait_until(self.helper_is_at_work, "the compile helper")
        self.assertEqual(self.compiled_images(), [])
        self.compiled.touch()
        self.assertEqual(shell.answer("module"), "ok")
        self.assertEqual(shell.ask("run", 20), "right")
        self.assertEqual(self.kernel(shell)["form"], "persistent")

    def test_without_a_cache_forms_with_variables_are_of_no_use(self):
        self.compiled.touch()
        shell = self.shell(GPUSLICE_CACHE="0")
        self.assertEqual(shell.ask("module", WITH_VARIABLE), "ok")
        self.assertEqual((shell.ask("add", 5), shell.ask("total")), ("ok", "5"))
        self.assertIsOriginal(
            shell, "original form: its module has variables, and its persistent form could not be kept", "add"
        )

    def test_without_a_cache_other_forms_come_all_the_same(self):
        shell = self.shell(GPUSLICE_CACHE="0")
        self.assertEqual(shell.ask("module", IMAGE), "ok")
        self.compiled.touch()
        self.assertBecomesPersistent(shell)


if __name__ == "__main__":
    instance.main()
