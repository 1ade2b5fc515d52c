"""What gpuctl-exporter serves: as docs/metrics.md says, and to a real Prometheus where there is one."""

import copy
import http.server
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from tests.system.harness import instance, pages

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/metrics.md"
RULES = ROOT / "share/prometheus/gpuctl.rules.yml"
UNIT = ROOT / "packaging/debian/gpuctl-exporter.service"
MANUAL = ROOT / "man/gpuctl-exporter.1"
DASHBOARD = ROOT / "share/grafana/gpuctl.json"
RENDER = ROOT / "share/grafana/render.py"
SCHEMA = pathlib.Path(__file__).with_name("grafana_dashboard.schema.json")
OPEN_METRICS = "application/openmetrics-text; version=1.0.0"
sys.path.append(str(instance.BUILD / "tools"))  # scripts/bootstrap.sh: kubernetes-validate brings jsonschema
HAS_SCHEMAS = importlib.util.find_spec("jsonschema") is not None


def has_client(python):
    return subprocess.run([python, "-c", "import prometheus_client"], capture_output=True).returncode == 0


# Debian's Python has the library from a package; another one may have it too.
PYTHON = next((one for one in ("/usr/bin/python3", sys.executable) if os.path.exists(one) and has_client(one)), None)


def documented():
    """Names as the page has them, with their types."""
    return dict(re.findall(r"^\| `(gpuctl_\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE))


def queryable():
    """Names that Prometheus has for what the page has: a histogram has three, and none of its own."""
    kinds = {"histogram": ("_bucket", "_count", "_sum")}
    return {name + end for name, kind in documented().items() for end in kinds.get(kind, ("",))}


def used(text):
    """Names of our metrics in an expression."""
    return set(re.findall(r"\bgpuctl_\w+", text))


class Pages(unittest.TestCase):
    def test_alerts_use_what_is_exported_and_each_has_its_runbook(self):
        text = RULES.read_text()
        expressions = " ".join(re.findall(r"expr: (.*)", text))
        self.assertLessEqual(used(expressions), queryable())
        alerts = re.findall(r"alert: (\w+)", text)
        self.assertEqual(re.findall(r"runbook_url: docs/metrics.md#(\w+)", text), [name.lower() for name in alerts])
        self.assertEqual(re.findall(r"^### (\w+)", PAGE.read_text(), re.MULTILINE), alerts)

    def test_the_service_takes_its_options_from_where_the_pages_say(self):
        text = UNIT.read_text()
        (file,) = re.findall(r"^EnvironmentFile=-(\S+)$", text, re.MULTILINE)
        (options,) = re.findall(r"^ExecStart=/usr/bin/gpuctl-exporter \$(\w+)$", text, re.MULTILINE)
        for page in (PAGE, MANUAL):
            self.assertIn(file, page.read_text())
            self.assertIn(f'{options}="--listen 0.0.0.0:9836"', page.read_text())

    def test_the_dashboard_uses_what_is_exported(self):
        board = json.loads(DASHBOARD.read_text())
        expressions = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
        self.assertGreater(len(expressions), 5)
        self.assertLessEqual(used(" ".join(expressions)), queryable())

    def test_panels_of_the_dashboard_have_their_own_ids_and_places(self):
        panels = json.loads(DASHBOARD.read_text())["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = {}
        for panel in panels:
            x, y, w, h = (panel["gridPos"][key] for key in "xywh")
            self.assertLessEqual(x + w, 24, panel["title"])
            for cell in ((column, row) for column in range(x, x + w) for row in range(y, y + h)):
                self.assertNotIn(cell, taken, f"{panel['title']} is on {taken.get(cell)}")
                taken[cell] = panel["title"]

    @unittest.skipUnless(HAS_SCHEMAS, "no jsonschema (Debian: python3-jsonschema)")
    def test_the_dashboard_is_as_its_schema_has_it(self):
        import jsonschema

        board, schema = json.loads(DASHBOARD.read_text()), json.loads(SCHEMA.read_text())
        jsonschema.validate(board, schema)
        for number, panel in enumerate(board["panels"]):
            for path, wrong in (
                (("type",), "timeserie"),
                (("gridPos", "w"), 25),
                (("fieldConfig", "defaults", "unit"), "second"),
                (("options", "legends"), {}),
                (("targets", 0, "expression"), "up"),
                (("targets", 0, "expr"), ""),
                (("datasource", "uid"), "of one machine"),
            ):
                with self.subTest(panel=panel["title"], path=path):
                    spoilt = copy.deepcopy(board)
                    *outer, last = path
                    part = spoilt["panels"][number]
                    for key in outer:
                        part = part[key]
                    part[last] = wrong
                    with self.assertRaises(jsonschema.ValidationError):
                        jsonschema.validate(spoilt, schema)


def drawn(svg):
    """Of each panel that share/grafana/render.py drew: its texts, and how many lines and cells it has."""
    name = "{http://www.w3.org/2000/svg}"
    panels = {}
    for panel in xml.etree.ElementTree.parse(svg).iter(name + "svg"):
        if panel.get("class") == "panel":
            texts = ["".join(one.itertext()) for one in panel.iter(name + "text")]
            kinds = [one.get("class") for one in panel.iter()]
            panels[panel.findtext(name + "title")] = texts[1:], kinds.count("line"), kinds.count("cell")
    return panels


class Drawing(unittest.TestCase):
    """share/grafana/render.py, of what a server says that stands for a Prometheus."""

    def setUp(self):
        self.said, self.asked = {}, []
        test = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(url.query))
                test.asked.append((url.path, query["query"]))
                status, result = 200, []
                for metric, of in test.said.items():
                    if metric in query["query"]:
                        status, result = of(query)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps({"data": {"result": result}, "error": "said no"}).encode())

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def render(self):
        with tempfile.TemporaryDirectory() as scratch:
            svg = pathlib.Path(scratch) / "panels.svg"
            url = f"http://127.0.0.1:{self.server.server_port}/"
            done = subprocess.run([sys.executable, str(RENDER), url, str(svg)], capture_output=True, text=True)
            return done, drawn(svg) if svg.exists() else {}

    def say(self, metric, *series):
        """series: labels and values, which are a step apart and end now."""

        def of(query):
            if "time" in query:
                return 200, [
                    {"metric": labels, "value": [float(query["time"]), value]} for labels, (*_, value) in series
                ]
            end, step = float(query["end"]), float(query["step"])
            times = [
                [[end - step * (len(values) - 1 - n), value] for n, value in enumerate(values)] for _, values in series
            ]
            return 200, [{"metric": labels, "values": at} for (labels, _), at in zip(series, times)]

        self.said[metric] = of

    def test_each_type_of_panel(self):
        self.say("gpuctl_up", ({}, ["1", "0"]))
        self.say("gpuctl_mps_info", ({"slice": "(others)", "state": "ready"}, ["1"]))
        self.say("sm_seconds_total", ({"slice": "a<b"}, ["2", "NaN", "4"]), ({"slice": "idle"}, ["0", "0", "0"]))
        self.say("slice_memory_bytes", ({"slice": "s", "gpu": "1"}, [str(3 << 29)]))
        took = [("+Inf", ["2", "5"]), ("0.001", ["2", "2"]), ("0.01", ["2", "5"])]
        self.say('burst_seconds_bucket{instance=~".*",slice="/"}', *(({"le": le}, values) for le, values in took))
        done, panels = self.render()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with_data = {
            "gpuctld": (["no"], 0, 0),
            "MPS": (["(others): ready"], 0, 0),
            "SMs at work": (["4", "a<bidle"], 2, 0),
            "Memory": (["1.5 GiB", "s on 1"], 1, 0),
            "Bursts, all slices": (["up to 0.001 s", "up to 0.01 s"], 0, 3),
        }
        titles = [panel["title"] for panel in json.loads(DASHBOARD.read_text())["panels"]]
        self.assertEqual(panels, {title: with_data.get(title, (["no data"], 0, 0)) for title in titles})

    def test_variables_are_those_of_the_dashboard(self):
        self.render()
        self.assertIn(("/api/v1/query_range", 'sum(gpuctl_notes{instance=~".*"})'), self.asked)
        self.assertIn(
            ("/api/v1/query_range", 'rate(gpuctl_slice_launches_total{instance=~".*"}[1m])'),
            self.asked,
        )
        self.assertEqual([query for _, query in self.asked if "$" in query], [])

    def test_what_is_refused_is_said(self):
        self.said["evictions_total"] = lambda query: (400, [])
        done, panels = self.render()
        self.assertEqual((done.returncode, panels), (1, {}))
        self.assertRegex(done.stderr, r"^panel Evictions: .*said no")


def series(name, values, **labels):
    """Of Prometheus, which scrapes each minute: "0+1x5" is 0, 1 ... 5, "_" a scrape without it."""
    labels = {"instance": "a", "job": "gpuctl"} | labels
    return {"series": name + "{" + ",".join(f'{key}="{of}"' for key, of in labels.items()) + "}", "values": values}


def fires(alert, severity, summary, **labels):
    annotations = {"summary": summary, "runbook_url": f"docs/metrics.md#{alert.lower()}"}
    return {"exp_labels": {"severity": severity} | labels, "exp_annotations": annotations}


@unittest.skipIf(shutil.which("promtool") is None, "no promtool (Debian: prometheus)")
class Alerts(unittest.TestCase):
    """Each fires when what it says has lasted for its time, not before, and not beside it."""

    def check(self, alert, at, *given):
        """given: series, then which alerts fire in which of the minutes `at`; in the others none does."""
        *given, expected = given
        tests = [
            {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": expected.get(minute, [])} for minute in at
        ]
        whole = {
            "rule_files": [str(RULES)],
            "tests": [{"interval": "1m", "input_series": given, "alert_rule_test": tests}],
        }
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:  # JSON is YAML
            json.dump(whole, file)
            file.flush()
            done = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def down(self, instance):
        return fires(
            "GpuctlDown", "critical", f"gpuctld does not answer on {instance}", instance=instance, job="gpuctl"
        )

    def test_a_daemon_is_down(self):
        given = [series("up", "1x9"), series("gpuctl_up", "1 0x8"), series("gpuctl_up", "1x9", instance="b")]
        self.check("GpuctlDown", (1, 2), *given, {2: [self.down("a")]})

    def test_one_exporter_of_two_is_dead(self):
        given = [series("up", "1 0x9"), series("gpuctl_up", "1 stale")]
        given += [series("up", "1x9", instance="b"), series("gpuctl_up", "1x9", instance="b")]
        self.check("GpuctlDown", (1, 2), *given, {2: [self.down("a")]})

    def test_all_exporters_are_dead(self):
        given = [series("up", "0x9", instance=one) for one in "ab"]
        self.check("GpuctlDown", (0, 1), *given, {1: [self.down("a"), self.down("b")]})

    def test_none_is_scraped(self):
        none = fires("GpuctlDown", "critical", "gpuctld does not answer on any machine, as none is scraped")
        self.check("GpuctlDown", (0, 1), {1: [none]})
        named = [series("up", "1x9", job="gpus"), series("gpuctl_up", "1x9", job="gpus")]
        self.check("GpuctlDown", (5,), *named, {})

    def test_limits_by_turns(self):
        gpu = {"gpu": "0", "UUID": "GPU-0", "model": "H100", "kind": "cuda", "mode": "time-sliced"}
        info = series("gpuctl_gpu_info", "1x20", **gpu)
        expected = fires(
            "GpuctlLimitsByTurns",
            "warning",
            "GPU 0 has reserves, and they keep no SMs because MPS does not run",
            instance="a",
            job="gpuctl",
            **gpu,
        )
        reserve = [series("gpuctl_slice_reserve_sms", f"{sms}x20", slice=name) for name, sms in (("/", 0), ("ls", 8))]
        self.check("GpuctlLimitsByTurns", (9, 10), info, *reserve, {10: [expected]})
        of_another = series("gpuctl_slice_reserve_sms", "8x20", slice="ls", instance="b")
        self.check("GpuctlLimitsByTurns", (15,), info, of_another, {})

    def test_notes(self):
        expected = fires("GpuctlNote", "info", "gpuctl status on a has 2 notes", instance="a", job="gpuctl")
        self.check("GpuctlNote", (9, 10), series("gpuctl_notes", "2x20"), {10: [expected]})

    def test_faults(self):
        """At once, and until they are ten minutes ago."""
        expected = fires(
            "GpuctlFaults",
            "warning",
            "A program in slice s lost its GPU context",
            instance="a",
            job="gpuctl",
            slice="s",
        )
        given = series("gpuctl_slice_faults_total", "0x4 1x20", slice="s")
        self.check("GpuctlFaults", (4, 5, 14, 15), given, {5: [expected], 14: [expected]})

    def test_starved(self):
        expected = fires(
            "GpuctlStarved", "warning", "Slice s has work and no SMs", instance="a", job="gpuctl", slice="s"
        )
        demand = series("gpuctl_slice_demand_sms", "8x9", slice="s")
        for granted, at in (("0x9", 2), ("0 0 2 0x9", 5)):
            given = [demand, series("gpuctl_slice_granted_sms", granted, slice="s")]
            self.check("GpuctlStarved", (at - 1, at), *given, {at: [expected]})

    def test_the_limit_of_each_gpu_counts(self):
        given = [
            series(f"gpuctl_slice_{name}", f"{n}x20", slice="s", gpu=str(gpu), UUID=f"GPU-{gpu}")
            for name, of_gpus in (("memory_bytes", (24, 24)), ("memory_max_bytes", (80, 25)))
            for gpu, n in enumerate(of_gpus)
        ]
        expected = fires(
            "GpuctlMemoryNearLimit",
            "warning",
            "Slice s holds 96% of the memory that it may have on GPU 1",
            instance="a",
            job="gpuctl",
            slice="s",
            gpu="1",
            UUID="GPU-1",
        )
        self.check("GpuctlMemoryNearLimit", (9, 10), *given, {10: [expected]})


@unittest.skipIf(PYTHON is None, "no Python with prometheus_client (Debian: python3-prometheus-client)")
class UnequalGpus(unittest.TestCase):
    def test_memory_has_the_limit_of_each(self):
        script = """
from gpuctl import exporter
from gpuctl.model import Device, Slice, SliceOnGpu, Snapshot
devices = [Device(index=0, uuid="GPU-a", memory_bytes=80), Device(index=1, uuid="GPU-b", memory_bytes=24)]
half = [SliceOnGpu(0, memory_max=40, memory_min=4), SliceOnGpu(1, memory_max=12, memory_min=2)]
one = [SliceOnGpu(0, memory_max=16), SliceOnGpu(1)]
same = [SliceOnGpu(0, memory_max=10, same=True, memory=5)]
slices = [Slice("half", on_gpus=half), Slice("one", on_gpus=one)]
slices += [Slice("same", memory_max=20, memory_high=10, on_gpus=same)]
for family in exporter._of_memory_settings(Snapshot(devices=devices, slices=slices)):
    for sample in family.samples:
        print(family.name.removeprefix("gpuctl_slice_memory_"), *sample.labels.values(), sample.value)
"""
        done = subprocess.run(
            [PYTHON, "-c", script],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
        )
        self.assertEqual(
            [line for line in done.stdout.splitlines() if not line.endswith(" 0")],
            [
                "min_bytes half 0 GPU-a 4",
                "min_bytes half 1 GPU-b 2",
                "max_bytes half 0 GPU-a 40",
                "max_bytes half 1 GPU-b 12",
                "max_bytes one 0 GPU-a 16",
                "max_bytes same 0 GPU-a 20",
                "max_bytes same 1 GPU-b 20",
                "high_bytes same 0 GPU-a 10",
                "high_bytes same 1 GPU-b 10",
            ],
            done.stderr,
        )


@unittest.skipIf(PYTHON is None, "no Python with prometheus_client (Debian: python3-prometheus-client)")
class Said(unittest.TestCase):
    """What becomes of what a daemon says."""

    def samples(self, script):
        show = """
def show(*families):
    for family in families:
        for sample in family.samples:
            print(sample.name, *sample.labels.values(), sample.value)
"""
        done = subprocess.run(
            [PYTHON, "-c", "from gpuctl import exporter, model\n" + show + script],
            env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_latencies_are_cumulative(self):
        said = self.samples("""
took = [{"to_us": 16.384, "count": 3}, {"to_us": 65.536, "count": 4}, {"to_us": 137438953.472, "count": 1}]
one = model.read_slice({"path": "a", "totals": {"sm_seconds": 2.5, "latency_seconds": 129.5, "latency": took}})
show(exporter._took([one, model.Slice("idle")]))
""")
        bounds = [line.split()[2] for line in said if "_bucket" in line]
        self.assertEqual((len(bounds), bounds[0], bounds[-2:]), (24, "1.6384e-05", ["68.719476736", "+Inf"]))
        name = "gpuctl_slice_burst_seconds"
        self.assertEqual(
            said[:4],
            [f"{name}_bucket a {le} {n}" for le, n in zip(bounds[:4], (3, 3, 7, 7), strict=True)],
        )
        self.assertEqual(said[-3:], [f"{name}_bucket a +Inf 8", f"{name}_count a 8", f"{name}_sum a 129.5"])

    def test_mps_of_all_and_of_an_isolated_slice(self):
        said = self.samples("""
mps = [{"state": "ready", "programs": 0}, {"slice": "ls", "state": "ours", "programs": 2}]
show(*exporter._of_mps(model.read_status({"mps": mps})), *exporter._of_mps(model.Status()))
""")
        self.assertEqual(
            said,
            [
                "gpuctl_mps_info  ready 1",
                "gpuctl_mps_info ls ours 1",
                "gpuctl_mps_programs  0",
                "gpuctl_mps_programs ls 2",
            ],
        )


@unittest.skipIf(PYTHON is None, "no Python with prometheus_client (Debian: python3-prometheus-client)")
class Exporter(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--priority", 7)
        memory = ("--memory-max", "1G", "--memory-high", "900M", "--memory-min", "1M")
        self.gpuctl("create-slice", "batch", "--max", 4, *memory)
        self.gpuctl("create-slice", "batch/below")
        self.exporter = subprocess.Popen(
            [PYTHON, "-m", "gpuctl.exporter", "--listen", "127.0.0.1:0"],
            env={**self.env, "PYTHONPATH": str(ROOT / "python")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(self.end_exporter)
        self.url = self.exporter.stdout.readline().strip()

    def end_exporter(self):
        self.exporter.kill()
        self.exporter.communicate()

    def test_the_commands_of_pages_serve_where_they_say(self):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("0.0.0.0", 9836))
            except OSError:
                self.skipTest("another program has the port 9836")
        for page, command in pages.run_by("metrics"):
            with self.subTest(page=page, command=command):
                self.end_exporter()
                self.exporter = subprocess.Popen(
                    [PYTHON, ROOT / "packaging" / command.split()[0], *shlex.split(command)[1:]],
                    env={**self.env, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                self.assertTrue(self.exporter.stdout.readline())
                self.url = "http://127.0.0.1:9836/metrics"
                self.assertIn("gpuctl_up 1.0\n", self.get()[1])

    def get(self, accept="text/plain"):
        with urllib.request.urlopen(urllib.request.Request(self.url, headers={"Accept": accept}), timeout=60) as reply:
            return reply.headers["Content-Type"], reply.read().decode()

    def values(self):
        samples = re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", self.get()[1], re.MULTILINE)
        return {(name, labels.replace('"', "")): float(value) for name, labels, value in samples}

    def test_what_is_exported_is_documented(self):
        """With a program, so that nothing is left out."""
        program = self.start_program("batch")
        self.addCleanup(program.kill)
        instance.wait_until(lambda: "gpuctl_slice_latency_seconds{" in self.get()[1], "its first bursts")
        _, text = self.get(OPEN_METRICS)
        exported = {}
        for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE):
            exported[name + {"counter": "_total", "info": "_info"}.get(kind, "")] = kind
        self.assertEqual(exported, documented())
        labels = dict(re.findall(r"^(gpuctl_\w+?)(?:_bucket)?\{(.*)\} ", text, re.MULTILINE))
        self.assertNotIn("gpuctl_slice_energy_joules_total", labels, "the software GPU counts none")
        labels["gpuctl_slice_energy_joules_total"] = "slice="
        self.assertNotIn("gpuctl_mps_info", labels, "the software GPU needs no MPS")
        labels |= {"gpuctl_mps_info": "slice=,state=", "gpuctl_mps_programs": "slice="}
        for name, of_page in re.findall(r"^\| `(gpuctl_\w+)` \| \w+ \| (.*?) \|", PAGE.read_text(), re.MULTILINE):
            said = re.findall(r"(\w+)=", labels.get(name, ""))
            self.assertCountEqual(said, re.findall(r"`(\w+)`", of_page), name)

    def start_program(self, name):
        program = self.start_bench(name, "work", "--blocks", 8, "--seconds", 600, "--arrival", "periodic")
        instance.wait_until(lambda: self.clients(name), "it to be there")
        return program

    def test_both_formats(self):
        kind, text = self.get()
        self.assertTrue(kind.startswith("text/plain"), kind)
        self.assertIn("# TYPE gpuctl_slice_launches_total counter", text)
        kind, text = self.get(OPEN_METRICS)
        self.assertTrue(kind.startswith("application/openmetrics-text"), kind)
        self.assertTrue(text.endswith("# EOF\n"))

    def test_values(self):
        program = self.start_program("batch/below")
        instance.wait_until(
            lambda: (self.usage("batch/below", program.pid) or {"launches": 0})["launches"] > 3, "some launches"
        )
        values = self.values()
        self.assertEqual(values["gpuctl_up", ""], 1)
        self.assertEqual(values["gpuctl_slice_reserve_sms", "slice=ls"], 2)
        self.assertEqual(values["gpuctl_slice_priority", "slice=ls"], 7)
        self.assertEqual(values["gpuctl_slice_max_sms", "slice=batch"], 4)
        self.assertNotIn(("gpuctl_slice_max_sms", "slice=ls"), values)
        for name, expected in (("max", 1 << 30), ("high", 900 << 20), ("min", 1 << 20)):
            of_gpus = {
                labels: value for (one, labels), value in values.items() if one == f"gpuctl_slice_memory_{name}_bytes"
            }
            self.assertEqual(
                [of_gpus[labels] for labels in of_gpus if labels.endswith("slice=batch")], [expected], name
            )
        self.assertEqual(values["gpuctl_slice_programs", "slice=batch"], 0)
        self.assertEqual(values["gpuctl_slice_programs", "slice=batch/below"], 1)
        self.assertGreater(values["gpuctl_slice_launches_total", "slice=batch"], 3, "what is below counts")
        self.assertEqual(values["gpuctl_slice_sm_seconds_total", "slice=ls"], 0)
        used = "gpuctl_slice_sm_seconds_total", "slice=batch"
        instance.wait_until(lambda: self.values()[used] > 0, "SM seconds, which count every ten seconds")
        took = "gpuctl_slice_burst_seconds_bucket", "le=+Inf,slice=batch"
        instance.wait_until(lambda: self.values().get(took, 0) > 0, "the first bursts")
        held = {labels: value for (name, labels), value in values.items() if name == "gpuctl_slice_memory_bytes"}
        self.assertGreater(next(v for labels, v in held.items() if "slice=batch," in labels + ","), 0)
        self.gpuctl("freeze", "batch")
        for metric in ("gpuctl_slice_waiting_seconds_total", "gpuctl_slice_stalled_seconds_total"):
            instance.wait_until(lambda metric=metric: self.values()[metric, "slice=batch"] > 0, metric)
        self.assertRegex(self.gpuctl("show", "batch").stdout, r"\nwaiting +some \d+\.\d % of 10 s, .*\n +full \d")
        self.gpuctl("thaw", "batch")
        program.stop()
        instance.wait_until(lambda: self.values()["gpuctl_slice_ended_programs_total", "slice=batch"] == 1, "its end")
        after = self.values()
        before = values["gpuctl_slice_launches_total", "slice=batch"]
        self.assertGreaterEqual(after["gpuctl_slice_launches_total", "slice=batch"], before, "a counter never falls")

    def test_a_program_that_is_moved_takes_nothing_along(self):
        def launches(name):
            return self.values()["gpuctl_slice_launches_total", f"slice={name}"]

        program = self.start_program("batch/below")
        instance.wait_until(lambda: launches("batch/below") > 20, "some launches")
        before = self.values()
        self.gpuctl("move", program.pid, "ls")
        after = self.values()
        seen = self.usage("ls", program.pid)["launches"]
        totals = [one for one in before if one[0].endswith("_total")]
        self.assertEqual({one: (before[one], after[one]) for one in totals if after[one] < before[one]}, {})
        there, of_former = ("gpuctl_slice_launches_total", "slice=ls"), ("gpuctl_slice_launches_total", "slice=batch")
        self.assertLessEqual(after[there], seen - before[of_former], "only what it launched meanwhile")
        instance.wait_until(lambda: launches("ls") > after[there], "more launches")
        self.assertEqual(self.values()[of_former], after[of_former])
        self.assertEqual(after["gpuctl_slice_ended_programs_total", "slice=batch"], 0)

    def test_which_gpus_programs_of_a_slice_see(self):
        self.gpuctl("set", "ls", "devices=7")
        seen = {labels: value for (name, labels), value in self.values().items() if name == "gpuctl_slice_sees_gpu"}
        slices = {labels.split(",")[-1].removeprefix("slice="): value for labels, value in seen.items()}
        self.assertEqual(slices, {"/": 1, "batch": 1, "batch/below": 1, "ls": 0})

    def test_without_a_daemon_it_says_so(self):
        self.daemon.kill()
        self.assertEqual(self.values(), {("gpuctl_up", ""): 0})
        self.start_daemon()
        self.assertEqual(self.values()["gpuctl_up", ""], 1)

    def test_a_daemon_that_hangs_or_talks_nonsense_is_down(self):
        os.kill(self.daemon.pid, signal.SIGSTOP)
        try:
            self.assertEqual(self.values(), {("gpuctl_up", ""): 0})
        finally:
            os.kill(self.daemon.pid, signal.SIGCONT)
        self.daemon.kill()
        self.socket.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.socket))
            listener.listen(1)
            for nonsense in (
                b"\xff\0",
                b"[]\0",
                b'{"parameters": 3}\0',
                b'{"parameters": {}}\0',
                b"[" * 100000 + b"\0",
            ):
                with self.subTest(nonsense=nonsense[:20]):
                    answer = threading.Thread(target=self.say, args=(listener, nonsense))
                    answer.start()
                    self.assertEqual(self.values(), {("gpuctl_up", ""): 0})
                    answer.join()

    def say(self, listener, text):
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(text)
            connection.recv(65536)

    @unittest.skipIf(shutil.which("promtool") is None, "no promtool (Debian: prometheus)")
    def test_promtool_has_nothing_to_say(self):
        for command, given in (
            (["check", "metrics"], self.get()[1]),
            (["check", "rules", str(RULES)], None),
        ):
            done = subprocess.run(["promtool", *command], input=given, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def start_prometheus(self, rules):
        """Its URL. It scrapes the exporter once a second."""
        config = self.scratch / "prometheus.yml"
        of_page = pages.block("metrics", "rule_files:")
        for there, here in (
            ("/usr/share/gpuctl/prometheus/gpuctl.rules.yml", str(rules)),
            ("127.0.0.1:9836", urllib.parse.urlsplit(self.url).netloc),
        ):
            self.assertIn(there, of_page)
            of_page = of_page.replace(there, here)
        config.write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n{of_page}")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        server = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self.scratch / 'tsdb'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        return f"http://127.0.0.1:{port}"

    @unittest.skipIf(shutil.which("prometheus") is None, "no prometheus (Debian: prometheus)")
    def test_the_panels_of_the_dashboard_draw_what_a_prometheus_has(self):
        program = self.start_program("batch/below")
        self.addCleanup(program.kill)
        url, svg = self.start_prometheus(RULES), self.scratch / "panels.svg"
        command = [sys.executable, str(RENDER), url, str(svg), "--minutes", "1", "--rate-interval", "5s"]

        def panels():
            done = subprocess.run(command, capture_output=True, text=True)
            return drawn(svg) if done.returncode == 0 else {"error": ([done.stderr], 0, 0)}

        def complete():
            empty = [title for title, (texts, _, _) in panels().items() if texts == ["no data"]]
            return empty == ["MPS"]  # the software GPU needs none

        instance.wait_until(complete, "all panels to have data", interval=0.5, told=panels)
        found = panels()
        self.assertEqual(found["gpuctld"], (["yes"], 0, 0))
        self.assertIn("batch/below", found["SMs at work"][0][-1])
        slices = re.findall("batch/below|batch|ls|/", found["Programs"][0][-1])
        self.assertEqual((sorted(slices), found["Programs"][1]), (["/", "batch", "batch/below", "ls"], 4))
        self.assertGreater(found["Bursts, p99"][1], 2)
        self.assertGreater(found["Bursts, all slices"][2], 0)

    @unittest.skipIf(shutil.which("prometheus") is None, "no prometheus (Debian: prometheus)")
    def test_a_prometheus_scrapes_it_and_its_alerts_fire(self):
        rules = self.scratch / "rules.yml"
        rules.write_text(RULES.read_text().replace("for: 1m", "for: 3s"))
        server = self.start_prometheus(rules)

        def ask(path):
            try:
                with urllib.request.urlopen(f"{server}/api/v1/{path}", timeout=10) as reply:
                    return json.load(reply)["data"]
            except OSError:
                return None

        def value(expression):
            said = ask("query?" + urllib.parse.urlencode({"query": expression}))
            return said["result"][0]["value"][1] if said and said["result"] else None

        instance.wait_until(lambda: value('gpuctl_slice_reserve_sms{slice="ls"}') == "2", "the first scrape")
        self.assertEqual(value("up{job='gpuctl'}"), "1")

        def fires():
            alerts = (ask("alerts") or {"alerts": []})["alerts"]
            down = [one for one in alerts if one["labels"]["alertname"] == "GpuctlDown" and one["state"] == "firing"]
            return [one["labels"].get("instance") for one in down]

        self.daemon.kill()
        target = urllib.parse.urlsplit(self.url).netloc
        instance.wait_until(lambda: fires() == [target], "the alert of a daemon that is gone to fire")
        self.start_daemon()
        instance.wait_until(lambda: fires() == [], "the alert to end")
        self.exporter.kill()
        instance.wait_until(lambda: fires() == [target], "the alert of an exporter that is gone to fire")


if __name__ == "__main__":
    instance.main()
