#!/usr/bin/env python3
"""Three workers and a coordinator on machines of their own (network namespaces, data over UCX and tcp): the same answers
as in one process, and what `weft run --stats` claims compared with what the interfaces counted. Standard library only;
without the right to make namespaces the tests are skipped."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

from fleet_test import GOLDEN, evaluate_on, prompt_of
from namespaces import Machines, NotPermitted
from workers import BIN, Worker, addresses

WORKERS = 3
COORDINATOR = 3  # its machine
UCX = {"UCX_TLS": "tcp"}
# Ethernet, IP, TCP with time stamps. A packet of the counters may be many of the cable, but has one header.
PACKET_BYTES = 66
# What UCX and we put before a message: measured 45.
MESSAGE_BYTES = 64
# Pings, acknowledgements and HTTP/2 frames of sessions, per run: they depend on how long it takes.
SESSION_BYTES = 20_000
CHUNK = 512  # tokens of a prefill step
STEPS = 256


class OnMachines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.machines = Machines(WORKERS + 1)
        except NotPermitted as error:
            print("[  SKIPPED ] NamespacesTest.OnMachines", file=sys.stderr)  # as tests/tidy/check_skips.py counts
            raise unittest.SkipTest(f"network namespaces need root and iproute2: {error}") from error
        cls.addClassCleanup(cls.machines.close)
        cls.workers = []
        for i in range(WORKERS):
            worker = Worker("--insecure", "--no-self-test", listen=f"{cls.machines.addresses[i]}:0",
                            prefix=cls.machines.prefix(i), environment=UCX)
            cls.addClassCleanup(worker.kill)
            cls.workers.append(worker)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = pathlib.Path(folder.name) / "model.gguf"
        made = subprocess.run([BIN / "weft", "synth", "--layers", "6", "--embedding", "64", "--heads", "2", "--heads-kv", "1",
                               "--head", "32", "--ff", "128", "--vocab", "512", "--context", "16384", "--type", "Q8_0",
                               cls.model], capture_output=True, encoding="utf-8", check=False)
        assert made.returncode == 0, made.stderr

    def weft(self, *arguments):
        """On the coordinator's machine."""
        result = subprocess.run([*self.machines.prefix(COORDINATOR), str(BIN / "weft"), *map(str, arguments)],
                                capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=300, check=False,
                                env={**os.environ, **UCX})
        self.assertEqual(result.returncode, 0, result.stderr)
        unexpected = [line for line in result.stderr.splitlines() if "warning" in line and "--insecure:" not in line]
        self.assertEqual(unexpected, [])
        return result

    def run_and_count(self, prompt_chunks, count):
        """A prompt of so many whole chunks and one token; what was claimed, and what each interface counted."""
        before = [self.machines.counters(i) for i in range(WORKERS + 1)]
        result = self.weft("run", "-m", self.model, "-p", "x " * (prompt_chunks * CHUNK), "-n", count, "--temp", "0",
                           "--ignore-eos", "-c", 8192 + 512, "-ub", CHUNK, "-t", "1", "--stats", "--json", "--insecure",
                           "--workers", addresses(self.workers))
        after = [self.machines.counters(i) for i in range(WORKERS + 1)]
        claimed = json.loads(result.stdout)
        self.assertEqual(claimed["prompt_tokens"], prompt_chunks * CHUNK + 1)
        return claimed, [a - b for a, b in zip(after, before)]

    def check_close(self, what, packets, sent, claimed_bytes, messages):
        """The bytes within packets are those claimed and little else."""
        inside = sent - PACKET_BYTES * packets
        print(f"{what}: {sent} bytes in {packets} packets, within them {inside}; claimed {claimed_bytes} bytes in "
              f"{messages} messages", file=sys.stderr)
        self.assertGreaterEqual(inside, claimed_bytes, what)
        self.assertLessEqual(inside, claimed_bytes + MESSAGE_BYTES * messages + SESSION_BYTES, what)

    def test_data_travels_over_ucx(self):
        report = json.loads(self.weft("workers", "--insecure", "--workers", addresses(self.workers), "--json").stdout)
        self.assertEqual(len(report["links"]), 6)
        for link in report["links"]:
            self.assertEqual((link["transport"], link["same_host"]), ("tcp", False), link)

    def test_a_worker_on_all_addresses_announces_one_that_others_reach(self):
        with Worker("--insecure", "--no-self-test", listen="0.0.0.0:0", prefix=self.machines.prefix(0),
                    environment=UCX) as worker:
            port = worker.address.rsplit(":", 1)[1]
            both = f"{self.machines.addresses[0]}:{port},{self.workers[1].address}"
            report = json.loads(self.weft("workers", "--json", "--insecure", "--workers", both).stdout)
            self.assertEqual([link["transport"] for link in report["links"]], ["tcp"] * 3, report)

    def test_golden_models_give_equal_bits(self):
        for model in ("llama-gqa", "qwen3"):
            tokens = prompt_of(model)
            path = GOLDEN / model / "model.gguf"
            want = evaluate_on([], path, tokens, "-ub", 16)
            # Two workers, since not all of these models have three layers.
            got = evaluate_on(self.machines.prefix(COORDINATOR), path, tokens, "-ub", 16, "--insecure", "--workers",
                              addresses(self.workers[:2]), environment=UCX)
            self.assertEqual(want, got, model)
        tokens = list(range(1, 60))
        want = evaluate_on([], self.model, tokens, "-ub", 16)
        got = evaluate_on(self.machines.prefix(COORDINATOR), self.model, tokens, "-ub", 16, "--insecure", "--workers",
                          addresses(self.workers), environment=UCX)
        self.assertEqual(want, got)

    def test_decode_at_8k_costs_what_is_claimed(self):
        _, short = self.run_and_count(16, 1)
        claimed, long = self.run_and_count(16, 1 + STEPS)
        self.assertEqual(claimed["plan"]["logits_fetched"], 0)
        processes = claimed["processes"]
        self.assertEqual([process["name"] for process in processes], ["w0", "w1", "w2"])
        for process in processes:
            self.assertEqual(process["steps"], STEPS)
            self.assertEqual((process["requests_per_step"], process["replies_per_step"]), (1, 1), process)
            self.assertEqual(process["program_sends"], 0, process)
            self.assertLess(process["request_bytes_per_step"], 1024, process)
        # Only the last has outputs: candidates.
        self.assertLess(processes[0]["reply_bytes_per_step"], 64)
        self.assertLess(processes[2]["reply_bytes_per_step"], 1024)
        counted = long[COORDINATOR] - short[COORDINATOR]
        requests = sum(process["request_bytes_per_step"] for process in processes) * STEPS
        replies = sum(process["reply_bytes_per_step"] for process in processes) * STEPS
        messages = WORKERS * STEPS
        self.check_close("requests of decode", counted.sent_packets, counted.sent_bytes, requests, messages)
        self.check_close("replies of decode", counted.received_packets, counted.received_bytes, replies, messages)
        # One packet each, and at most another to acknowledge it.
        for packets in (counted.sent_packets, counted.received_packets):
            self.assertGreaterEqual(packets, messages * 0.5)  # tcp may join two that are close
            self.assertLessEqual(packets, 2 * messages + 200)

    def test_hand_offs_of_a_prefill_pass_the_coordinator_by(self):
        small, short = self.run_and_count(1, 1)
        large, long = self.run_and_count(16, 1)

        def total(claimed, key, number=None):
            return sum(process[key] * process["steps"] for i, process in enumerate(claimed["prompt_processes"])
                       if number in (None, i))

        def added(key, number=None):
            return total(large, key, number) - total(small, key, number)

        hand_offs = added("bytes_per_step")
        self.assertEqual(hand_offs, 15 * CHUNK * 64 * 4 * 2)
        counted = long[COORDINATOR] - short[COORDINATOR]
        self.check_close("requests of a prefill", counted.sent_packets, counted.sent_bytes,
                         added("request_bytes_per_step"), added("requests_per_step"))
        self.check_close("replies of a prefill", counted.received_packets, counted.received_bytes,
                         added("reply_bytes_per_step"), added("replies_per_step"))
        self.assertLess(counted.sent_bytes + counted.received_bytes, hand_offs / 4)
        for worker in (0, 1):
            counted = long[worker] - short[worker]
            self.check_close(f"w{worker} during a prefill", counted.sent_packets, counted.sent_bytes,
                             added("bytes_per_step", worker) + added("reply_bytes_per_step", worker),
                             added("messages_per_step", worker) + added("replies_per_step", worker))

    def test_a_cable_that_is_pulled_loses_the_worker(self):
        command = [*self.machines.prefix(COORDINATOR), str(BIN / "weft"), "run", "-m", str(self.model), "-p", "x", "-n",
                   "100000", "-c", "16384", "--ignore-eos", "-t", "1", "--insecure", "--workers", addresses(self.workers)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **UCX}) as process:
            try:
                self.assertTrue(process.stdout.read(1), "no token")
                self.machines.set_link(1, "down")
                start = time.monotonic()
                _, error = process.communicate(timeout=60)
                elapsed = time.monotonic() - start
            finally:
                process.kill()
                self.machines.set_link(1, "up")
        self.assertEqual(process.returncode, 3, error)
        self.assertIn(self.workers[1].address, error.decode())
        print(f"lost after {elapsed:.1f} s", file=sys.stderr)
        self.assertLess(elapsed, 10)  # 3 s on an idle machine
        self.weft("workers", "--no-links", "--insecure", "--workers", addresses(self.workers))


class TwoMachinesOfTwoWorkers(unittest.TestCase):
    """What lies in namespaces of one kernel counts as machines, and two workers beside each other in one as one."""

    def test_ranks_of_one_machine_sum_first(self):
        try:
            machines = Machines(3)
        except NotPermitted as error:
            print("[  SKIPPED ] NamespacesTest.TwoMachinesOfTwoWorkers", file=sys.stderr)
            raise unittest.SkipTest(f"network namespaces need root and iproute2: {error}") from error
        self.addCleanup(machines.close)
        workers = []
        for i in (0, 1, 0, 1):
            worker = Worker("--insecure", "--no-self-test", listen=f"{machines.addresses[i]}:0", prefix=machines.prefix(i))
            self.addCleanup(worker.kill)
            workers.append(worker)
        model = GOLDEN / "llama-gqa" / "model.gguf"
        tokens = prompt_of("llama-gqa")
        flags = ["--insecure", "--workers", addresses(workers), "--split-mode", "tensor"]
        want = evaluate_on([], model, tokens, "-ub", 16)
        got = evaluate_on(machines.prefix(2), model, tokens, "-ub", 16, *flags)
        self.assertEqual(want[1], got[1])
        told = subprocess.run([*machines.prefix(2), str(BIN / "weft"), "run", "-m", str(model), "-p", "a", "-n", "1", "-t",
                               "1", "--verbose", *flags], capture_output=True, encoding="utf-8", timeout=300, check=False)
        self.assertEqual(told.returncode, 0, told.stderr)
        # Ranks 0 and 2 are on one machine: no other algorithm sums in that order.
        sums = re.findall(r"sums of \d+ F32: ([a-z, ]+);", told.stderr)
        self.assertTrue(sums and all(name.startswith("hosts first") for name in sums), told.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
