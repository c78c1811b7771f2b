#!/usr/bin/env python3
"""Many streams at once on `weft serve`, on one device and on layers cut over two workers: prompts and lengths mixed, a
quarter of the clients leaves in the middle. Each answer equals what the same request gets alone (greedy); no error comes
that nobody asked for; in the end nothing is held, and over a long run memory does not grow.

usage: serve_load_test.py [--streams N] [--seconds S] [unittest arguments]
"""
import argparse
import collections
import http.client
import json
import pathlib
import random
import sys
import threading
import time
import unittest

import metrics_text
from serve_process import ServeProcess, await_value

OPTIONS = argparse.Namespace(streams=32, seconds=6.0)
LENGTHS = (1, 5, 12, 30, 60)
SUBJECTS = ("Scene", "My lord", "What light", "Enter ROMEO", "The king", "O")
LEAVE = 0.25
# Shorter runs are still warming up.
LEAST_SECONDS_FOR_MEMORY = 300
MEMORY_SLACK = 16 << 20


def resident_bytes(pids):
    total = 0
    for pid in pids:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        total += 1024 * int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])
    return total


class Load:
    """Clients that ask for as long as the run lasts."""

    def __init__(self, server, requests, alone, seed):
        self.server, self.requests, self.alone = server, requests, alone
        self.random = random.Random(seed)
        self.counts = collections.Counter()
        self.wrong = []
        self.lock = threading.Lock()
        self.over = threading.Event()

    def answer(self, request, leave):
        """Text of a stream, or nothing where the client left in the middle."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        try:
            connection.request("POST", "/v1/completions", json.dumps({**request, "stream": True}),
                               {"Content-Type": "application/json"})
            reply = connection.getresponse()
            if reply.status != 200:
                raise AssertionError(f"{reply.status}: {reply.read()[:300]}")
            text, done = "", False
            for line in reply:
                if line.strip() == b"data: [DONE]":
                    done = True
                elif line.startswith(b"data: "):
                    text += json.loads(line[6:])["choices"][0]["text"]
                    if leave and text:
                        return None
            if not done:
                raise AssertionError(f"a stream ended without [DONE] after {text!r}")
            return text
        finally:
            connection.close()

    def client(self):
        while not self.over.is_set():
            with self.lock:
                number = self.random.randrange(len(self.requests))
                leave = self.random.random() < LEAVE
            try:
                text = self.answer(self.requests[number], leave)
                kind = "left" if text is None else "equal" if text == self.alone[number] else "differs"
                trouble = f"{self.requests[number]}: {text!r}, alone {self.alone[number]!r}" if kind == "differs" else None
            except (AssertionError, OSError, ValueError, http.client.HTTPException) as error:
                kind, trouble = "failed", f"{self.requests[number]}: {error}"
            with self.lock:
                self.counts[kind] += 1
                if trouble:
                    self.wrong.append(trouble)

    def run(self, streams, seconds):
        """Memory of all processes at even times."""
        clients = [threading.Thread(target=self.client) for _ in range(streams)]
        for client in clients:
            client.start()
        samples, end = [], time.monotonic() + seconds
        pids = [self.server.process.pid, *self.server.workers()]
        while time.monotonic() < end:
            time.sleep(min(1.0, max(0.0, end - time.monotonic())))
            samples.append(resident_bytes(pids))
        self.over.set()
        for client in clients:
            client.join()
        return samples


class ServeLoad(unittest.TestCase):
    def check(self, *flags):
        seed = random.SystemRandom().randrange(1 << 32)
        server = ServeProcess("-c", "256", "-a", "m", "-t", "2", *flags)
        self.addCleanup(server.stop)
        requests = [{"model": "m", "prompt": f"{subject} {length}:", "max_tokens": length, "temperature": 0}
                    for subject in SUBJECTS for length in LENGTHS]
        alone = Load(server, requests, [], seed)
        load = Load(server, requests, [alone.answer(request, False) for request in requests], seed)
        samples = load.run(OPTIONS.streams, OPTIONS.seconds)
        print(f"seed {seed}: {dict(load.counts)}, {samples[0] >> 20} MiB, at the end {samples[-1] >> 20}", flush=True)
        self.assertEqual(load.wrong[:3], [], f"{len(load.wrong)} in all")
        self.assertGreaterEqual(load.counts["equal"], OPTIONS.streams)
        self.assertGreater(load.counts["left"], 0)
        self.check_idle(server)
        self.check_memory(samples)

    def check_idle(self, server):
        def get(path):
            connection = http.client.HTTPConnection("127.0.0.1", server.health_port, timeout=20)
            connection.request("GET", path)
            text = connection.getresponse().read().decode()
            connection.close()
            return text

        await_value(lambda: json.loads(get("/healthz"))["requests"] == {"active": 0, "waiting": 0}, 60)
        self.assertEqual(json.loads(get("/healthz"))["kv_pages"]["used"], 0)
        families = metrics_text.parse(get("/metrics"))
        for name in ("weft_requests_failed_total", "weft_requests_refused_total", "weft_sessions_lost_total",
                     "weft_replans_total"):
            self.assertEqual(metrics_text.total(families, name), 0, name)

    def check_memory(self, samples):
        if OPTIONS.seconds < LEAST_SECONDS_FOR_MEMORY:
            return
        third = len(samples) // 3
        self.assertLessEqual(max(samples[2 * third:]), max(samples[third:2 * third]) + MEMORY_SLACK)

    def test_one_device(self):
        self.check()

    def test_layers_cut_over_two_workers(self):
        self.check("--local-workers", "2", "--split-mode", "tensor")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=OPTIONS.streams)
    parser.add_argument("--seconds", type=float, default=OPTIONS.seconds)
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
