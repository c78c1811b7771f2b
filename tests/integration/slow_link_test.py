#!/usr/bin/env python3
"""Two machines on a slow link (a relay between network namespaces). A tensor split: decode takes what the link predicts,
and the sums of a large step travel while the ranks compute. Weights: they go at the rate of the link. Times decide nothing but ratios within a run.
Standard library only; without the right to make namespaces the tests are skipped."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from metrics_text import parse
from namespaces import NotPermitted
from slow_link import ADDRESSES, BUILD, SlowLink
from workers import BIN, Worker, addresses

BENCH = BUILD / "tests" / "weft_weight_stream_bench"
UCX = {"UCX_TLS": "tcp"}
LAYERS = 8
EMBEDDING = 512
UBATCH = 256
CHUNKS = 4


def measured_link(stderr):
    """Seconds of a message and bytes a second, as the coordinator measured them before the run."""
    found = re.search(r"measured: ([\d.]+) us, ([\d.]+) GB/s", stderr)
    return float(found.group(1)) / 1e6, float(found.group(2)) * 1e9


class OnSlowLink(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = pathlib.Path(folder.name) / "model.gguf"
        made = subprocess.run([BIN / "weft", "synth", "--layers", str(LAYERS), "--embedding", str(EMBEDDING), "--heads", "16",
                               "--heads-kv", "8", "--head", "64", "--ff", "6144", "--vocab", "512", "--context", "4096",
                               "--type", "Q8_0", cls.model], capture_output=True, encoding="utf-8", check=False)
        assert made.returncode == 0, made.stderr

    def machines(self, delay_us, mbit):
        try:
            link = SlowLink(delay_us, mbit)
        except NotPermitted as error:
            print("[  SKIPPED ] SlowLinkTest.OnSlowLink", file=sys.stderr)  # as tests/tidy/check_skips.py counts
            raise unittest.SkipTest(f"a slow link needs root, iproute2 and TUN devices: {error}") from error
        self.addCleanup(link.close)
        workers = []
        for machine in range(2):
            worker = Worker("--insecure", "--no-self-test", "--metrics-port", "9100", listen=f"{ADDRESSES[machine]}:0",
                            prefix=link.prefix(machine), environment=UCX)
            self.addCleanup(worker.kill)
            workers.append(worker)
        return link, workers

    def weft(self, link, workers, *arguments):
        """On machine 0. Results and what it said."""
        done = subprocess.run([*link.prefix(0), str(BIN / "weft"), "run", "-m", str(self.model), "--insecure", "--workers",
                               addresses(workers), "--split-mode", "tensor", "-t", "1", "-c", "4096", "-ub", str(UBATCH),
                               "--temp", "0", "--ignore-eos", "--stats", "--json", "--verbose", *map(str, arguments)],
                              capture_output=True, encoding="utf-8", timeout=300, check=False, env={**os.environ, **UCX})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    @staticmethod
    def seconds(link):
        """What both workers spent so far: waiting and sending in steps, and in collectives."""
        stream, collectives = 0.0, 0.0
        for machine in range(2):
            text = subprocess.run([*link.prefix(machine), "curl", "-s", "http://127.0.0.1:9100/metrics"], check=True,
                                  capture_output=True, encoding="utf-8").stdout
            families = parse(text)
            for name in ("weft_worker_wait_seconds_total", "weft_worker_wire_seconds_total"):
                stream += sum(value for _, _, value in families[name]["samples"])
            histogram = families.get("weft_worker_collective_seconds", {"samples": []})  # empty before the first one
            collectives += sum(value for suffix, _, value in histogram["samples"] if suffix == "_sum")
        return stream, collectives

    def prefill(self, link, workers, overlap):
        before = self.seconds(link)
        result, _ = self.weft(link, workers, "-p", "x " * (CHUNKS * UBATCH), "-n", 1, "--overlap", overlap)
        self.assertGreater(result["prompt_tokens"], CHUNKS * UBATCH - 1)
        after = self.seconds(link)
        stream, collectives = after[0] - before[0], after[1] - before[1]
        print(f"overlap {overlap}: prompt {result['prompt_seconds']:.3f} s; of both ranks: in collectives {collectives:.3f} s, "
              f"streams waited {stream:.3f} s", file=sys.stderr)
        return result, stream

    def test_sums_travel_while_the_other_half_computes(self):
        link, workers = self.machines(100, 1000)
        apart, alone = self.prefill(link, workers, "off")
        beside, waited = self.prefill(link, workers, "on")
        self.assertEqual(apart["tokens"], beside["tokens"])
        self.assertLess(waited, alone / 2)
        # Over a network that is the default.
        default, waited = self.prefill(link, workers, "auto")
        self.assertEqual(apart["tokens"], default["tokens"])
        self.assertLess(waited, alone / 2)

    def test_decode_takes_what_the_link_predicts(self):
        link, workers = self.machines(2000, 1000)
        result, said = self.weft(link, workers, "-p", "x", "-n", 24)
        latency, rate = measured_link(said)
        self.assertGreater(latency, 0.0019)
        token = result["token"]
        parts = token["parts_us"]
        worker = result["processes"][0]
        steps = worker["messages_per_step"]
        self.assertGreaterEqual(steps, 2 * LAYERS + 1)
        compute = (token["wall_us"] - parts["waiting"] - parts["wire"]) / 1e6
        exchanges = steps * latency + worker["bytes_per_step"] / rate
        print(f"a token: {token['wall_us'] / 1e3:.1f} ms; compute {compute * 1e3:.1f} ms, {steps:.0f} exchanges of "
              f"{latency * 1e3:.2f} ms and {worker['bytes_per_step']:.0f} bytes at {rate / 1e6:.0f} MB/s", file=sys.stderr)
        self.assertAlmostEqual((compute + exchanges) / (token["wall_us"] / 1e6), 1, delta=0.15)

    def test_weights_go_at_the_rate_of_the_link(self):
        link, workers = self.machines(100, 1000)
        for transport in ("ucx", "grpc"):
            done = subprocess.run([*link.prefix(0), BENCH, self.model, "3", transport, workers[1].address],
                                  capture_output=True, encoding="utf-8", timeout=120, check=False, env={**os.environ, **UCX})
            self.assertEqual(done.returncode, 0, done.stderr)
            print(done.stdout, file=sys.stderr)
            for digests in ("made on the way", "known"):
                share = float(re.search(rf"digests {digests}: ([\d.]+) of raw", done.stdout).group(1))
                self.assertGreater(share, 0.8, f"{transport}, digests {digests}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
