#!/usr/bin/env python3
"""Workers behind a name: found, lost and taken up again, under the names that they have. The name stands in a file of hosts
that only this test's processes see (a mount namespace). Standard library only."""
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from serve_process import ServeProcess, WEFT, await_value
from workers import Worker

HOSTS = os.environ.get("WEFT_TEST_HOSTS")
NAME = "fleet.weft.test"


def set_hosts(*addresses):
    """In place: the file is mounted."""
    with open(HOSTS, "w", encoding="utf-8") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"{address} {NAME}\n" for address in addresses))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.11", 0))
        return listener.getsockname()[1]


class WorkersDns(unittest.TestCase):
    def setUp(self):
        self.port = free_port()
        self.started = []
        self.addCleanup(lambda: [worker.kill() for worker in self.started])

    def worker(self, address):
        worker = Worker("--no-self-test", listen=f"{address}:{self.port}")
        self.started.append(worker)
        return worker

    def listed(self):
        done = subprocess.run([WEFT, "workers", "--workers-dns", f"{NAME}:{self.port}", "--no-links", "--json"],
                              capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr, json.loads(done.stdout)["workers"] if done.returncode == 0 else None

    def test_all_addresses_are_workers_and_missing_ones_are_left_out(self):
        set_hosts("127.0.0.13", "127.0.0.11", "127.0.0.12")
        for address in ("127.0.0.12", "127.0.0.11"):
            self.worker(address)
        code, said, workers = self.listed()
        self.assertEqual(code, 0, said)
        self.assertEqual([(worker["name"], worker["address"]) for worker in workers],
                         [("w0", f"127.0.0.11:{self.port}"), ("w1", f"127.0.0.12:{self.port}")])
        self.assertIn(f"127.0.0.13:{self.port}", said)
        set_hosts()
        code, said, _ = self.listed()
        self.assertNotEqual(code, 0)
        self.assertIn(NAME, said)

    def fleet(self, serve):
        """Names of the workers of a session that serves, or nothing."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", serve.port, timeout=30)) as connection:
            connection.request("GET", "/v1/fleet", headers={"Host": "localhost"})
            said = json.loads(connection.getresponse().read())
        plan = said["plan"] if said["ready"] else None
        return sorted({device["name"].split(".")[0] for device in plan["devices"]} - {"local"}) if plan else None

    def answer(self, serve):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", serve.port, timeout=60)) as connection:
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "ROMEO:", "max_tokens": 8, "temperature": 0}),
                               {"Content-Type": "application/json", "Host": "localhost"})
            reply = connection.getresponse()
            body = reply.read()
        self.assertEqual(reply.status, 200, body)
        return json.loads(body)["choices"][0]["text"]

    def test_serve_takes_up_who_comes_and_goes_on_without_who_left(self):
        set_hosts("127.0.0.11", "127.0.0.12")
        first = self.worker("127.0.0.11")
        serve = ServeProcess("--workers-dns", f"{NAME}:{self.port}", "-c", "256")
        self.addCleanup(serve.stop)
        await_value(lambda: self.fleet(serve) == ["w0"], 60)
        right = self.answer(serve)
        self.worker("127.0.0.12")
        await_value(lambda: self.fleet(serve) == ["w0", "w1"], 60)
        self.assertIn("there are more workers", serve.text())
        self.assertEqual(self.answer(serve), right)
        first.kill()
        set_hosts("127.0.0.12")
        await_value(lambda: self.fleet(serve) == ["w1"], 60)
        self.assertEqual(self.answer(serve), right)


if __name__ == "__main__":
    if HOSTS is None:
        with tempfile.NamedTemporaryFile("w", prefix="weft-hosts-") as file:
            file.write("127.0.0.1 localhost\n")
            file.flush()
            script = 'mount --bind "$WEFT_TEST_HOSTS" /etc/hosts && exec "$@"'
            command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, *sys.argv]
            sys.exit(subprocess.run(command, env={**os.environ, "WEFT_TEST_HOSTS": file.name}, check=False).returncode)
    unittest.main(argv=sys.argv[:1])
