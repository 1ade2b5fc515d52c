#!/usr/bin/env python3
"""What the documents point to is there: relative links and their sections, sections that are cited, and files named in
backticks."""

import itertools
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("src", "softgpu", "docs", "scripts", "bench", "tests", "etc", "man")
PAGES = sorted(ROOT.glob("*.md")) + [page for folder in FOLDERS for page in sorted((ROOT / folder).rglob("*.md"))]
SOURCES = sorted(path for folder in ("src", "softgpu") for path in (ROOT / folder).rglob("*"))
ROOMS = ROOT / "src/libgpuslice"  # its files are named with their room

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CITED = re.compile(r'(?:\]\(|\b)((?:\.\./)*(?:[\w-]+/)*[\w-]+\.md)\)?`?,[ \n/#*]*"([^"]+)"')
SPAN = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
BRACES = re.compile(r"\{([^{}]*)\}")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])")
PAGE_IN_SOURCE = re.compile(r"\bdocs/[\w/-]+\.md\b")


def text_of(page):
    return FENCE.sub("", page.read_text())


def anchors(text):
    """What a link can name after #: each heading without its punctuation, in small letters, and numbered if it comes
    again."""
    found = []
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        again = sum(one == anchor or re.fullmatch(re.escape(anchor) + r"-\d+", one) is not None for one in found)
        found.append(f"{anchor}-{again}" if again else anchor)
    return set(found)


def expanded(path):
    """a.{b,c} as a.b and a.c."""
    parts = BRACES.split(path)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(chosen) for chosen in itertools.product(*choices)]


def is_there(base, path):
    """Whether the path is there below base. Words of capitals stand for a name: scripts/NAME.sh."""
    if (base / path).exists():
        return True
    pattern = PLACEHOLDER.sub("*", path).rstrip("/")
    return "*" in pattern and any(base.glob(pattern))


def named_files(text):
    """Paths in backticks: (where they begin, path)."""
    rooms = {room.name for room in ROOMS.iterdir() if room.is_dir()}
    for span in SPAN.findall(text):
        path = span.split()[0].rstrip(",;:") if span.split() else ""
        first, slash, rest = path.partition("/")
        if not slash or "<" in path or "=" in path:
            continue
        for one in expanded(path):
            if first in FOLDERS and re.search(r"\.\w+$|/$", rest):
                yield ROOT, one
            elif first in rooms and re.search(r"\.(h|cc|inc|S)$", rest):
                yield ROOMS, one


class Links(unittest.TestCase):
    def test_there_are_pages(self):
        self.assertIn(ROOT / "docs/architecture.md", PAGES)
        self.assertTrue(any(page.parent.name == "design" for page in PAGES))
        self.assertTrue(any(page.parent.name == "history" for page in PAGES))

    def test_relative_links_lead_to_files_and_sections(self):
        for page in PAGES:
            for link in LINK.findall(text_of(page)):
                if re.match(r"[a-z]+:", link):
                    continue
                path, sharp, section = link.partition("#")
                target = page.parent / path if path else page
                with self.subTest(page=str(page.relative_to(ROOT)), link=link):
                    self.assertTrue(target.exists())
                    if sharp:
                        self.assertIn(section, anchors(text_of(target)))

    def test_files_in_backticks_exist(self):
        for page in PAGES:
            for base, path in named_files(text_of(page)):
                with self.subTest(page=str(page.relative_to(ROOT)), path=path):
                    self.assertTrue(is_there(base, path))

    def test_sections_that_pages_and_sources_cite_exist(self):
        sources = [path for path in SOURCES if path.suffix in (".h", ".cc", ".py", ".S")]
        found = 0
        for file in PAGES + sources:
            for name, section in CITED.findall(file.read_text()):
                beside, below = file.parent / name, ROOT / name
                page = beside if beside.exists() else below
                with self.subTest(file=str(file.relative_to(ROOT)), page=name, section=section):
                    self.assertTrue(page.exists())
                    self.assertIn(" ".join(re.sub(r"\s*\n\s*/*\s*", " ", section).split()), headings(page))
                found += 1
        self.assertGreater(found, 0)

    def test_pages_that_sources_name_exist(self):
        for path in SOURCES:
            if path.suffix in (".h", ".cc", ".py", ".S"):
                for name in PAGE_IN_SOURCE.findall(path.read_text()):
                    with self.subTest(file=str(path.relative_to(ROOT)), page=name):
                        self.assertTrue((ROOT / name).exists())

    def test_raw_data_is_cited(self):
        """By a page or a source, or by raw data that is; what has another ending beside such a file goes with it."""
        sources = [path for path in SOURCES if path.suffix in (".h", ".cc")]
        texts = [file.read_text() for file in PAGES + sources]
        left = sorted(path for path in (ROOT / "bench/results").iterdir())
        self.assertTrue(left)
        while texts:
            text = "\n".join(texts)
            cited = [path for path in left if re.search(rf"(?<![\w-]){re.escape(path.stem)}(?![\w-])", text)]
            texts = [path.read_text() for path in cited]
            left = [path for path in left if path not in cited]
        self.assertEqual([path.name for path in left], [])


class Reading(unittest.TestCase):
    """What the patterns above take for a link, a file, a section."""

    def test_braces_are_expanded(self):
        self.assertEqual(expanded("a.{b,c}"), ["a.b", "a.c"])
        self.assertEqual(expanded("a.b"), ["a.b"])

    def test_names_are_found_and_looked_for(self):
        found = list(named_files("`src/nowhere.cc`, `launch/nowhere.cc`, `build/x`, `scripts/measure.sh --steps X`"))
        self.assertEqual([path for _, path in found], ["src/nowhere.cc", "launch/nowhere.cc", "scripts/measure.sh"])
        self.assertEqual([is_there(*one) for one in found], [False, False, True])
        self.assertTrue(is_there(ROOT, "tests/house/NAME_test.py"))
        self.assertFalse(is_there(ROOT, "tests/house/NAME_tset.py"))

    def test_anchors(self):
        text = "# One `two`: three, four\n\ntext\n\n## [Five](six.md)\n\n## Five\n"
        self.assertEqual(anchors(text), {"one-two-three-four", "five", "five-1"})

    def test_citations_are_found(self):
        text = '[x](docs/a.md), "One". `docs/b.md`, "Two". (docs/c.md, "Three\n// Four")'
        self.assertEqual(
            CITED.findall(text), [("docs/a.md", "One"), ("docs/b.md", "Two"), ("docs/c.md", "Three\n// Four")]
        )


def headings(page):
    return set(HEADING.findall(text_of(page)))


if __name__ == "__main__":
    unittest.main()
