#!/usr/bin/env python3
"""What the programs say of themselves, which the other tests of this folder rely on.

usage: programs_test.py [--nightly] [unittest arguments]
"""
import pathlib
import sys
import unittest

import programs

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
import metrics_text  # pylint: disable=wrong-import-position


class Programs(unittest.TestCase):
    def test_metrics_are_those_of_the_document(self):
        self.assertEqual(set(programs.metrics()) ^ metrics_text.documented("weft_"), set())

    def test_metrics_that_count_are_called_so(self):
        self.assertEqual([name for name, kind in programs.metrics().items() if (kind == "counter") != name.endswith("_total")], [])

    def test_command_lines_are_judged(self):
        def judge(*words):
            return len(programs.check_arguments(words))
        self.assertEqual(judge("weft-worker", "--listen", "0.0.0.0:7000", "--no-files", "--cache=/x", "--insecure"), 0)
        self.assertEqual(judge("/usr/bin/weft", "serve", "-m", "x.gguf", "--parallel", "4"), 0)
        self.assertEqual(judge("weft-worker", "--lisen", "0.0.0.0:7000"), 2)
        self.assertEqual(judge("weft-worker", "--cache", "--no-files"), 1)
        self.assertEqual(judge("weft", "sreve", "-m", "x.gguf"), 1)
        self.assertEqual(judge("weft", "serve", "--np", "4", "--port"), 1)


if __name__ == "__main__":
    programs.main()
