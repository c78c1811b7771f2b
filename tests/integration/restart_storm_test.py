#!/usr/bin/env python3
"""Restart storm: workers that joined a `weft serve` are killed or ended in random order, and started again, while clients ask
all the time. No worker is listed twice and none that is gone; the service is back with all of them each time; each answer
equals what the same request gets alone.

usage: restart_storm_test.py [--workers N] [--seconds S] [--streams N] [--seed N] [unittest arguments]
"""
import argparse
import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

from fleet_test import weft
from serve_load_test import Load
from serve_process import ServeProcess, await_value
from workers import Worker

OPTIONS = argparse.Namespace(workers=5, seconds=20.0, streams=6, seed=None)
HERE = "127.0.0.1"
# For the service to be back with all workers. A worker that was killed is noticed at once; one start, one look for newcomers
# (two of them, two seconds apart, five seconds after a plan), one load.
BACK_S = 60
LENGTHS = (1, 8, 30)
SUBJECTS = ("Scene", "My lord", "The king")


def free_port():
    with socket.socket() as listener:
        listener.bind((HERE, 0))
        return listener.getsockname()[1]


def in_session(worker):
    """Whether some coordinator uses it, by its log."""
    text = worker.text()
    opened = re.findall(r"session (\d+) of \S+ opened", text)
    return len(opened) > len(re.findall(r"session \d+ closed", text))


class Fleet:
    """Workers that join one coordinator, each always at its own address."""

    def __init__(self, count, flags):
        self.flags = flags
        self.workers = [self._start(f"{HERE}:0") for _ in range(count)]
        self.addresses = [worker.address for worker in self.workers]

    def _start(self, address):
        return Worker("--no-self-test", *self.flags, listen=address)

    def restart(self, number, end, pause):
        worker = self.workers[number]
        worker.signal(end)
        worker.process.wait(40)
        worker.log.close()
        time.sleep(pause)
        self.workers[number] = self._start(self.addresses[number])

    def kill(self):
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()


class PatientLoad(Load):
    """Its clients ask again where the service says that it is not ready: a worker is missing, or is being taken up."""

    def answer(self, request, leave):
        while True:
            try:
                return super().answer(request, leave)
            except AssertionError as error:
                if not str(error).startswith("503: ") or "the model is not ready" not in str(error):
                    raise
            if self.over.wait(0.05):
                return None
            with self.lock:
                self.counts["refused"] += 1


class Watch:
    """Asks all the time what the fleet is, and keeps what must never be."""

    def __init__(self, serve, addresses):
        self.serve = serve
        self.addresses = set(addresses)
        self.wrong = []
        self.looks = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def listed(self):
        """Addresses of the workers of a session that serves, in the order of the plan; or nothing."""
        with contextlib.closing(http.client.HTTPConnection(HERE, self.serve.port, timeout=30)) as connection:
            connection.request("GET", "/v1/fleet", headers={"Host": "localhost"})
            said = json.loads(connection.getresponse().read())
        if not said["ready"] or not said["plan"]:
            return None
        hosts = [host for host in said["plan"]["hosts"] if host["name"] != "local"]
        names = [host["name"] for host in hosts]
        if len(set(names)) != len(names):
            self.wrong.append(f"names twice: {names}")
        return [host["label"].split("(")[1].rstrip(")") for host in hosts]

    def _run(self):
        while not self.over.wait(0.05):
            try:
                listed = self.listed()
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.wrong.append(repr(error))
                continue
            self.looks += 1
            if listed is not None and (len(set(listed)) != len(listed) or not set(listed) <= self.addresses):
                self.wrong.append(f"listed: {listed}")

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class RestartStorm(unittest.TestCase):
    def test_workers_restart_in_random_order_under_load(self):
        seed = OPTIONS.seed if OPTIONS.seed is not None else random.SystemRandom().randrange(1 << 32)
        print(f"seed {seed}", flush=True)
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            token = pathlib.Path(folder) / "join.token"
            self.assertEqual(weft("certs", "token", token).returncode, 0)
            where = f"{HERE}:{free_port()}"
            fleet = Fleet(OPTIONS.workers, ["--join", where, "--join-token-file", token, "--drain-seconds", "20"])
            self.addCleanup(fleet.kill)
            serve = ServeProcess("-c", "256", "-a", "m", "-t", "1", "--workers-join", where, "--join-token-file", str(token),
                                 "--join-workers", str(OPTIONS.workers), "--join-lease", "3")
            self.addCleanup(serve.stop)
            self.storm(serve, fleet, chance)

    def storm(self, serve, fleet, chance):
        requests = [{"model": "m", "prompt": f"{subject} {length}:", "max_tokens": length, "temperature": 0}
                    for subject in SUBJECTS for length in LENGTHS]
        alone = Load(serve, requests, [], 0)
        load = PatientLoad(serve, requests, [alone.answer(request, False) for request in requests], chance.random())
        clients = [threading.Thread(target=load.client) for _ in range(OPTIONS.streams)]
        with Watch(serve, fleet.addresses) as watch:
            try:
                for client in clients:
                    client.start()
                restarts, slowest = self.restart_all(serve, fleet, watch, chance, load)
            finally:
                load.over.set()
                for client in clients:
                    client.join()
        print(f"{restarts} restarts, {dict(load.counts)}, back after at most {slowest:.1f} s, {watch.looks} looks", flush=True)
        self.assertEqual(watch.wrong[:3], [])
        self.assertEqual(load.wrong[:3], [], f"{len(load.wrong)} in all")
        self.assertGreaterEqual(load.counts["equal"], restarts)
        # Nobody whose lease went on after its end.
        self.assertEqual(sorted(watch.listed()), sorted(fleet.addresses))

    def restart_all(self, serve, fleet, watch, chance, load):
        """One worker after the other, sometimes two at a time, in a new order each round."""
        restarts, slowest, end = 0, 0.0, time.monotonic() + OPTIONS.seconds
        while time.monotonic() < end:
            order = list(range(len(fleet.workers)))
            chance.shuffle(order)
            while order and time.monotonic() < end:
                some = [order.pop() for _ in range(min(len(order), chance.choice((1, 1, 2))))]
                before = load.counts["equal"]
                for number in some:
                    how = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
                    fleet.restart(number, how, chance.choice((0, 0, 0.5, 2)))
                began = time.monotonic()
                self.await_all(serve, fleet, watch)
                await_value(lambda before=before: load.counts["equal"] > before, BACK_S)
                slowest = max(slowest, time.monotonic() - began)
                restarts += len(some)
        return restarts, slowest

    def await_all(self, serve, fleet, watch):
        """Each of those that run now is there, and is the one that runs now."""
        try:
            # A plan of before has the same addresses, and no session with a worker that runs now.
            await_value(lambda: sorted(watch.listed() or []) == sorted(fleet.addresses) and all(map(in_session, fleet.workers)),
                        BACK_S)
        except AssertionError:
            logs = [serve.text()[-6000:], *(worker.text()[-1000:] for worker in fleet.workers)]
            raise AssertionError(f"not back in {BACK_S} s; listed: {watch.listed()}\n" + "\n---\n".join(logs)) from None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=OPTIONS.workers)
    parser.add_argument("--seconds", type=float, default=OPTIONS.seconds)
    parser.add_argument("--streams", type=int, default=OPTIONS.streams)
    parser.add_argument("--seed", type=int)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
