#!/usr/bin/env python3
"""The guides of docs/ and the README against the programs: command lines, flags, metrics. And the walk-through of two hosts,
run as it is written.

usage: documents_test.py [--nightly] [unittest arguments]
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import programs
from programs import BIN, SOURCE, run

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
import namespaces  # pylint: disable=wrong-import-position
from workers import Worker  # pylint: disable=wrong-import-position

DOCS = SOURCE / "docs"
GUIDES = [DOCS / name for name in ("several-hosts.md", "kubernetes.md", "troubleshooting.md", "performance.md")]
MODEL = SOURCE / "models" / "shakespeare-q8_0.gguf"
# Flags of other programs that the guides name.
OTHERS = {"--build", "--previous", "--target"}


def blocks(path):
    """The fenced blocks of a document, with what marks them: (mark, text)."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"(?ms)(?:^<!-- (\w+) -->\n)?^```\w*\n(.*?)^```", text)


def command_lines(path):
    """Words of each command of weft and weft-worker in the blocks of a document."""
    for _, text in blocks(path):
        for line in text.replace("\\\n", " ").splitlines():
            for part in re.split(r"&&|\|", re.sub(r"\s#.*", "", line)):
                part = re.sub(r"^.*?-- /usr/bin/", "", part.strip())
                if re.match(r"(weft|weft-worker) ", part):
                    yield shlex.split(part)


class Guides(unittest.TestCase):
    def test_command_lines(self):
        count = 0
        for path in [*GUIDES, SOURCE / "README.md"]:
            for words in command_lines(path):
                with self.subTest(path=path.name, words=words):
                    self.assertEqual(programs.check_arguments(words, positionals=True), [])
                    count += 1
        self.assertGreater(count, 20)

    def test_flags_and_metrics_that_the_text_names(self):
        flags = set().union(programs.flags("weft-worker"), OTHERS,
                            *(programs.flags("weft", command) for command in programs.commands()))
        for path in GUIDES:
            text = path.read_text(encoding="utf-8")
            with self.subTest(path=path.name):
                named = set(re.findall(r"`(--[a-z][-a-z]+)", text))
                self.assertEqual(named - flags, set())
                self.assertEqual(set(re.findall(r"`(weft_\w+)`", text)) - set(programs.metrics()), set())

    def test_alerts_that_the_text_names(self):
        alerts = set(re.findall(r"alert: (\w+)", (SOURCE / "deploy/observability/rules.yaml").read_text(encoding="utf-8")))
        for path in GUIDES:
            self.assertEqual(set(re.findall(r"`(Weft[A-Z]\w+)`", path.read_text(encoding="utf-8"))) - alerts, set())

    def test_variants_and_overlays(self):
        text = (DOCS / "kubernetes.md").read_text(encoding="utf-8")
        there = {path.name for path in (SOURCE / "deploy/kubernetes/variants").iterdir()}
        self.assertEqual(set(re.findall(r"(?m)^\| `([\w-]+)` \| [^|]*\|$", text.split("| variant")[1].split("\n## ")[0])), there)
        for overlay in (SOURCE / "deploy/kubernetes/overlays").iterdir():
            self.assertIn(f"`overlays/{overlay.name}`", text)


class WalkThrough(unittest.TestCase):
    """docs/several-hosts.md, each command on its machine."""

    def commands(self, address):
        found = [(mark, text.strip()) for mark, text in blocks(DOCS / "several-hosts.md") if mark]
        self.assertEqual([mark for mark, _ in found], ["alpha", "beta", "alpha"])
        return [text.replace("10.0.0.2", address).replace("model.gguf", str(MODEL)) for _, text in found]

    def test_two_hosts(self):
        try:
            machines = namespaces.Machines(2)
        except namespaces.NotPermitted as error:
            programs.missing("DeployDocuments.WalkThrough", f"making network namespaces is not permitted here: {error}")
        with machines, tempfile.TemporaryDirectory() as folder:
            alpha, beta, tools = (pathlib.Path(folder, name) for name in ("alpha", "beta", "tools"))
            for path in (alpha, beta, tools):
                path.mkdir()
            # Copies to the other machine's folder instead of the other machine.
            (tools / "scp").write_text(f'#!/bin/sh\nexec cp -r "$2" {beta}/\n', encoding="utf-8")
            (tools / "scp").chmod(0o755)
            environment = {**os.environ, "PATH": f"{tools}:{BIN}:{os.environ['PATH']}"}
            first, worker, last = self.commands(machines.addresses[1])
            done = run(*machines.prefix(0), "bash", "-ec", first, cwd=alpha, env=environment)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(sorted(path.name for path in (beta / "beta").iterdir()), ["ca.crt", "tls.crt", "tls.key"])
            words = shlex.split(worker)
            with Worker(*words[3:], listen=words[2], prefix=["env", "-C", beta, *machines.prefix(1)]):
                self.assertEqual(words[:2], ["weft-worker", "--listen"])
                done = subprocess.run([*machines.prefix(0), "bash", "-ec", last + " --temp 0"], cwd=alpha, env=environment,
                                      capture_output=True, text=True, timeout=120, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                expected = programs.says("weft", "run", "-m", MODEL, "-p", "ROMEO:", "-n", "32", "--temp", "0")
                self.assertEqual(done.stdout, expected)


if __name__ == "__main__":
    programs.main()
