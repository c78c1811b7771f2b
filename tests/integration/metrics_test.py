#!/usr/bin/env python3
"""Every metric that weft serve and its workers show moves: what happens to a service is played, and the pages are read
all the while.

usage: metrics_test.py [--nightly] [unittest arguments]
"""
import http.client
import json
import signal
import subprocess
import sys
import threading
import time
import unittest

import metrics_text
from drain_test import FleetTest, get
from serve_process import MODEL, WEFT, await_value

NIGHTLY = "--nightly" in sys.argv
# What a service is made of: there from the start, and mostly the same until its end.
FIXED = {"weft_slots", "weft_kv_cache_bytes", "weft_weight_bytes", "weft_arena_bytes", "weft_rank_programs_total"}
# In a minute of this test's nightly run only.
SLOW = {"weft_progressing"}
# Shown with flags that have tests of their own.
ELSEWHERE = {"weft_worker_cache_bytes", "weft_worker_cache_quota_bytes", "weft_worker_cache_hits_total",
             "weft_worker_cache_misses_total",  # drain_test.py
             "weft_worker_certificate_days_left", "weft_worker_joined",  # tls_test.py, join_test.py
             "weft_worker_local_bytes_total",  # several devices in one worker
             "weft_worker_sessions_refused_total",  # worker_test.cc: coordinators of ours do not ask one that drains
             "weft_worker_collective_seconds", "weft_worker_wire_seconds_total"}  # drain_test.py


class Watch(threading.Thread):
    """Reads a page of metrics again and again, and keeps the least and the most of each sample."""

    def __init__(self, url):
        super().__init__(daemon=True)
        self.url, self.over, self.error = url, threading.Event(), None
        self.least, self.most = {}, {}
        self.read()
        self.start()

    def run(self):
        while not self.over.wait(0.03):
            try:
                self.read()
            except OSError:  # a worker that has ended
                continue
            except AssertionError as error:
                self.error = error
                return

    def read(self):
        for name, family in metrics_text.parse(get(self.url)[1]).items():
            for suffix, labels, value in family["samples"]:
                key = (name, suffix, tuple(sorted(labels.items())))
                self.least[key] = min(value, self.least.get(key, value))
                self.most[key] = max(value, self.most.get(key, value))

    def stop(self):
        self.over.set()
        self.join(60)
        assert self.error is None, self.error

    def seen(self):
        return {name for name, _, _ in list(self.most)}

    def moved(self):
        return {key[0] for key, most in list(self.most.items()) if most > self.least[key]}

    def await_moved(self, *names):
        await_value(lambda: not set(names) - self.moved(), 60)


class Metrics(FleetTest):
    def setUp(self):
        self.workers = [self.start() for _ in range(2)]
        # Room for one sequence and a little, two at a time, and one that waits.
        flags = ["-np", "2", "--queue", "2", "-c", "256", "--cache-tokens", "288"]
        if NIGHTLY:
            flags += ["--worker-timeout", "60"]
        self.server = self.serve(*(worker for worker, _ in self.workers), more=flags)
        self.watch = Watch(f"http://127.0.0.1:{self.server.health_port}/metrics")
        self.watches = [Watch(probes + "/metrics") for _, probes in self.workers]

    def request(self, prompt, count):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": count, "stream": True,
                                                                  "ignore_eos": True}),
                           {"Content-Type": "application/json"})
        return connection

    def stream(self, prompt, count):
        connection = self.request(prompt, count)
        return connection, connection.getresponse()

    def crowd(self):
        """More than the cache, the slots and the queue hold."""
        self.server.complete(["ROMEO:", "JULIET:"], 230, ignore_eos=True)
        self.watch.await_moved("weft_requests_preempted_total")
        many = [self.stream("First", 230)[1] for _ in range(6)]
        self.assertIn(429, [reply.status for reply in many])
        self.watch.await_moved("weft_requests_refused_total")
        for reply in many:
            reply.close()  # these clients leave
        self.watch.await_moved("weft_requests_cancelled_total")

    def late(self):
        """A request that is given too little time."""
        status, text = self.server.ask("/v1/completions", {"prompt": "x", "max_tokens": 240, "timeout": 0.002})
        self.assertGreaterEqual(status, 500, text)
        self.watch.await_moved("weft_requests_failed_total")

    def lose(self):
        """A worker that another waits for dies, and comes back."""
        worker, _ = self.workers[0]
        worker.signal(signal.SIGSTOP)
        connection = self.request("ROMEO:", 240)
        time.sleep(0.3)  # the other has a step that waits for this one
        worker.signal(signal.SIGKILL)
        self.watch.await_moved("weft_ready", "weft_sessions_lost_total")
        connection.close()
        self.workers[0] = self.start(listen=worker.address)
        await_value(self.server.is_ready, 60)
        self.server.complete("ROMEO:", 4)

    def drain(self):
        """A worker that takes no more sessions, while one goes on."""
        worker, _ = self.workers[1]
        goes_on = subprocess.Popen([WEFT, "run", "-m", MODEL, "-p", "x", "-n", "100000", "-c", "0", "--ignore-eos",
                                    "--workers", worker.address], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(goes_on.communicate)
        self.addCleanup(goes_on.kill)
        self.assertNotEqual(goes_on.stdout.read(1), b"")
        worker.signal(signal.SIGTERM)
        self.watches[1].await_moved("weft_worker_draining", "weft_worker_ready")

    def stall(self):
        worker, _ = self.workers[0]
        connection, reply = self.stream("ROMEO:", 240)
        reply.read(10)
        worker.signal(signal.SIGSTOP)
        self.watch.await_moved("weft_progressing")  # half a minute
        worker.signal(signal.SIGCONT)
        connection.close()
        await_value(self.server.is_ready, 60)

    def test_every_one_moves(self):
        prompt = "Now is the winter of our discontent made glorious summer by this sun of York"
        for _ in range(2):  # the second finds the first one's pages
            self.server.complete(prompt, 20)
        self.server.complete(prompt, 20, temperature=1.5, top_k=0, top_p=1, min_p=0)  # wants all logits
        self.crowd()
        self.late()
        if NIGHTLY:
            self.stall()
        self.lose()
        self.drain()
        for watch in (self.watch, *self.watches):
            watch.stop()
        workers = metrics_text.documented("weft_worker_")
        own = metrics_text.documented("weft_") - workers
        self.assertEqual(self.watch.seen(), own)
        there = {name for (name, _, _), most in self.watch.most.items() if most > 0}
        self.assertEqual(FIXED - there, set())
        still = own - self.watch.moved() - FIXED - (set() if NIGHTLY else SLOW)
        self.assertEqual(still, {"weft_replans_total"})  # which must not
        moved = self.watches[0].moved() | self.watches[1].moved()
        self.assertEqual(workers - moved - ELSEWHERE, set())
        self.assertEqual(self.server.stop(), 0)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--nightly"], verbosity=2)
