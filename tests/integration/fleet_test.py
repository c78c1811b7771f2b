#!/usr/bin/env python3
"""Runs models over worker processes as a person would: the same answers as on one device, what is counted, and what a
worker that dies, stops or lies does to the command. Standard library only."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from fault_proxy import FaultProxy
from workers import BIN, Worker, addresses

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
WEFT = BIN / "weft"
DEMO = SOURCE / "models" / "shakespeare-q8_0.gguf"
GOLDEN = SOURCE / "tests" / "data" / "models"
GOLDEN_NAMES = ["llama-gqa", "llama-moe", "qwen3", "qwen2"]
EXACT = ["-ctk", "f32", "-ctv", "f32", "-c", "512", "-t", "1"]


def weft(*arguments, timeout=300):
    return subprocess.run([str(WEFT), *map(str, arguments)], capture_output=True, timeout=timeout, encoding="utf-8",
                          errors="surrogateescape", check=False)


def prompt_of(model):
    with open(GOLDEN / model / "cases.json", encoding="utf-8") as file:
        cases = json.load(file)["cases"]
    return max((case["tokens"] for case in cases), key=len)


def evaluate(model, tokens, *arguments):
    """Logits as bytes, and the greedy continuation; of a file, or of a golden model by name."""
    path = model if isinstance(model, pathlib.Path) else GOLDEN / model / "model.gguf"
    return evaluate_on([], path, tokens, *arguments)


def evaluate_on(prefix, path, tokens, *arguments, environment=None):
    """The same by a command line that begins with `prefix`."""
    with tempfile.NamedTemporaryFile(suffix=".f32") as logits:
        command = [*prefix, WEFT, "eval", "-m", path, "--tokens", ",".join(map(str, tokens)), "--logits", logits.name,
                   "--greedy", 8, *EXACT, *arguments]
        result = subprocess.run(list(map(str, command)), capture_output=True, timeout=300, encoding="utf-8",
                                errors="surrogateescape", check=False, env={**os.environ, **(environment or {})})
        assert result.returncode == 0, result.stderr
        return pathlib.Path(logits.name).read_bytes(), result.stdout  # the command replaces the file


@contextlib.contextmanager
def running(test, workers, *arguments):
    """A run that would go on for long, once its first token is out."""
    process = subprocess.Popen(
        [str(WEFT), "run", "-m", str(DEMO), "-p", "ROMEO:", "-n", "100000", "-c", "0", "--ignore-eos",
         "--workers", addresses(workers), "-t", "1", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        test.assertNotEqual(process.stdout.read(1), b"", "no token")
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)


def check_lost(test, process, worker, number):
    """Sends a worker of a running command that signal: the command ends soon, with the worker's name."""
    worker.signal(number)
    start = time.monotonic()
    drain = threading.Thread(target=process.stdout.read)
    drain.start()
    process.wait(30)
    elapsed = time.monotonic() - start
    drain.join(30)
    error = process.stderr.read().decode()
    test.assertEqual(process.returncode, 3, error)
    test.assertIn(worker.address, error)
    test.assertLess(elapsed, 10, error)  # 3 s on an idle machine


class SameAnswers(unittest.TestCase):
    def check(self, model, workers, *arguments):
        tokens = prompt_of(model)
        want = evaluate(model, tokens, *arguments)
        self.assertGreater(len(want[0]), 0)
        got = evaluate(model, tokens, *workers, *arguments)
        self.assertEqual(want, got, (model, workers, arguments))

    def test_golden_models_over_local_workers_give_equal_bits(self):
        for model in GOLDEN_NAMES:
            for count, ubatch in ((1, 7), (2, 16), (3, 33)):
                self.check(model, ["--local-workers", count], "-ub", ubatch)

    def test_a_model_of_twelve_layers_over_five_and_twelve_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            made = weft("synth", "--layers", 12, "--embedding", 128, "--heads", 4, "--heads-kv", 2, "--head", 32, "--ff",
                        256, "--vocab", 512, "--type", "Q8_0", model)
            self.assertEqual(made.returncode, 0, made.stderr)
            tokens = list(range(1, 60))
            want = evaluate(model, tokens, "-ub", 16)
            for count in (5, 12):
                self.assertEqual(evaluate(model, tokens, "-ub", 16, "--local-workers", count), want, count)

    def test_shape_160m_over_three_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            made = weft("synth", "--shape", "160m", model)
            self.assertEqual(made.returncode, 0, made.stderr)
            tokens = list(range(1, 40))
            want = evaluate(model, tokens, "-ub", 16)
            self.assertEqual(evaluate(model, tokens, "-ub", 16, "--local-workers", 3), want)

    def test_over_grpc_instead_of_ucx(self):
        self.check("llama-gqa", ["--local-workers", "2", "--transport", "grpc"], "-ub", "7")

    def test_weights_sent_by_the_coordinator(self):
        self.check("llama-gqa", ["--local-workers", "2", "--send-weights"], "-ub", "16")
        self.check("llama-moe", ["--local-workers", "2", "--send-weights"], "-ub", "16")

    def test_data_goes_to_the_address_that_is_announced(self):
        tokens = prompt_of("qwen3")
        want = evaluate("qwen3", tokens, "-ub", "7")
        with (FaultProxy() as proxy, Worker("--announce", proxy.address, "--transport", "grpc") as first,
              Worker("--transport", "grpc") as second):
            proxy.target = first.address
            got = evaluate("qwen3", tokens, "-ub", "7", "--transport", "grpc", "--workers", addresses([first, second]))
            self.assertEqual(got, want)
            self.assertEqual(proxy.count(), 2)  # the second worker and the coordinator

    def check_blind_worker(self, model, fault, *blind):
        """A second worker that does not see the file, beside one with that fault: the answers, the first one's log and
        what the command said."""
        tokens = prompt_of(model)
        want = evaluate(model, tokens, "-ub", "16")
        binary = BIN.parent / "tests" / "weft-worker-test"
        with Worker("--no-self-test", "--fault", fault, binary=binary) as first, \
                Worker("--no-self-test", "--no-files", *blind) as second:
            result = weft("eval", "-m", GOLDEN / model / "model.gguf", "--tokens", ",".join(map(str, tokens)),
                          "--greedy", 8, *EXACT, "-ub", "16", "--transport", "grpc", "--workers",
                          addresses([first, second]))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stdout, want[1])
            return first.text(), result.stderr, first.address

    def test_weights_come_from_a_worker_that_sees_the_file(self):
        log, said, _ = self.check_blind_worker("llama-gqa", "GiveWeights:count")
        self.assertIn("fault: GiveWeights count", log)
        self.assertNotIn("wrong bytes", said)

    def test_a_corrupting_worker_is_named_and_its_weights_come_from_here(self):
        for count in (1, 2):
            log, said, address = self.check_blind_worker("llama-gqa", f"kWeights:corrupt:{count}")
            self.assertIn("fault: kWeights corrupt", log)
            lines = [line for line in said.splitlines() if "wrong bytes" in line]
            self.assertEqual(len(lines), 1, said)
            self.assertIn(address, lines[0])

    def test_a_load_that_was_cut_off_goes_on_from_the_cache(self):
        model = GOLDEN / "llama-gqa" / "model.gguf"
        tokens = prompt_of("llama-gqa")
        want = evaluate("llama-gqa", tokens, "-ub", "16")
        binary = BIN.parent / "tests" / "weft-worker-test"
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--no-self-test", "--no-files", "--cache", folder]
            kept = {}
            # Near the end: of what the worker confirmed, some is in its cache.
            for fault, code in (("kWeights:kill:24", 3), ("kWeights:count:1000000", 0)):
                with Worker(*arguments, "--fault", fault, binary=binary) as worker:
                    result = weft("eval", "-m", model, "--tokens", ",".join(map(str, tokens)), "--greedy", 8, *EXACT,
                                  "-ub", "16", "--transport", "grpc", "--workers", worker.address)
                    self.assertEqual(result.returncode, code, result.stderr)
                found = {path: path.stat().st_ino for path in pathlib.Path(folder).glob("*.weight")}
                self.assertGreater(len(found), len(kept))
                self.assertLessEqual(kept.items(), found.items())  # used, not written again
                kept = found
            self.assertEqual(result.stdout, want[1])

    def test_a_visible_file_that_differs_from_its_digests(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            model.write_bytes((GOLDEN / "llama-gqa" / "model.gguf").read_bytes())
            self.assertEqual(weft("digest", model).returncode, 0)
            arguments = ["run", "-m", model, "-p", "x", "-n", "100000", "--ignore-eos", "--local-workers", "1", "-c", "0"]
            fine = weft("run", "-m", model, "-p", "x", "-n", "8", "--ignore-eos", "--local-workers", "1")
            self.assertEqual(fine.returncode, 0, fine.stderr)
            with open(model, "r+b") as file:  # a byte that the identity does not look at
                file.seek(-5, os.SEEK_END)
                byte = file.read(1)
                file.seek(-5, os.SEEK_END)
                file.write(bytes([byte[0] ^ 1]))
            damaged = weft(*arguments)
            self.assertNotEqual(damaged.returncode, 0)
            self.assertIn("differs from its digests", damaged.stderr)
            self.assertIn(str(model), damaged.stderr)

    def test_workers_over_tcp_that_two_coordinators_share(self):
        tokens = prompt_of("qwen3")
        want = evaluate("qwen3", tokens, "-ub", "7")
        with Worker() as first, Worker() as second:
            results = []

            def run():
                for _ in range(3):
                    results.append(evaluate("qwen3", tokens, "-ub", "7", "--workers", addresses([first, second])))

            threads = [threading.Thread(target=run) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(300)
            self.assertEqual(len(results), 6)
            for result in results:
                self.assertEqual(result, want)
            self.assertEqual(first.stop(), 0)
            self.assertEqual(second.stop(), 0)

    def test_a_device_with_a_wrong_rope_is_planned_around(self):
        tokens = ",".join(map(str, prompt_of("llama-gqa")))
        model = GOLDEN / "llama-gqa" / "model.gguf"
        want = weft("eval", "-m", model, "--tokens", tokens, "--greedy", 8, *EXACT)
        self.assertEqual(want.returncode, 0, want.stderr)
        binary = BIN.parent / "tests" / "weft-worker-test"
        with Worker("--devices", "cpu,wrong-rope:1", binary=binary) as worker:
            self.assertIn("rope", worker.text())
            got = weft("eval", "-m", model, "--tokens", tokens, "--greedy", 8, *EXACT, "--workers", worker.address)
            self.assertEqual(got.returncode, 0, got.stderr)
            self.assertEqual(got.stdout, want.stdout)
            listed = weft("workers", "--workers", worker.address, "--no-links", "--json")
            devices = json.loads(listed.stdout)["workers"][0]["devices"]
            wrong = [device for device in devices if device["quarantined"]]
            self.assertEqual(len(wrong), 1, devices)
            self.assertEqual(wrong[0]["kind"], "gpu")
            self.assertIn("rope", " ".join(wrong[0]["quarantined"]))
        with Worker("--devices", "cpu,fake:2", binary=binary) as worker:
            got = weft("eval", "-m", model, "--tokens", tokens, "--greedy", 8, *EXACT, "--workers", worker.address)
            self.assertEqual(got.returncode, 0, got.stderr)
            self.assertEqual(got.stdout, want.stdout)

    def test_shares_and_demo_text(self):
        arguments = ["run", "-m", DEMO, "-p", "ROMEO:", "-n", "24", "--temp", "0", "-t", "2"]
        want = weft(*arguments)
        self.assertEqual(want.returncode, 0, want.stderr)
        got = weft(*arguments, "--local-workers", "2", "--tensor-split", "3,1")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(got.stdout, want.stdout)


class Counted(unittest.TestCase):
    def test_one_message_each_way_per_worker_and_step(self):
        result = weft("run", "-m", DEMO, "-p", "ROMEO:", "-n", "20", "--temp", "0", "--local-workers", "2", "-t", "2",
                      "--stats", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertGreater(report["weights_seconds"], 0)
        self.assertGreater(report["load_seconds"], report["weights_seconds"])
        workers = [process for process in report["processes"] if process["name"].startswith("w")]
        self.assertEqual(len(workers), 2)
        for worker in workers:
            self.assertEqual(worker["requests_per_step"], 1, worker)
            self.assertEqual(worker["replies_per_step"], 1, worker)
            self.assertEqual(worker["program_sends"], 0, worker)
            self.assertLess(worker["request_bytes_per_step"], 1024, worker)
        self.assertEqual(workers[0]["messages_per_step"], 1, workers)  # the hand-off
        self.assertEqual(workers[1]["messages_per_step"], 0, workers)

    def test_the_parts_of_a_token_add_up_to_the_wall_clock(self):
        for placement in ((), ("--local-workers", "2"), ("--local-workers", "2", "--split-mode", "tensor")):
            with self.subTest(placement):
                result = weft("run", "-m", DEMO, "-p", "ROMEO:", "-n", "60", "--temp", "0", "-t", "2", "--ignore-eos", "--stats",
                              "--json", *placement)
                self.assertEqual(result.returncode, 0, result.stderr)
                report = json.loads(result.stdout)
                token = report["token"]
                self.assertEqual(token["tokens"], 60)
                for times in (token, token["all"]):
                    parts = times["parts_us"]
                    self.assertAlmostEqual(sum(parts.values()) / times["wall_us"], 1, delta=0.02, msg=times)
                    self.assertTrue(all(part >= 0 for part in parts.values()), parts)
                    self.assertLess(parts["other"], 0.05 * times["wall_us"], times)
                    self.assertGreater(parts["computing"], 0)
                # The same time by another watch.
                self.assertAlmostEqual(token["all"]["wall_us"] / (1e6 * report["decode_seconds"]), 1, delta=0.02)
                if "tensor" in placement:
                    self.assertGreater(token["parts_us"]["wire"], 0)


class Listing(unittest.TestCase):
    def test_workers_command(self):
        with Worker("--name", "alpha") as first, Worker("--name", "beta") as second:
            result = weft("workers", "--workers", addresses([first, second]), "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            report = json.loads(result.stdout)
            self.assertEqual([worker["host"] for worker in report["workers"]], ["alpha", "beta"])
            self.assertEqual(len(report["links"]), 3)
            for link in report["links"]:
                self.assertNotIn("error", link)
                self.assertTrue(link["same_host"], link)
                self.assertGreater(link["latency_us"], 0)
                self.assertGreater(link["bytes_per_s"], 0)
            text = weft("workers", "--workers", addresses([first, second]))
            self.assertIn("w1.cpu0", text.stdout)

    def test_a_worker_without_work_is_an_error(self):
        result = weft("eval", "-m", GOLDEN / "llama-gqa" / "model.gguf", "--tokens", "1,2,3", "--local-workers", "2",
                      "--tensor-split", "1,0")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("w1", result.stderr)
        self.assertIn("--allow-idle", result.stderr)
        result = weft("eval", "-m", GOLDEN / "llama-gqa" / "model.gguf", "--tokens", "1,2,3", "--local-workers", "2",
                      "--tensor-split", "1,0", "--allow-idle")
        self.assertEqual(result.returncode, 0, result.stderr)


class Failure(unittest.TestCase):
    def error_of(self, result):
        lines = [line for line in result.stderr.splitlines() if "error: " in line]
        self.assertEqual(len(lines), 1, result.stderr)
        return lines[0]

    def test_nobody_listens(self):
        result = weft("eval", "-m", GOLDEN / "llama-gqa" / "model.gguf", "--tokens", "1,2", "--workers", "127.0.0.1:9")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("127.0.0.1:9", self.error_of(result))

    def test_bad_flags_are_exit_code_2(self):
        model = GOLDEN / "llama-gqa" / "model.gguf"
        for arguments, culprit in (
                (["--workers", "a:b:c"], "a:b:c"),
                (["--workers", "127.0.0.1:7000,127.0.0.1:7000"], "twice"),
                (["--local-workers", "-1"], "--local-workers"),
                (["--local-workers", "1", "--transport", "pigeon"], "pigeon"),
                (["--local-workers", "1", "--worker-timeout", "0"], "--worker-timeout")):
            result = weft("eval", "-m", model, "--tokens", "1,2", *arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stderr))
            self.assertIn(culprit, self.error_of(result))

    def check_loss(self, number):
        with Worker() as first, Worker() as second:
            with running(self, [first, second]) as process:
                check_lost(self, process, second, number)
            # The other one, and the lost one started again, serve the next command.
            with Worker() as third:
                result = weft("eval", "-m", GOLDEN / "qwen3" / "model.gguf", "--tokens", "1,2,3", "--workers",
                              addresses([first, third]))
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_killed_worker(self):
        self.check_loss(signal.SIGKILL)

    def test_a_stopped_worker(self):
        self.check_loss(signal.SIGSTOP)

    def test_a_coordinator_that_vanishes_leaves_a_usable_worker(self):
        with Worker("--lease-ms", "1000") as worker:
            with running(self, [worker]) as process:
                process.kill()
            result = weft("eval", "-m", GOLDEN / "qwen3" / "model.gguf", "--tokens", "1,2,3", "--workers",
                          worker.address)
            self.assertEqual(result.returncode, 0, result.stderr)
            deadline = time.monotonic() + 30
            while worker.text().count("closed") < 2 and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(worker.text().count("closed"), 2, worker.text())

    def test_a_coordinator_that_is_killed_leaves_no_files(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen(
                [WEFT, "run", "-m", DEMO, "-p", "ROMEO:", "-n", "100000", "-c", "0", "--ignore-eos", "--local-workers", "2"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": folder})
            self.assertNotEqual(process.stdout.read(1), b"", "no token")
            self.assertNotEqual(os.listdir(folder), [])
            process.kill()
            process.communicate(timeout=60)
            deadline = time.monotonic() + 30
            while os.listdir(folder) and time.monotonic() < deadline:
                time.sleep(0.05)
            self.assertEqual(os.listdir(folder), [])

    def test_a_worker_leaves_its_folder_alone(self):
        """But for a coordinator's."""
        with tempfile.TemporaryDirectory() as folder:
            for flags, stays in ([], True), (["--remove-folder"], False):
                own = pathlib.Path(folder, "sockets")
                own.mkdir()
                worker = Worker("--no-self-test", "--parent", os.getpid(), *flags, listen=f"unix:{own}/w.sock")
                self.assertEqual(worker.stop(), 0)
                self.assertEqual(own.exists(), stays)
                if stays:
                    own.rmdir()

    def test_not_enough_memory_at_a_worker(self):
        with Worker("--memory", "64kb") as worker:
            result = weft("run", "-m", DEMO, "-p", "x", "-n", "1", "--workers", worker.address)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn("w0", self.error_of(result))

    def test_a_worker_refuses_an_address_of_all(self):
        result = subprocess.run([str(BIN / "weft-worker"), "--listen", "0.0.0.0:0"], capture_output=True, timeout=60,
                                encoding="utf-8", check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("--insecure", result.stderr)

    def test_flags_of_a_worker_that_contradict_are_refused(self):
        for arguments, culprit in (
                (["--listen", "a:b:c"], "a:b:c"),
                (["--listen", "127.0.0.1:70000"], "70000"),
                (["--data-listen", "0.0.0.0"], "--data-listen"),  # without --insecure
                (["--data-ports", "7200-7100"], "--data-ports"),
                (["--data-ports", "x"], "--data-ports"),
                (["--announce", "two words"], "--announce"),
                (["--announce", "unix:/tmp/x"], "--announce"),
                (["--announce", "0.0.0.0"], "--announce"),
                (["--parent", "-1"], "--parent"),
                (["--name", "two\nlines"], "--name"),
                (["--name", "x" * 300], "--name"),
                (["--threads", "-1"], "--threads"),
                (["--devices", "toaster"], "toaster"),
                (["--transport", "pigeon"], "pigeon"),
                (["--memory", "9000000tb"], "--memory"),
                (["--memory", "99999999999999999999"], "--memory"),
                (["--memory", "-1"], "--memory"),
                (["--metrics-port", "-1"], "--metrics-port"),
                (["--tls=", "-q"], "--tls: the value is empty"),
                (["--tls", ""], "--tls"),  # most likely a variable that is not set
                (["--metrics-token-file", ""], "--metrics-token-file"),
                (["--lease-ms", "99999999999999999999"], "--lease-ms")):
            result = subprocess.run([str(BIN / "weft-worker"), *arguments], capture_output=True, timeout=60, encoding="utf-8",
                                    check=False)
            self.assertEqual(result.returncode, 2, (arguments, result.stderr))
            self.assertIn(culprit, self.error_of(result))

    def test_one_worker_at_two_addresses_is_refused(self):
        with Worker("--insecure", listen="0.0.0.0:0") as worker:
            port = worker.address.rsplit(":", 1)[1]
            result = weft("run", "-m", DEMO, "-p", "x", "-n", "1", "--workers", f"127.0.0.1:{port},127.0.0.2:{port}")
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(f"(127.0.0.2:{port}) is the same process as worker w0 (127.0.0.1:{port})", result.stderr)

    def test_a_second_worker_on_the_same_address_is_refused(self):
        with Worker() as worker:
            result = subprocess.run([str(BIN / "weft-worker"), "--listen", worker.address], capture_output=True,
                                    timeout=60, encoding="utf-8", check=False)
            self.assertEqual(result.returncode, 1)
            self.assertIn(worker.address, result.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
