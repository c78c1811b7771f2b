#!/usr/bin/env python3
"""Workers that join their coordinator by themselves: whoever starts first, however often each starts again; and those that
may not. Standard library only."""
import contextlib
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from fleet_test import weft
from serve_process import MODEL, READY, ServeProcess, WEFT, await_value
from workers import Worker

HERE = "127.0.0.1"
SECONDS = 60
STRANGERS = 3000


def free_port():
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        return listener.getsockname()[1]


def fleet(serve):
    """Addresses of the workers of a session that serves, or nothing."""
    with contextlib.closing(http.client.HTTPConnection(HERE, serve.port, timeout=30)) as connection:
        connection.request("GET", "/v1/fleet", headers={"Host": "localhost"})
        said = json.loads(connection.getresponse().read())
    plan = said["plan"] if said["ready"] else None
    return sorted(host["label"].split("(")[1].rstrip(")") for host in plan["hosts"] if host["name"] != "local") if plan else None


def answer(serve):
    with contextlib.closing(http.client.HTTPConnection(HERE, serve.port, timeout=60)) as connection:
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "ROMEO:", "max_tokens": 8, "temperature": 0}),
                           {"Content-Type": "application/json", "Host": "localhost"})
        reply = connection.getresponse()
        body = reply.read()
    assert reply.status == 200, body
    return json.loads(body)["choices"][0]["text"]


class Proxy:
    """Carries one connection after the other to a port, and keeps what clients said."""

    def __init__(self, port):
        self.port = port
        self.said = []
        self.listener = socket.create_server((HERE, 0))
        self.address = f"{HERE}:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((HERE, self.port))
            except OSError:
                client.close()  # nobody listens yet
                continue
            words = bytearray()
            self.said.append(words)
            threading.Thread(target=self._carry, args=(client, server, words), daemon=True).start()
            threading.Thread(target=self._carry, args=(server, client, bytearray()), daemon=True).start()

    @staticmethod
    def _carry(source, target, words):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                words += data
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Joins(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.token = self.folder / "join.token"
        made = weft("certs", "token", self.token)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(self.token.stat().st_mode & 0o777, 0o600)
        self.port = free_port()

    def worker(self, *arguments, join=None, token=None, **options):
        worker = Worker("--no-self-test", "--join", join or f"{HERE}:{self.port}", "--join-token-file", token or self.token,
                        *arguments, **options)
        self.addCleanup(worker.kill)
        return worker

    def flags(self, *more):
        return ["--workers-join", f"{HERE}:{self.port}", "--join-token-file", str(self.token), *map(str, more)]

    def serve(self, *arguments):
        serve = ServeProcess(*self.flags("-c", "256", *arguments))
        self.addCleanup(serve.stop)
        return serve

    def said(self, process, *words):
        await_value(lambda: all(word in process.text() for word in words), SECONDS)


class JoinTest(Joins):
    def test_workers_come_go_and_come_back(self):
        first = self.worker()  # before its coordinator
        self.said(first, "cannot join", "it is tried again")
        serve = self.serve("--join-lease", 2)
        self.said(first, f"joined {HERE}:{self.port} as {first.address}")
        await_value(lambda: fleet(serve) == [first.address], SECONDS)
        right = answer(serve)
        second = self.worker()
        await_value(lambda: fleet(serve) == sorted([first.address, second.address]), SECONDS)
        self.assertEqual(answer(serve), right)
        first.process.kill()  # without a word
        first.process.wait()
        await_value(lambda: fleet(serve) == [second.address], SECONDS)
        self.assertEqual(answer(serve), right)
        self.said(serve, f"({first.address}) is gone")
        again = self.worker(listen=first.address)
        await_value(lambda: fleet(serve) == sorted([first.address, second.address]), SECONDS)
        self.assertEqual(answer(serve), right)
        # One that ends in order says so, and is not waited for.
        self.assertEqual(again.stop(), 0)
        await_value(lambda: fleet(serve) == [second.address], SECONDS)
        self.assertIn(f"({first.address}) has left", serve.text())
        self.assertEqual(answer(serve), right)

    def test_commands_wait_for_so_many(self):
        two = [self.worker(), self.worker()]
        want = sorted(worker.address for worker in two)
        listed = weft("workers", "--no-links", "--json", *self.flags("--join-workers", 2))
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual(sorted(worker["address"] for worker in json.loads(listed.stdout)["workers"]), want)
        text = ["-m", MODEL, "-p", "ROMEO:", "-n", "8", "--temp", "0"]
        run = weft("run", *text, *self.flags("--join-workers", 2))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout, weft("run", *text).stdout)
        doctor = weft("doctor", *self.flags("--join-workers", 2))
        self.assertEqual(doctor.returncode, 0, doctor.stdout + doctor.stderr)
        for address in want:
            self.assertIn(address, doctor.stdout)

    def test_serve_without_workers_ends_when_told(self):
        log = self.folder / "serve.log"
        with open(log, "w", encoding="utf-8") as file:
            process = subprocess.Popen([WEFT, "serve", "-m", MODEL, "--port", "0", *self.flags()], stdout=subprocess.DEVNULL,
                                       stderr=file)
        self.addCleanup(process.kill)
        await_value(lambda: "waiting for 1 workers to join" in log.read_text(encoding="utf-8"), SECONDS)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertNotRegex(log.read_text(encoding="utf-8"), READY)

    def test_flags_that_do_not_fit(self):
        token = ["--join-token-file", self.token]
        for arguments, word in ((["--workers-join", HERE], "--join-token-file"), (token, "--workers-join"),
                                (["--workers-join", "0.0.0.0:0", *token], "--tls DIR"),
                                (["--workers-join", "unix:/tmp/x", *token], "ADDR:PORT"),
                                (["--workers-join", HERE, "--workers", HERE, *token], "one of these ways"),
                                (["--workers-join", HERE, *token, "--join-workers", 0], "--join-workers"),
                                (["--workers-join", HERE, *token, "--join-lease", "nan"], "--join-lease")):
            result = weft("workers", *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(word, result.stderr)
        for arguments, word in ((["--join", HERE], "--join-token-file"), (token, "go together"),
                                (["--join", "unix:/tmp/x", *token], "HOST:PORT"),
                                (["--join", "198.51.100.7", *token], "nothing would be encrypted")):
            with self.assertRaisesRegex(RuntimeError, word):
                Worker("--no-self-test", *arguments)

    # --- those that may not ---

    def test_another_token(self):
        wrong = self.folder / "wrong.token"
        self.assertEqual(weft("certs", "token", wrong).returncode, 0)
        good = self.worker()
        serve = self.serve()
        worker = self.worker(token=wrong)
        self.said(worker, f"cannot join {HERE}:{self.port}", "another token")
        self.said(serve, f"a join from ipv4:{HERE}", "another token")
        # The file is read again.
        os.replace(self.token, wrong)
        await_value(lambda: fleet(serve) == sorted([good.address, worker.address]), SECONDS)

    def test_a_captured_join_is_refused(self):
        proxy = Proxy(self.port)
        self.addCleanup(proxy.close)
        worker = self.worker(join=proxy.address)
        serve = self.serve()
        self.said(worker, "joined")
        await_value(lambda: fleet(serve) == [worker.address], SECONDS)
        words = await_value(lambda: next((bytes(said) for said in proxy.said if b"PRI * HTTP/2.0" in said and
                                          worker.address.encode() in said), None), SECONDS)
        with socket.create_connection((HERE, self.port), timeout=SECONDS) as thief:
            thief.sendall(words)
            self.said(serve, f"a join from ipv4:{HERE}", "replayed")
            self.assertTrue(thief.recv(1))

    def test_an_address_that_leads_elsewhere(self):
        serve_worker = self.worker()
        serve = self.serve()
        worker = self.worker("--announce", f"127.0.0.1:{free_port()}")
        self.said(worker, "cannot be used from here", "--announce")
        self.said(serve, "cannot be used from here")
        await_value(lambda: fleet(serve) == [serve_worker.address], SECONDS)

    def test_strangers_take_no_place(self):
        serve_worker = self.worker()
        serve = self.serve()
        held = []
        with contextlib.ExitStack() as stack:
            for i in range(STRANGERS):
                knock = socket.socket()
                knock.bind(("127.0.0.9", 0))
                knock.settimeout(10)
                stack.callback(knock.close)
                held.append(knock)
                with contextlib.suppress(OSError):
                    knock.connect((HERE, self.port))
                    knock.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[:1 + i % 24])
                if len(held) > 500:
                    held.pop(0).close()
            second = self.worker()
            await_value(lambda: fleet(serve) == sorted([serve_worker.address, second.address]), SECONDS)
        self.assertLess(len(serve.text().splitlines()), 100)


class JoinTlsTest(Joins):
    def setUp(self):
        super().setUp()
        self.certs = self.folder / "certs"
        for arguments in (["init", self.certs, "--host", HERE], ["worker", "one", self.certs, "--host", HERE],
                          ["worker", "elsewhere", self.certs, "--host", "10.99.99.99"]):
            made = weft("certs", *arguments)
            self.assertEqual(made.returncode, 0, made.stderr)

    def test_joins_under_tls(self):
        worker = self.worker("--tls", self.certs / "one")
        serve = self.serve("--tls", str(self.certs / "coordinator"))
        await_value(lambda: fleet(serve) == [worker.address], SECONDS)
        self.assertTrue(answer(serve))
        # Who has the token and no certificate, one of another authority, or one with another name.
        plain = self.worker()
        self.said(plain, "cannot join", "speaks TLS")
        self.said(serve, "a connection from", "was refused", "plaintext")
        other = self.folder / "other"
        for arguments in (["init", other], ["worker", "one", other, "--host", HERE]):
            self.assertEqual(weft("certs", *arguments).returncode, 0)
        stranger = self.worker("--tls", other / "one")
        self.said(stranger, "cannot join", "not from the authority")
        misnamed = self.worker("--tls", self.certs / "elsewhere")
        self.said(misnamed, "cannot be used from here", "does not name 127.0.0.1")
        self.said(serve, "does not name 127.0.0.1")
        self.assertEqual(fleet(serve), [worker.address])

    def test_a_coordinator_without_tls_is_not_joined(self):
        worker = self.worker("--tls", self.certs / "one")
        good = self.worker()
        serve = self.serve()
        self.said(worker, "cannot join", "speaks plaintext")
        await_value(lambda: fleet(serve) == [good.address], SECONDS)


if __name__ == "__main__":
    os.environ.pop("WEFT_TLS", None)
    unittest.main(argv=sys.argv[:1], verbosity=2)
