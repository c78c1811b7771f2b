#!/usr/bin/env python3
"""What may happen to the files of --tls while a process runs: copied over, cut off, replaced by pipes. It goes on with
the pair that it has, says what is wrong, and takes the next good pair. Standard library only."""
import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
import unittest

from fleet_test import DEMO, weft
from serve_process import ServeProcess
from tls_test import Certificates, HERE, await_, must
from workers import BIN

FILES = ("ca.crt", "tls.crt", "tls.key")


def replaced(path, how):
    """Puts something else in the place of a file."""
    if how == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif how == "device":
        path.unlink()
        path.symlink_to("/dev/zero")
    elif how == "huge":
        with open(path, "r+b") as file:
            file.truncate(1 << 40)
    elif how == "garbage":
        path.write_bytes(bytes(range(256)) * 8)
    else:
        path.write_bytes(b"")


def good_again(folder, source):
    for name in FILES:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()
        shutil.copy(source / name, folder)


class TlsFilesTest(Certificates):
    def setUp(self):
        self.live = self.folder / self.id().rsplit(".", 1)[1]
        shutil.copytree(self.certs / "one", self.live)

    def renewed(self):
        """A new pair, somewhere else; its digest."""
        made = json.loads(must(weft("certs", "worker", "renewed", self.certs, "--host", HERE, "--json")).stdout)
        return self.certs / "renewed", made["sha256"]

    def works(self, worker):
        return must(weft("workers", "--no-links", "--workers", worker.address, "--tls", self.coordinator))

    def digest(self, worker):
        return self.shake(worker, self.client(self.coordinator))

    def presents(self, worker, digest):
        """Handshakes without a call take places at the worker's gate for seconds: few of them."""
        await_(self, "the new certificate", lambda: self.digest(worker) == digest, pause=0.3)

    def test_plain_copies_over_the_files(self):
        """As `cp` does: emptied, then written; key and certificate one after the other."""
        worker = self.worker(folder=self.live)
        first = self.digest(worker)
        source, second = self.renewed()
        for name in ("tls.key", "tls.crt"):
            (self.live / name).write_bytes(b"")
            time.sleep(2.5)  # gRPC looks every second
            self.assertEqual(self.digest(worker), first)
            (self.live / name).write_bytes((source / name).read_bytes())
        self.presents(worker, second)
        self.works(worker)
        self.assertNotIn("grpc", worker.text().lower())
        self.assertEqual(worker.stop(), 0)

    def test_odd_files_leave_the_old_pair(self):
        cases = [(name, how) for name in FILES for how in ("empty", "garbage", "huge", "pipe", "device")]
        running = []  # all at once: each takes seconds until it says something
        for name, how in cases:
            live = self.folder / f"odd-{name}-{how}"
            shutil.copytree(self.certs / "one", live)
            running.append((live / name, self.worker(folder=live), how))
        first = self.digest(running[0][1])
        for path, _, how in running:
            replaced(path, how)
        source, second = self.renewed()
        for path, worker, _ in running:
            with self.subTest(path=path):
                self.logged(worker, f"TLS: {path}: ")
                self.assertEqual(self.digest(worker), first)
                good_again(path.parent, source)
        for path, worker, _ in running:
            with self.subTest(path=path):
                self.presents(worker, second)
                self.assertEqual(worker.text().count(f"TLS: {path}: "), 1, worker.text())
                self.assertNotIn("cc:", worker.text())  # lines of gRPC
                self.assertEqual(worker.stop(), 0)

    def test_bad_files_at_the_start_are_bad_input(self):
        """The worker's exit code is that of the coordinator; every file is named, and none is waited for."""
        running = self.worker()
        token = self.folder / "token"
        token.write_text("a-token\n")
        for how in ("missing", "loop", "pipe", "device", "huge", "empty"):
            for name in ("tls.key", "token"):
                live = self.folder / f"start-{how}-{name}"
                shutil.copytree(self.coordinator if name == "tls.key" else self.certs / "one", live)
                shutil.copy(token, live)
                if how in ("missing", "loop"):
                    (live / name).unlink()
                    if how == "loop":
                        (live / name).symlink_to(name)
                else:
                    replaced(live / name, how)
                commands = [[BIN / "weft-worker", "--listen", "127.0.0.1:0", "--no-self-test", "--tls", live,
                             "--metrics-port", "0", "--metrics-token-file", live / "token"]]
                if name == "tls.key":
                    commands.append([BIN / "weft", "workers", "--no-links", "--workers", running.address, "--tls", live])
                else:
                    for flag in ("--metrics-token-file", "--api-key-file"):
                        commands.append([BIN / "weft", "serve", "-m", DEMO, "--port", "0", flag, live / "token"])
                for command in commands:
                    with self.subTest(how=how, name=name, command=command[1]):
                        result = subprocess.run(list(map(str, command)), capture_output=True, encoding="utf-8",
                                                timeout=30, check=False)
                        self.assertEqual(result.returncode, 2, result.stderr)
                        self.assertIn(str(live / name), result.stderr)

    def test_a_key_that_does_not_belong(self):
        worker = self.worker(folder=self.live)
        first = self.digest(worker)
        shutil.copy(self.certs / "two" / "tls.key", self.live)
        self.logged(worker, "tls.key: does not belong")
        self.assertEqual(self.digest(worker), first)
        self.assertEqual(worker.stop(), 0)

    def test_serve_goes_on(self):
        worker = self.worker()
        live = self.folder / "coordinator-live"
        shutil.copytree(self.coordinator, live)
        server = ServeProcess("--workers", worker.address, "--tls", str(live))
        self.addCleanup(server.process.kill)
        for how in ("empty", "pipe"):
            replaced(live / "tls.key", how)
            time.sleep(2.5)
        await_(self, "a word about the key", lambda: f"TLS: {live / 'tls.key'}: is not a regular" in server.text())
        self.assertIsNone(server.process.poll(), server.text())
        self.assertEqual(server.stop(), 0)

    def test_a_command_ends_while_its_files_are_odd(self):
        worker = self.worker()
        live = self.folder / "chat-live"
        shutil.copytree(self.coordinator, live)
        command = [BIN / "weft", "chat", "-m", DEMO, "-n", "8", "--temp", "0", "-t", "1", "--workers", worker.address,
                   "--tls", live]
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                process.stdin.write(b"ROMEO:\n")
                process.stdin.flush()
                self.assertTrue(process.stdout.read(1))
                replaced(live / "tls.key", "pipe")
                time.sleep(2.5)
                _, error = process.communicate(b"JULIET:\n", timeout=60)
                self.assertEqual(process.returncode, 0, error)
            finally:
                process.kill()

    def test_renewals_without_end_under_load(self):
        """Pairs come and go in every order while clients connect: every handshake finds a pair that fits."""
        worker = self.worker(folder=self.live)
        pairs = [(self.certs / "one"), self.renewed()[0]]
        done = threading.Event()

        def renew():
            turn = 0
            while not done.is_set():
                turn += 1
                for name in ("tls.key", "tls.crt") if turn % 2 else ("tls.crt", "tls.key"):
                    (self.live / name).write_bytes((pairs[turn % 2] / name).read_bytes())
                done.wait(0.3)
        thread = threading.Thread(target=renew)
        thread.start()
        try:
            seen = set()
            end = time.monotonic() + 8
            while time.monotonic() < end:
                seen.add(self.digest(worker))
                time.sleep(0.12)  # the gate counts handshakes of the last seconds
        finally:
            done.set()
            thread.join()
        self.assertEqual(len(seen), 2)
        self.assertEqual(worker.stop(), 0)


if __name__ == "__main__":
    unittest.main()
