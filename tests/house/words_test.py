#!/usr/bin/env python3
"""How users' pages and the manual read: words, sentences, commit hashes, and words that nobody explains, in
`gpuctl --help` too.

It prints a line for each page. GPUCTL in the environment names the program; without it its help is not looked at. The
dictionary is that of the package wamerican, which scripts/bootstrap.sh installs; without it words are not looked at.
"""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER_PAGES = [
    page
    for name in ("README", "NEWS", *(f"docs/{page}" for page in ("modes", "limits", "compatibility", "security")))
    + ("docs/policies", "docs/reliability", "docs/benchmarks", "docs/metrics", "docs/tutorial", "docs/troubleshooting")
    + ("docs/containers", "docs/slurm", "docs/kubernetes", "docs/latency", "docs/comparison")
    if (page := ROOT / f"{name}.md").exists()
]
MANUAL = sorted(page for page in (ROOT / "man").iterdir() if re.fullmatch(r"\.[1-8]", page.suffix))
GLOSSARY = ROOT / "docs/glossary.md"
DICTIONARY = pathlib.Path("/usr/share/dict/american-english")

README_WORDS, README_LINES = 500, 90
LONGEST_SENTENCE, MEAN_SENTENCE = 30, 16  # words
ALL_LINES = 3000  # of docs/

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^ {4}.*$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`\n]*`")
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
END = re.compile(r"(?<=[.!?])[)*_\"]*\s+(?=[A-Z\"(*`\d])")
HASH = re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b")
WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")


def prose(text):
    """What people read of a page: code is one word, a link its text."""
    text = INDENTED.sub("", FENCE.sub("", text))
    return CODE.sub("CODE", LINK.sub(r"\1", text))


def blocks(text):
    """(block, whether it is a sentence of its own): paragraphs and items, and cells of tables, without headings."""
    block = []
    for line in [*prose(text).splitlines(), ""]:
        if line.startswith("|") or line.startswith("#") or not line.strip() or ITEM.match(line):
            if block:
                yield " ".join(block), True
            block = []
        if line.startswith("|"):
            yield from ((cell.strip(), False) for cell in line.strip("|").split("|") if cell.strip(" -"))
        elif line.strip() and not line.startswith("#"):
            block.append(ITEM.sub("", line).strip())


def sentences(text, of_tables):
    for block, whole in blocks(text):
        if whole or of_tables:
            yield from (part for part in END.split(block) if WORD.search(part))


def length(sentence):
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def mean(text):
    lengths = [length(sentence) for sentence in sentences(text, of_tables=False)]
    return sum(lengths) / len(lengths) if lengths else 0


def too_long(text):
    return [sentence for sentence in sentences(text, of_tables=True) if length(sentence) > LONGEST_SENTENCE]


def manual_text(page):
    """A manual page without its synopsis and its examples of code, as a user's page would have it."""
    command = ("mandoc", "-T", "markdown", page)
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("&nbsp;", " ")
    lines = []
    for line in made.partition("# DESCRIPTION")[2].splitlines():
        plain = re.sub(r"^[>\s]+", "", line).strip()
        apart = line.startswith("\t\t") or re.search(r"\S {2,}\S", plain)  # code, or a row of a table
        lines += [""] if apart else [plain]
    return "\n".join(lines)


def known_words():
    """In lower case: of the dictionary, and all that the glossary has."""
    glossary = CODE.sub(" ", GLOSSARY.read_text())
    return {word.lower() for text in (DICTIONARY.read_text(), glossary, " ".join(NAMES)) for word in WORD.findall(text)}


# Names of things that others have made, and what the dictionary lacks though everybody knows it.
NAMES = """
    ABRT cgroups containerd CRI Ctrl cuda Docker gdb gid glibc gpuctl gpuctld gpuslice HAMi HUP instantiated JAX JSON
    KAI libgpuslice Linux mbarriers metadata MIG musl namespace NCCL ncu neighbours nsys Numba nvcc NVIDIA NVML NVRTC
    ONNX pid podman profilers programmatic ptxas runc runtime sanitizer sanitizers seccomp SIGKILL SIGSTOP SIGTERM SiM
    SVG systemd timeout tmpfs TOML torchrun Triton uid wgmma XSched
""".split()


def unknown(text, known):
    """Words that neither the glossary nor a dictionary has; not code, nor names such as H100, CreateSlice."""
    found = set()
    for token in re.findall(r"[\w'./-]+", prose(text).replace("CODE", " ")):
        if re.search(r"[\d_/]|\.\w|[a-z][A-Z]", token):
            continue
        for word in WORD.findall(token):
            plain = word.lower().removesuffix("'s")
            forms = {plain, plain.removesuffix("s"), plain.removesuffix("es"), plain.removeprefix("un")}
            if len(plain) > 1 and not forms & known:
                found.add(word)
    return found


class Pages(unittest.TestCase):
    def test_readme_is_short(self):
        text = (ROOT / "README.md").read_text()
        self.assertLessEqual(len(text.split()), README_WORDS)
        self.assertLessEqual(len(text.splitlines()), README_LINES)

    def test_all_pages_together(self):
        lines = sum(len(page.read_text().splitlines()) for page in (ROOT / "docs").rglob("*.md"))
        print(f"docs/: {lines} lines")
        self.assertLess(lines, ALL_LINES)

    def test_sentences_are_short(self):
        for page in USER_PAGES:
            name, text = page.relative_to(ROOT), page.read_text()
            long = too_long(text)
            print(f"{name}: {len(text.split())} words, {mean(text):.1f} a sentence, {len(long)} long sentences")
            with self.subTest(page=str(name)):
                self.assertEqual(long, [])
                self.assertLessEqual(mean(text), MEAN_SENTENCE)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc here")
    def test_sentences_of_the_manual_are_short(self):
        for page in MANUAL:
            text = manual_text(page)
            print(f"{page.name}: {len(text.split())} words, {mean(text):.1f} a sentence")
            with self.subTest(page=page.name):
                self.assertGreater(len(text.split()), 100)
                self.assertEqual(too_long(text), [])
                self.assertLessEqual(mean(text), MEAN_SENTENCE)

    def test_no_page_of_users_names_a_commit(self):
        for page in USER_PAGES + MANUAL:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(HASH.findall(page.read_text()), [])

    @unittest.skipUnless(DICTIONARY.exists(), f"no {DICTIONARY}")
    def test_words_are_in_the_glossary_or_a_dictionary(self):
        known = known_words()
        for page in USER_PAGES:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(sorted(unknown(page.read_text(), known)), [])

    @unittest.skipUnless(DICTIONARY.exists() and "GPUCTL" in os.environ, "no dictionary, or no gpuctl")
    def test_words_of_help_too(self):
        def help_of(*verb):
            command = (os.environ["GPUCTL"], *verb, "--help")
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        known = known_words()
        verbs = re.findall(r"^  ([a-z-]+)  ", help_of().partition("Verbs:")[2].partition("Examples:")[0], re.MULTILINE)
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            with self.subTest(verb=verb):
                self.assertEqual(sorted(unknown(re.sub(" +", " ", help_of(verb)), known)), [])


class Reading(unittest.TestCase):
    """What the functions above take for a sentence, a hash, a word."""

    def test_sentences(self):
        text = (
            "# Head\n\nOne is `a b c`. Two (2.5 of it) is\nhere.\n\n- Three\n- Four.\n\n    code here\n\n"
            "| a | b. C |\n|---|---|\n"
        )
        self.assertEqual(
            list(sentences(text, of_tables=False)), ["One is CODE.", "Two (2.5 of it) is here.", "Three", "Four."]
        )
        self.assertIn("a", list(sentences(text, of_tables=True)))
        self.assertEqual(length("Two (2.5 of it) is - here."), 6)

    def test_a_long_sentence_is_found(self):
        self.assertEqual(len(too_long("Word " * 31 + "end.")), 1)
        self.assertEqual(too_long("Word " * 29 + "end."), [])

    def test_hashes_are_found(self):
        self.assertEqual(HASH.findall("at d69e6a7c, 1234567 or deadbeef; 0.1.0"), ["d69e6a7c"])

    def test_unknown_words_are_found(self):
        self.assertEqual(unknown("A blorb of `flurb`, H100s and words.", {"a", "of", "and", "word"}), {"blorb"})


if __name__ == "__main__":
    unittest.main()
