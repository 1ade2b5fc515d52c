#!/usr/bin/env python3
"""The questions of a new user (questions.md) are answered where it says: in README.md and on one page that it links."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
QUESTION = re.compile(r"^## ([^\n]+\?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
PLACE = re.compile(r'^- (\S+): "(.+)"$', re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)")


def words(text):
    return " ".join(text.split())


class Questions(unittest.TestCase):
    def test_each_is_answered(self):
        readme = (ROOT / "README.md").read_text()
        questions = QUESTION.findall((ROOT / "tests/house/questions.md").read_text())
        self.assertGreaterEqual(len(questions), 10)
        for question, answer in questions:
            places = PLACE.findall(answer)
            with self.subTest(question=question):
                self.assertTrue(places)
            for page, quote in places:
                with self.subTest(question=question, page=page):
                    self.assertIn(page, ["README.md", *LINK.findall(readme)])
                    self.assertIn(words(quote), words((ROOT / page).read_text()))


if __name__ == "__main__":
    unittest.main()
