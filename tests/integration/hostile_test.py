#!/usr/bin/env python3
"""A fleet among people who do everything wrong: garbage and a thousand connections at a worker's ports, connections that
say nothing, two workers at one address, a coordinator that is stopped for a while, a disk that is full. Whatever of it
happens, the worker serves the next command with the right answer. Standard library only."""
import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from fault_test import BIN, CRASH, DEMO, MODEL, check_serves, weft
from workers import Worker, addresses

EVAL = ["eval", "-m", MODEL, "--tokens", "1,2,3,4,5", "--greedy", "8", "-t", "1"]
SEED = int(os.environ.get("WEFT_TEST_SEED", "1"))
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def garbage(random_bytes):
    """What strangers send: noise, other protocols, HTTP/2 that goes wrong."""
    noise = [random_bytes.randbytes(random_bytes.choice([1, 7, 100, 5000, 70000])) for _ in range(30)]
    frames = [HTTP2, HTTP2 + random_bytes.randbytes(500), HTTP2[:10],
              HTTP2 + b"\x00\x00\x00\x04\x00\x00\x00\x00\x00" + b"\xff\xff\xff\x00\x01\x00\x00\x00\x01" + b"x" * 1000,
              b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"SSH-2.0-x\r\n", b"", b"\x00" * 4096]
    return noise + frames


def send(host, port, data, half_close):
    try:
        with socket.create_connection((host, port), timeout=5) as connection:
            connection.settimeout(0.2)
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(OSError):
                connection.recv(1000)
    except OSError:
        pass  # it hung up, as it may


def listening_ports(worker):
    """TCP ports that a process listens on, from what the system says of its sockets."""
    inodes = set()
    folder = f"/proc/{worker.process.pid}/fd"
    for entry in os.listdir(folder):
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"{folder}/{entry}"))
            if found:
                inodes.add(found.group(1))
    ports = set()
    for name in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{worker.process.pid}/net/{name}").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.want = weft(*EVAL)
        assert cls.want.returncode == 0, cls.want.stderr

    def check_works(self, *workers):
        result = weft(*EVAL, "--workers", addresses(workers))
        for worker in workers:
            self.assertIsNone(worker.process.poll(), (result.stderr, worker.text()[-2000:]))
        self.assertEqual((result.returncode, result.stdout), (0, self.want.stdout), result.stderr)
        for worker in workers:
            self.assertIsNone(worker.process.poll(), worker.text()[-2000:])
            self.assertIsNone(CRASH.search(worker.text()), worker.text()[-2000:])

    @contextlib.contextmanager
    def running(self, *workers):
        """A command that goes on for long, once its first token is out."""
        command = [str(BIN / "weft"), "run", "-m", str(DEMO), "-p", "ROMEO:", "-n", "100000", "-c", "30000", "--ignore-eos",
                   "-t", "1", "--workers", addresses(workers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            drain = threading.Thread(target=process.stdout.read)
            try:
                self.assertTrue(process.stdout.read(1), "no token")  # the error is below
                drain.start()
                yield process
            finally:
                process.kill()
                if drain.ident is not None:
                    drain.join(30)

    def test_garbage_at_every_port(self):
        source = random.Random(SEED)
        with Worker("--no-self-test") as first, Worker("--no-self-test") as second:
            with self.running(first, second) as process:
                ports = listening_ports(first) | listening_ports(second)
                self.assertGreaterEqual(len(ports), 4, ports)  # of control, and of data for this machine and others
                for data in garbage(source):
                    for port in ports:
                        send("127.0.0.1", port, data, source.random() < 0.5)
                self.assertIsNone(process.poll(), "the command did not survive")
            self.check_works(first, second)
            # A stranger's bytes are nothing that people want to read.
            self.assertLess(len(first.text()), 5000, first.text())
            self.assertTrue(first.text().isprintable() or first.text().replace("\n", "").isprintable(), first.text())

    def test_a_thousand_connections_that_say_nothing(self):
        with Worker("--no-self-test") as worker, contextlib.ExitStack() as stack:
            host, port = worker.address.rsplit(":", 1)
            for i in range(1000):
                connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
                if i % 3 == 0:
                    connection.sendall(HTTP2[:i % len(HTTP2)])
            self.check_works(worker)
            stack.close()
            self.check_works(worker)

    def test_two_workers_at_one_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = f"unix:{folder}/worker.sock"
            with Worker("--no-self-test", listen=path) as first:
                second = subprocess.run([str(BIN / "weft-worker"), "--listen", path, "--no-self-test"], capture_output=True,
                                        timeout=30, encoding="utf-8", check=False)
                self.assertEqual(second.returncode, 1, second.stderr)
                self.assertIn(path, second.stderr)
                self.check_works(first)
                first.signal(signal.SIGKILL)
                first.process.wait(20)
            # What a killed one leaves behind is in nobody's way.
            with Worker("--no-self-test", listen=path) as third:
                self.check_works(third)

    def test_a_coordinator_that_is_stopped_goes_on(self):
        with Worker("--no-self-test") as first, Worker("--no-self-test") as second:
            with self.running(first, second) as process:
                process.send_signal(signal.SIGSTOP)
                time.sleep(4)  # longer than a silent worker lasts, shorter than its lease
                process.send_signal(signal.SIGCONT)
                time.sleep(1)
                self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            self.check_works(first, second)

    def test_a_coordinator_that_is_stopped_for_too_long_has_lost_its_sessions(self):
        with Worker("--no-self-test", "--lease-ms", "1000") as worker:
            with self.running(worker) as process:
                process.send_signal(signal.SIGSTOP)
                deadline = time.monotonic() + 20
                while " closed" not in worker.text() and time.monotonic() < deadline:
                    time.sleep(0.05)
                self.check_works(worker)  # what it held is free again
                process.send_signal(signal.SIGCONT)
                process.wait(20)
                error = process.stderr.read().decode()
            self.assertEqual(process.returncode, 3, error)
            self.assertIn(worker.address, error)

    def test_a_full_disk_for_the_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], capture_output=True,
                                     check=False)
            if mounted.returncode != 0:
                self.skipTest("mounting needs root")
            try:
                with Worker("--no-self-test", "--cache", folder) as worker:
                    for _ in range(2):
                        result = weft("run", "-m", DEMO, "-p", "ROMEO:", "-n", "8", "--temp", "0", "-t", "1", "--send-weights",
                                      "--workers", worker.address)
                        self.assertEqual(result.returncode, 0, result.stderr)
                    self.check_works(worker)
            finally:
                subprocess.run(["umount", folder], check=True)


if __name__ == "__main__":
    unittest.main(verbosity=2)
