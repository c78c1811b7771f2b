#!/usr/bin/env python3
"""SIGTERM to a worker while weft serve streams over it: the stream ends complete, the worker ends with 0, and the server
serves again once the worker is back. Its probe port and its metrics.

usage: drain_test.py [unittest arguments]
"""
import http.client
import json
import signal
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import metrics_text
from serve_cli_test import Server, run_alone
from serve_process import await_value
from workers import Worker


def get(url):
    """Status and text."""
    try:
        with urllib.request.urlopen(url, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


class Stream(threading.Thread):
    """A streamed completion; `text` grows."""

    def __init__(self, server, prompt, count):
        super().__init__()
        self.text, self.done, self.finish = "", False, None
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
        self.connection.request("POST", "/v1/completions",
                                json.dumps({"prompt": prompt, "max_tokens": count, "temperature": 0, "stream": True}),
                                {"Content-Type": "application/json"})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.start()

    def run(self):
        for line in self.reply:
            line = line.decode().strip()
            if line == "data: [DONE]":
                self.done = True
            elif line.startswith("data: "):
                event = json.loads(line[len("data: "):])
                if "error" in event:  # the end of the server
                    continue
                choice = event["choices"][0]
                self.text += choice["text"]
                self.finish = choice["finish_reason"] or self.finish
        self.connection.close()


class FleetTest(unittest.TestCase):
    """A test that fails leaves no process behind."""

    def start(self, *arguments, **options):
        """A worker with probes: the worker and the address of those."""
        worker = Worker("--metrics-port", "0", *arguments, **options)
        self.addCleanup(worker.kill)
        probes = await_value(lambda: [line.rsplit("metrics on ", 1)[1] for line in worker.text().splitlines()
                                      if "metrics on " in line], 10)[0]
        return worker, probes.removesuffix("/metrics")

    def serve(self, *workers, more=()):
        server = Server("--workers", ",".join(worker.address for worker in workers), *more)
        self.addCleanup(server.kill)
        return server


class Drain(FleetTest):
    def test_a_stream_ends_complete_and_the_server_goes_on_when_the_worker_is_back(self):
        first, first_probes = self.start()
        with Worker() as second:
            server = self.serve(first, second)
            # Long enough to be under way still when the signal comes, and short enough for --drain-seconds.
            stream = Stream(server, "ROMEO:", 400)
            await_value(lambda: len(stream.text) > 20, 60)
            first.signal(signal.SIGTERM)
            await_value(lambda: first.process.poll() is not None or get(first_probes + "/readyz")[0] == 503, 20)
            stream.join(120)
            self.assertTrue(stream.done)
            self.assertEqual((stream.text, stream.finish), (run_alone("ROMEO:", 400), "length"))
            self.assertEqual(first.process.wait(60), 0)
            self.assertIn("draining", first.text())
            await_value(lambda: not server.is_ready(), 30)
            self.assertEqual(json.loads(server.ask("/healthz", port=server.health_port)[1])["ready"], False)
            with Worker(listen=first.address):
                await_value(server.is_ready, 60)
                self.assertEqual(server.complete("ROMEO:", 10), run_alone("ROMEO:", 10))
                self.assertEqual(server.stop(), 0)

    def test_without_sessions_it_ends_at_once(self):
        with Worker() as worker:
            self.assertEqual(worker.stop(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        first, probes = self.start("--drain-seconds", "3600")
        server = self.serve(first)
        stream = Stream(server, "ROMEO:", 3000)
        await_value(lambda: len(stream.text) > 20, 60)
        first.signal(signal.SIGTERM)
        await_value(lambda: get(probes + "/readyz")[0] == 503, 20)
        self.assertIsNone(first.process.poll())
        first.signal(signal.SIGINT)
        self.assertEqual(first.process.wait(30), 0)
        server.stop()
        stream.join(60)


class Stopped(FleetTest):
    def test_a_stopped_worker_is_not_ready_though_live_and_ready_again_after(self):
        with Worker() as worker:
            server = self.serve(worker)
            self.assertTrue(server.is_ready())
            began = time.monotonic()
            worker.signal(signal.SIGSTOP)
            await_value(lambda: not server.is_ready(), 60)
            self.assertLess(time.monotonic() - began, 10)  # 2.5 s on a machine with nothing else to do
            self.assertEqual(server.ask("/livez", port=server.health_port)[0], 200)
            self.assertEqual(server.ask("/v1/completions", {"prompt": "a", "max_tokens": 1})[0], 503)
            worker.signal(signal.SIGCONT)
            await_value(server.is_ready, 60)
            self.assertEqual(server.complete("ROMEO:", 10), run_alone("ROMEO:", 10))
            self.assertEqual(server.stop(), 0)


class WorkerMetrics(FleetTest):
    def test_what_is_shown_is_documented_and_moves(self):
        worker, probes = self.start()
        before = metrics_text.parse(get(probes + "/metrics")[1])
        server = self.serve(worker)
        server.complete("ROMEO:", 20)
        status, text = get(probes + "/metrics")
        self.assertEqual(status, 200)
        after = metrics_text.parse(text)
        self.assertEqual(get(probes + "/livez")[0], 200)
        self.assertEqual(metrics_text.documented("weft_worker_") - set(after) - {
            "weft_worker_cache_bytes", "weft_worker_cache_quota_bytes", "weft_worker_cache_hits_total",
            "weft_worker_cache_misses_total", "weft_worker_collective_seconds",
            "weft_worker_certificate_days_left", "weft_worker_joined"}, set())
        self.assertEqual(set(after) - metrics_text.documented("weft_worker_"), set())
        for name in ("weft_worker_sessions", "weft_worker_sessions_opened_total", "weft_worker_programs_total",
                     "weft_worker_steps_total", "weft_worker_compute_seconds_total", "weft_worker_buffer_bytes",
                     "weft_worker_weight_bytes_total", "weft_worker_step_seconds", "weft_worker_transport_bytes_total"):
            self.assertGreater(metrics_text.total(after, name), metrics_text.total(before, name), name)
        self.assertEqual(server.stop(), 0)
        # What is over still counts.
        await_value(lambda: metrics_text.total(metrics_text.parse(get(probes + "/metrics")[1]), "weft_worker_sessions") == 0, 20)
        last = metrics_text.parse(get(probes + "/metrics")[1])
        self.assertGreaterEqual(metrics_text.total(last, "weft_worker_transport_bytes_total"),
                                metrics_text.total(after, "weft_worker_transport_bytes_total"))
        self.assertEqual(worker.stop(), 0)

    def test_collectives(self):
        worker, probes = self.start()
        with worker, Worker() as other:
            server = self.serve(worker, other, more=("--split-mode", "tensor"))
            server.complete("ROMEO:", 10)
            metrics = metrics_text.parse(get(probes + "/metrics")[1])
            self.assertGreater(metrics_text.total(metrics, "weft_worker_collective_seconds"), 0)
            self.assertGreater(metrics_text.total(metrics, "weft_worker_wire_seconds_total"), 0)
            self.assertEqual(server.stop(), 0)

    def test_cache(self):
        """Filled by the first load, found by the second."""
        with tempfile.TemporaryDirectory() as folder:
            worker, probes = self.start("--cache", folder, "--cache-quota", "1000000000", "--no-files")
            with worker:
                def read():
                    return metrics_text.parse(get(probes + "/metrics")[1])
                self.assertEqual(metrics_text.total(read(), "weft_worker_cache_bytes"), 0)
                for name in ("weft_worker_cache_misses_total", "weft_worker_cache_hits_total"):
                    self.assertEqual(metrics_text.total(read(), name), 0)
                    server = self.serve(worker)
                    self.assertEqual(server.stop(), 0)
                    self.assertGreater(metrics_text.total(read(), name), 0, name)
                self.assertGreater(metrics_text.total(read(), "weft_worker_cache_bytes"), 0)
                self.assertEqual(metrics_text.total(read(), "weft_worker_cache_quota_bytes"), 1000000000)
                sources = {labels["source"] for _, labels, value in read()["weft_worker_weight_bytes_total"]["samples"] if value}
                self.assertEqual(sources, {"cache", "coordinator"})


if __name__ == "__main__":
    unittest.main(verbosity=2)
