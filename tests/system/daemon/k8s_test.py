"""gpuctl k8s resourceslice: what it prints is a ResourceSlice of resource.k8s.io/v1 as Kubernetes documents it, and as
its schemas have it where the Python package kubernetes-validate is."""

import importlib.util
import json
import pathlib
import re
import sys
import unittest

from tests.system.harness import instance

PAGE = pathlib.Path(__file__).resolve().parents[3] / "docs/kubernetes.md"
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
QUANTITY = re.compile(r"(\d+)(Mi)?")
MOST_DEVICES, MOST_FIELDS, MOST_TEXT = 128, 32, 64
sys.path.append(str(instance.BUILD / "tools"))  # scripts/bootstrap.sh
HAS_SCHEMAS = importlib.util.find_spec("kubernetes_validate") is not None


def amount(quantity):
    number, unit = QUANTITY.fullmatch(quantity).groups()
    return int(number) << (20 if unit else 0)


class ResourceSlices(instance.SystemTest):
    def setUp(self):
        super().setUp()
        self.start_daemon()

    def make_slices(self):
        self.gpuctl("create-slice", "batch", "--max", 6)
        self.gpuctl("create-slice", "batch/Train.one", "--memory-max", "100M")
        self.gpuctl("create-slice", "ls", "--reserve", 2, "--priority", 50)
        self.gpuctl("create-slice", "least", "--max", 1)
        self.gpuctl("create-slice", "none", "--max", 0)

    def printed(self):
        done = self.gpuctl("k8s", "resourceslice", "--node", "node-1", "--json")
        said = json.loads(done.stdout)
        self.assertEqual((said["apiVersion"], said["kind"]), ("v1", "List"))
        return said["items"], done.stderr

    def check_capacity(self, capacity):
        """A request that has no amount gets the default, and each is the least and a number of steps."""
        self.assertEqual(set(capacity), {"value", "requestPolicy"})
        policy = capacity["requestPolicy"]
        self.assertEqual(set(policy), {"default", "validRange"})
        bounds = {name: amount(quantity) for name, quantity in policy["validRange"].items()}
        self.assertLessEqual(set(bounds), {"min", "max", "step"})
        default, value = amount(policy["default"]), amount(capacity["value"])
        self.assertTrue(0 < bounds["min"] <= default <= bounds["max"] <= value, capacity)
        if "step" in bounds:
            self.assertLessEqual(bounds["min"] + bounds["step"], value)
            for one in (default, bounds["max"]):
                self.assertEqual((one - bounds["min"]) % bounds["step"], 0)

    def check(self, item):
        self.assertEqual(set(item), {"apiVersion", "kind", "metadata", "spec"})
        self.assertEqual((item["apiVersion"], item["kind"]), ("resource.k8s.io/v1", "ResourceSlice"))
        self.assertRegex(item["metadata"]["name"], rf"^{SUBDOMAIN.pattern}$")
        spec = item["spec"]
        self.assertEqual(set(spec), {"driver", "pool", "nodeName", "devices"})
        self.assertRegex(spec["driver"], rf"^{SUBDOMAIN.pattern}$")
        self.assertEqual(spec["nodeName"], "node-1")
        self.assertEqual(spec["pool"], {"name": "node-1", "generation": 1, "resourceSliceCount": 1})
        self.assertLessEqual(len(spec["devices"]), MOST_DEVICES)
        names = [device["name"] for device in spec["devices"]]
        self.assertEqual(len(set(names)), len(names))
        for device in spec["devices"]:
            with self.subTest(device["name"]):
                self.assertEqual(set(device), {"name", "attributes", "capacity", "allowMultipleAllocations"})
                self.assertRegex(device["name"], rf"^{LABEL.pattern}$")
                self.assertIs(device["allowMultipleAllocations"], True)
                fields = [*device["attributes"], *device["capacity"]]
                self.assertLessEqual(len(fields), MOST_FIELDS)
                for name in fields:
                    self.assertRegex(name, rf"^{IDENTIFIER.pattern}$")
                for value in device["attributes"].values():
                    ((kind, said),) = value.items()
                    self.assertIsInstance(said, {"string": str, "int": int}[kind])
                    self.assertLessEqual(len(str(said).encode()), MOST_TEXT)
                for capacity in device["capacity"].values():
                    self.check_capacity(capacity)

    def test_is_as_the_documentation_says(self):
        (whole,), _ = self.printed()
        self.check(whole)
        self.assertEqual([device["name"] for device in whole["spec"]["devices"]], ["gpu-0"])
        self.make_slices()
        (item,), notes = self.printed()
        self.check(item)
        sms = {device["name"]: device["capacity"]["sms"]["value"] for device in item["spec"]["devices"]}
        self.assertEqual(
            sms, {"gpu-0-batch--train-one-0256698c": "6", "gpu-0-least": "1", "gpu-0-ls": str(instance.SMS)}
        )
        self.assertEqual(notes, "note: slice 'none' is left out: it has no SMs\n")

    @unittest.skipUnless(HAS_SCHEMAS, "no schemas (PyPI: kubernetes-validate)")
    def test_is_as_the_schemas_of_kubernetes_say(self):
        import kubernetes_validate
        import yaml

        self.make_slices()
        (item,), _ = self.printed()
        text = self.gpuctl("k8s", "resourceslice", "--node", "node-1").stdout
        self.assertEqual(list(yaml.safe_load_all(text)), [item])
        (claim,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        for version in ("1.34", "1.36"):
            kubernetes_validate.validate(yaml.safe_load(claim), version, strict=True)
            kubernetes_validate.validate(item, version, strict=True)
            with self.assertRaises(kubernetes_validate.ValidationError):
                kubernetes_validate.validate({**item, "spec": {**item["spec"], "colour": "red"}}, version, strict=True)

    def test_what_is_asked_wrongly(self):
        for words, said in (
            (("resourceslices",), "there is no 'resourceslices'; did you mean 'resourceslice'?"),
            (("resourceslice", "--node", "Node_1"), "--node: 'Node_1' has to be words of a-z"),
            (("resourceslice", "--driver", "x" * 64), "has to have 1 to 63 characters"),
        ):
            done = self.gpuctl("k8s", *words, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    instance.main()
