#!/usr/bin/env python3
"""weft doctor on this machine and on workers of it: what it finds, what it says to change, its exit code."""
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
import unittest

from workers import Worker, addresses

WEFT = os.environ.get("WEFT_BIN_DIR", "build/release/bin") + "/weft"


def doctor(*arguments):
    return subprocess.run([WEFT, "doctor", *arguments], capture_output=True, text=True, timeout=120, check=False)


def findings(*arguments):
    return json.loads(doctor(*arguments, "--json").stdout)["findings"]


def worst(found, subject):
    order = ["ok", "note", "warning", "problem"]
    return max((f["level"] for f in found if subject in f["subject"]), key=order.index)


class Doctor(unittest.TestCase):
    def test_this_machine(self):
        result = doctor()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^ok +this machine: \d+ processors, ")
        self.assertRegex(result.stdout, r"\n0 problems, \d+ warnings, \d+ notes\n$")

    def test_workers_and_their_links(self):
        with Worker("--name", "alpha") as first, Worker("--name", "beta") as second:
            found = findings("--workers", addresses([first, second]))
        texts = "\n".join(f"{f['level']} {f['subject']}: {f['text']}" for f in found)
        for name, worker, host in (("w0", first, "alpha"), ("w1", second, "beta")):
            subject = f"{name} \\({worker.address}\\)"
            self.assertRegex(texts, rf"(?m)^ok {subject}: weft \S+ on {host}(, answers in \d+ us)?$")
            self.assertRegex(texts, rf"(?m)^ok {subject}: \d+ processors")
            self.assertRegex(texts, rf"(?m)^ok {subject}: its clock is (ahead|behind) by 0\.\d+ s")
        for link in ("w0 - w1", "w0 - coordinator", "w1 - coordinator"):
            self.assertRegex(texts, rf"(?m)^\w+ {link}: \S+, [\d.]+ us, [\d.]+ GB/s")
        self.assertNotIn("problem", texts)

    def test_the_others_are_looked_at_where_one_is_not_there(self):
        with Worker("--name", "alpha") as first, Worker() as gone:
            missing = gone.address
            gone.kill()
            result = doctor("--workers", f"{missing},{first.address}", "--no-links", "--worker-timeout", "1")
            found = findings("--workers", f"{missing},{first.address}", "--no-links", "--worker-timeout", "1")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"(?m)^weft: error: 1 problem found$")
        self.assertEqual(worst(found, missing), "problem")
        self.assertNotEqual(worst(found, first.address), "problem")
        self.assertTrue(all(f["advice"] for f in found if f["level"] != "ok"), found)

    def test_silent_ones_are_asked_at_the_same_time(self):
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(8)]
            named = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in silent]
            began = time.monotonic()
            doctor("--workers", named[0], "--no-links", "--worker-timeout", "1")
            one = time.monotonic() - began
            began = time.monotonic()
            found = findings("--workers", ",".join(named), "--no-links", "--worker-timeout", "1")
            all_of_them = time.monotonic() - began
        self.assertEqual([f["subject"] for f in found if f["level"] == "problem"], named)
        self.assertLess(all_of_them, 3 * one)

    def test_workers_behind_a_name(self):
        with Worker() as worker:
            found = findings("--workers-dns", f"localhost:{worker.address.rsplit(':', 1)[1]}", "--no-links")
        self.assertEqual(worst(found, worker.address), "note" if worst(found, "this machine") == "note" else "ok")

    def test_certificates(self):
        with tempfile.TemporaryDirectory() as folder:
            certs = f"{folder}/certs"
            subprocess.run([WEFT, "certs", "init", certs, "--days", "3"], check=True, capture_output=True, timeout=60)
            soon = findings("--tls", f"{certs}/coordinator")
            none = doctor("--tls", certs)
        self.assertEqual(worst(soon, "--tls"), "warning")
        self.assertEqual(none.returncode, 1)
        self.assertRegex(none.stdout, "(?m)^problem +--tls .*tls.crt")

    def test_a_link_over_the_network_stack_of_one_machine_is_remarked(self):
        with Worker() as first, Worker() as second:
            found = findings("--workers", addresses([first, second]), "--transport", "grpc")
        link = next(f for f in found if f["subject"] == "w0 - w1")
        self.assertEqual(link["level"], "warning")
        self.assertIn("though both are on one machine", link["text"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
