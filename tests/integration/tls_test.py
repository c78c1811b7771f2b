#!/usr/bin/env python3
"""TLS between weft and its workers: the same answers as in one process, who is refused with which words on both sides,
certificates that are renewed while everything runs, and strangers that get nowhere. Standard library only."""
import contextlib
import hashlib
import json
import os
import pathlib
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from fleet_test import DEMO, evaluate, evaluate_on, weft
from namespaces import Machines, NotPermitted
from workers import BIN, Worker, addresses

CERTIFICATE = BIN.parent / "tests" / "weft-certificate"
HERE = "127.0.0.1"
TOKENS = list(range(1, 40))
DAY = 86400
STRANGERS = 10_000


def must(result):
    assert result.returncode == 0, result.stderr
    return result


def await_(test, what, condition, seconds=20, pause=0.02):
    deadline = time.monotonic() + seconds
    while not condition():
        test.assertLess(time.monotonic(), deadline, what)
        time.sleep(pause)


class Certificates(unittest.TestCase):
    """An authority, and certificates of two workers."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.certs = cls.folder / "certs"
        must(weft("certs", "init", cls.certs))
        for name in ("one", "two"):
            must(weft("certs", "worker", name, cls.certs, "--host", HERE))
        cls.coordinator = cls.certs / "coordinator"

    def made(self, name, role, start, end, *hosts, authority=None):
        """A certificate that `weft certs` would not make."""
        folder = self.folder / name
        must(subprocess.run([CERTIFICATE, authority or self.certs, folder, role, str(start), str(end), *hosts],
                            capture_output=True, encoding="utf-8", check=False))
        return folder

    def worker(self, name="one", *arguments, folder=None, **options):
        worker = Worker("--no-self-test", "--tls", folder or self.certs / name, *arguments, **options)
        self.addCleanup(worker.kill)
        return worker

    def refused(self, worker, *words, tls=None, code=2):
        """What `weft workers` says of a worker that it cannot use."""
        arguments = ["--tls", tls] if tls else []
        result = weft("workers", "--no-links", "--workers", worker.address, *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result

    def logged(self, worker, *words):
        await_(self, f"{words} in the worker's log", lambda: all(word in worker.text() for word in words))

    def client(self, folder=None):
        """TLS without weft, that takes any server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        if folder:
            context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        return context

    def shake(self, worker, context):
        """The server's certificate as SHA-256, after it has accepted this side; or the error."""
        host, port = worker.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=10) as plain:
            with context.wrap_socket(plain) as secured:
                if not secured.recv(1):
                    raise ConnectionError("closed")
                return hashlib.sha256(secured.getpeercert(binary_form=True)).hexdigest()


class TlsTest(Certificates):
    def test_answers_are_those_of_one_process(self):
        want = evaluate(DEMO, TOKENS)
        two = [self.worker("one"), self.worker("two")]
        for arguments in ([], ["--data-plane", "tls"], ["--data-plane", "tls", "--send-weights"]):
            got = evaluate(DEMO, TOKENS, "--workers", addresses(two), "--tls", self.coordinator, *arguments)
            self.assertEqual(got, want, arguments)
        for worker in two:
            self.logged(worker, "TLS 1.3 with certificate", "role worker", "not encrypted (--data-plane tls)")

    def test_ranks_reduce_over_tls(self):
        two = [self.worker("one", "--data-plane", "tls"), self.worker("two", "--data-plane", "tls")]
        split = ["--split-mode", "tensor", "--workers", addresses(two), "--tls", self.coordinator]
        got = evaluate(DEMO, TOKENS, *split)
        self.assertEqual(got, evaluate(DEMO, TOKENS, *split, "--data-plane", "tls"))
        self.assertEqual(got[1], evaluate(DEMO, TOKENS)[1])
        for worker in two:
            self.assertNotIn("not encrypted", worker.text())

    def test_the_folder_may_come_from_the_environment(self):
        worker = Worker("--no-self-test", environment={"WEFT_TLS": str(self.certs / "one")})
        self.addCleanup(worker.kill)
        got = evaluate_on([], DEMO, TOKENS, "--workers", worker.address, environment={"WEFT_TLS": str(self.coordinator)})
        self.assertEqual(got, evaluate(DEMO, TOKENS))
        # And is none of workers that weft starts.
        got = evaluate_on([], DEMO, TOKENS, "--local-workers", 1, environment={"WEFT_TLS": str(self.coordinator)})
        self.assertEqual(got, evaluate(DEMO, TOKENS))

    def test_ipv6(self):
        must(weft("certs", "worker", "six", self.certs, "--host", "::1"))
        try:
            worker = self.worker("six", listen="[::1]:0")
        except RuntimeError as error:
            self.skipTest(f"no IPv6 here: {error}")
        must(weft("workers", "--no-links", "--workers", worker.address, "--tls", self.coordinator))

    # --- refusals ---

    def test_plaintext_to_tls(self):
        worker = self.worker()
        self.refused(worker, worker.address, "speaks TLS", "--tls")
        self.logged(worker, "a connection from 127.0.0.1", "was refused", "plaintext")

    def test_tls_to_plaintext(self):
        with Worker("--no-self-test") as worker:
            self.refused(worker, worker.address, "speaks plaintext", "--tls", tls=self.coordinator)

    def test_another_authority(self):
        other = self.folder / "other"
        must(weft("certs", "init", other))
        worker = self.worker()
        self.refused(worker, "not from the authority", "'one'", tls=other / "coordinator")
        # One that trusts everybody is refused by the worker. (Without a word: gRPC does not send the alert.)
        with self.assertRaises(OSError):
            self.shake(worker, self.client(other / "coordinator"))
        self.logged(worker, "handshake failed", "not from ca.crt")

    def test_expired_certificates(self):
        old = self.made("old", "coordinator", -20 * DAY, -DAY, "coordinator")
        worker = self.worker()
        self.refused(worker, "has expired on", tls=old)
        with self.assertRaises(OSError):
            self.shake(worker, self.client(old))
        self.logged(worker, "handshake failed", "its dates")
        # A worker does not start with one; and one that expires while it runs is named.
        old = self.made("old-worker", "worker", -20 * DAY, -DAY, HERE)
        with self.assertRaisesRegex(RuntimeError, "has expired on"):
            self.worker(folder=old)
        short = self.made("short", "worker", -60, 3, HERE)
        worker = self.worker(folder=short)
        time.sleep(4)
        self.refused(worker, "has expired on", "127.0.0.1", tls=self.coordinator)

    def test_another_name(self):
        must(weft("certs", "worker", "elsewhere", self.certs, "--host", "10.99.99.99"))
        self.refused(self.worker("elsewhere"), "does not name 127.0.0.1", "elsewhere", "--host 127.0.0.1",
                     tls=self.coordinator)

    def test_doctor_shows_the_days_of_each_certificate(self):
        soon = self.made("soon", "worker", -60, 5 * DAY + 60, HERE)
        two = [self.worker("one"), self.worker(folder=soon)]
        result = must(weft("doctor", "--no-links", "--workers", addresses(two), "--tls", self.coordinator))
        self.assertRegex(result.stdout, rf"(?m)^ok +w0 \({two[0].address}\): certificate 'one' .*, 364 days are left$")
        self.assertRegex(result.stdout, rf"(?m)^warning +w1 \({two[1].address}\): certificate .*, 5 days are left$")

    def test_workers_behind_a_name_have_certificates_with_that_name(self):
        must(weft("certs", "worker", "named", self.certs, "--host", "localhost"))
        named, unnamed = self.worker("named"), self.worker("one")
        for command in ("workers", "doctor"):
            for worker, code in ((named, 0), (unnamed, 1 if command == "doctor" else 3)):
                behind = f"localhost:{worker.address.rsplit(':', 1)[1]}"
                result = weft(command, "--no-links", "--workers-dns", behind, "--tls", self.coordinator)
                self.assertEqual(result.returncode, code, result.stdout + result.stderr)
                if code:
                    self.assertIn("does not name localhost", result.stdout + result.stderr)

    def test_another_role(self):
        worker = self.worker()
        self.refused(worker, "role worker", "weft://coordinator", tls=self.certs / "two")
        with self.assertRaisesRegex(RuntimeError, "role coordinator.*weft://worker"):
            self.worker(folder=self.coordinator)
        # A coordinator's certificate makes no worker.
        fake = self.made("fake", "coordinator", -60, DAY, HERE)
        with ServerOf(fake) as server:
            self.refused(server, "is not a worker's", tls=self.coordinator)

    def test_no_certificate(self):
        worker = self.worker()
        with self.assertRaises(OSError):
            self.shake(worker, self.client())
        self.logged(worker, "handshake failed", "has no certificate")

    def test_old_tls(self):
        worker = self.worker()
        context = self.client(self.coordinator)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with self.assertRaisesRegex(ssl.SSLError, "PROTOCOL_VERSION"):
            self.shake(worker, context)
        self.logged(worker, "a connection from", "was refused", "TLS 1.2")
        # Nor does weft speak it.
        with ServerOf(self.certs / "one", newest=ssl.TLSVersion.TLSv1_2) as server:
            self.refused(server, "does not speak TLS 1.3", tls=self.coordinator)

    def test_a_missing_or_mixed_folder(self):
        worker = self.worker()
        self.refused(worker, "ca.crt", tls=self.folder / "nowhere")
        mixed = self.folder / "mixed"
        shutil.copytree(self.coordinator, mixed)
        shutil.copy(self.certs / "one" / "tls.key", mixed)
        self.refused(worker, "tls.key", "does not belong", tls=mixed)

    # --- where plaintext is allowed ---

    def test_other_machines_need_tls_or_insecure(self):
        result = subprocess.run([BIN / "weft-worker", "--listen", "0.0.0.0:0"], capture_output=True, encoding="utf-8",
                                timeout=60, check=False)
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in ("--tls DIR", "weft certs", "--insecure"):
            self.assertIn(word, result.stderr)
        result = weft("workers", "--workers", "198.51.100.7")
        self.assertEqual(result.returncode, 2, result.stderr)
        for word in ("198.51.100.7", "--tls DIR", "weft certs", "--insecure"):
            self.assertIn(word, result.stderr)

    def test_insecure_says_so(self):
        with Worker("--no-self-test", "--insecure", listen="0.0.0.0:0") as worker:
            self.assertIn("nothing is encrypted", worker.text())
            port = worker.address.rsplit(":", 1)[1]
            result = must(weft("workers", "--no-links", "--insecure", "--workers", f"{HERE}:{port}"))
            self.assertIn("not encrypted", result.stderr)

    def test_contradictions(self):
        for arguments, word in ((["--tls", self.coordinator, "--insecure"], "--insecure"),
                                (["--data-plane", "tls"], "--tls DIR"), (["--data-plane", "pigeon"], "pigeon")):
            result = weft("workers", "--workers", HERE, *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(word, result.stderr)
        for arguments, word in ((["--tls", self.certs / "one", "--insecure"], "--insecure"),
                                (["--data-plane", "tls"], "--tls DIR")):
            with self.assertRaisesRegex(RuntimeError, word):
                Worker(*arguments)

    # --- while it runs ---

    def test_renewal(self):
        must(weft("certs", "worker", "renewed", self.certs, "--host", HERE))
        worker = self.worker("renewed")
        command = [BIN / "weft", "chat", "-m", DEMO, "-n", "8", "--temp", "0", "-t", "1", "--workers", worker.address,
                   "--tls", self.coordinator]
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                process.stdin.write(b"ROMEO:\n")
                process.stdin.flush()
                self.assertTrue(process.stdout.read(1), process.stderr)
                new = json.loads(must(weft("certs", "worker", "renewed", self.certs, "--host", HERE, "--json")).stdout)
                await_(self, "the new certificate",
                       lambda: self.shake(worker, self.client(self.coordinator)) == new["sha256"],
                       pause=0.2)  # a worker takes 64 connections of an address in 5 s
                self.logged(worker, "TLS: new certificate 'renewed'")
                must(weft("workers", "--no-links", "--workers", worker.address, "--tls", self.coordinator))
                # The session of before goes on.
                output, error = process.communicate(b"JULIET:\n", timeout=60)
                self.assertEqual(process.returncode, 0, error)
                self.assertGreater(len(output.split(b"\n")), 1)
            finally:
                process.kill()

    def test_thousands_of_strangers_leave_it_unmoved(self):
        worker = self.worker()
        began = time.monotonic()
        before = memory_of(worker)
        port = int(worker.address.rsplit(":", 1)[1])
        tls_hello = hello_of(self.client())
        for first in (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", tls_hello):
            with knocking((HERE, port), "127.0.0.9", first, STRANGERS // 3 + 1):
                got = evaluate(DEMO, TOKENS, "--workers", worker.address, "--tls", self.coordinator)
        self.assertEqual(got, evaluate(DEMO, TOKENS))
        grown = memory_of(worker) - before
        print(f"memory grew by {grown >> 10} KiB in all", file=sys.stderr)
        self.assertLess(grown, 64 << 20)  # with what the model itself takes
        lines = worker.text().splitlines()
        # A few about strangers, then two in ten seconds; the rest is counted.
        self.assertLess(len(lines), 30 + 0.5 * (time.monotonic() - began), "\n".join(lines[-50:]))


class ServerOf:
    """A TLS server that is no worker."""

    def __init__(self, folder, newest=ssl.TLSVersion.TLSv1_3):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.context.maximum_version = newest
        self.context.set_alpn_protocols(["h2"])
        self.listener = socket.create_server((HERE, 0))
        self.address = f"{HERE}:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self._serve)

    def _serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            plain.settimeout(5)
            with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as secured:
                secured.recv(1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(30)


def memory_of(worker):
    status = pathlib.Path(f"/proc/{worker.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))


def hello_of(context):
    """The first bytes of a client."""
    out = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), out, server_hostname="x").do_handshake()
    return out.read()


@contextlib.contextmanager
def knocking(address, source, first, count):
    """So many connections that say `first` and then nothing, as many as possible of them open at the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = min(count + 200, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    held = []
    try:
        for _ in range(count):
            if len(held) >= most - 100:
                held.pop(0).close()
            knock = socket.socket()
            knock.bind((source, 0))
            knock.settimeout(10)
            with contextlib.suppress(OSError):
                knock.connect(address)
                knock.sendall(first)
            held.append(knock)
        yield
    finally:
        for knock in held:
            knock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


KNOCK = """
import socket, sys
held = []
for _ in range(int(sys.argv[3])):
    if len(held) > 500: held.pop(0).close()
    s = socket.socket(); s.settimeout(10); held.append(s)
    try: s.connect((sys.argv[1], int(sys.argv[2]))); s.sendall(b"x" * (_ % 3))
    except OSError: pass
print("done", flush=True); sys.stdin.read()
"""


class TlsMachinesTest(Certificates):
    """Two machines with certificates, and one without."""

    def test_a_machine_without_a_certificate_gets_nowhere(self):
        try:
            machines = Machines(3)
        except NotPermitted as error:
            print("[  SKIPPED ] TlsMachinesTest.Stranger", file=sys.stderr)  # as tests/tidy/check_skips.py counts
            raise unittest.SkipTest(f"network namespaces need root and iproute2: {error}") from error
        self.addCleanup(machines.close)
        ours, worker_at, stranger = range(3)
        for name, machine in (("here", ours), ("there", worker_at)):
            must(weft("certs", "worker", name, self.certs, "--host", machines.addresses[machine]))
        plane = ["--data-plane", "tls"]
        two = [self.worker(name, *plane, listen=f"{machines.addresses[machine]}:0", prefix=machines.prefix(machine))
               for name, machine in (("here", ours), ("there", worker_at))]

        def run_at(machine, *arguments):
            return subprocess.run([*machines.prefix(machine), BIN / "weft", *map(str, arguments)], capture_output=True,
                                  encoding="utf-8", timeout=120, check=False)

        def answers():
            return evaluate_on(machines.prefix(ours), DEMO, TOKENS, "--workers", addresses(two), "--tls",
                               self.coordinator, *plane)

        want = evaluate(DEMO, TOKENS)
        self.assertEqual(answers(), want)
        # Without a certificate, with one of its own, and as a worker that says it is a coordinator.
        other = self.folder / "strangers"
        must(weft("certs", "init", other))
        for arguments, word in ((["--insecure"], "speaks TLS"), (["--tls", other / "coordinator"], "not from the authority"),
                                ([], "nothing would be encrypted")):
            result = run_at(stranger, "workers", "--no-links", "--workers", two[1].address, *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(word, result.stderr)
        host, port = two[1].address.rsplit(":", 1)
        before = memory_of(two[1])
        knock = subprocess.Popen([*machines.prefix(stranger), sys.executable, "-c", KNOCK, host, port, str(STRANGERS)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            self.assertEqual(answers(), want)  # meanwhile
            knock.stdout.readline()
            self.assertEqual(answers(), want)
        finally:
            knock.communicate(timeout=60)
        self.assertLess(memory_of(two[1]) - before, 64 << 20)
        self.logged(two[1], f"a connection from {machines.addresses[stranger]}")


if __name__ == "__main__":
    os.environ.pop("WEFT_TLS", None)
    unittest.main(verbosity=2)
