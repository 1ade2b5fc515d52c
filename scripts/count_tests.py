#!/usr/bin/env python3
"""Say how many tests the last `meson test` ran, and which took long: count_tests.py LOGS, LOGS being meson-logs of the
build directory. The last line holds the counts.

A GoogleTest program counts with each of its cases, any other test as one; what a Python test skips counts as skipped
beside it. A program that ended badly although none of its cases failed (it crashed, or ran out of time) counts as one
failure more. Exit status 1 when one failed or none ran.
"""

import json
import pathlib
import re
import sys
import xml.etree.ElementTree

SLOW_S = 10
SKIPPED_CASE = re.compile(r"\.\.\. skipped ['\"]")  # as unittest says it
GOOD = {"OK": "passed", "EXPECTEDFAIL": "passed", "SKIP": "skipped"}


def outcome_of_case(case):
    if case.find("failure") is not None or case.find("error") is not None:
        return "failed"
    if case.find("skipped") is not None or case.get("status") == "notrun":
        return "skipped"
    return "passed"


def cases_by_program(junit):
    """Outcomes of GoogleTest cases, by the test name that their suite's name carries: PROJECT.NAME.SUITE."""
    cases = {}
    for suite in xml.etree.ElementTree.parse(junit).getroot().iter("testsuite"):
        program = suite.get("name", "").partition(".")[2].rpartition(".")[0]
        cases.setdefault(program, []).extend(outcome_of_case(case) for case in suite.iter("testcase"))
    return cases


def main():
    logs = pathlib.Path(sys.argv[1])
    cases = cases_by_program(logs / "testlog.junit.xml")
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    slow = []
    for line in (logs / "testlog.json").read_text(encoding="utf-8").splitlines():
        test = json.loads(line)
        if test["duration"] > SLOW_S:
            slow.append((test["duration"], test["name"]))
        whole = GOOD.get(test["result"], "failed")
        outcomes = list(cases.get(test["name"]) or [whole])
        if whole == "passed":
            outcomes += ["skipped"] * len(SKIPPED_CASE.findall(test.get("stderr", "")))
        if whole == "failed" and "failed" not in outcomes:
            outcomes.append("failed")
        for outcome in outcomes:
            counts[outcome] += 1
    if slow:
        print("slow: " + ", ".join(f"{name} {seconds:.0f} s" for seconds, name in sorted(slow, reverse=True)))
    line = f"{counts['passed']} passed, {counts['failed']} failed"
    print(line + (f", {counts['skipped']} skipped" if counts["skipped"] else ""))
    return 0 if counts["failed"] == 0 and counts["passed"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
