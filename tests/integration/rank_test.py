#!/usr/bin/env python3
"""Models cut over the devices of worker processes (tensor parallelism) as a person would run them: the answers of one
device by decision 20, what is refused and how, and a rank that dies in the middle. Standard library only.
usage: rank_test.py [--nightly]: --nightly runs the whole matrix of models, ranks and shares, and compares the table of
features in docs/ranks.md with what happens (UPDATE_GOLDEN=1 writes it)."""
import array
import json
import os
import pathlib
import signal
import sys
import tempfile
import unittest

from fleet_test import DEMO, GOLDEN, SOURCE, check_lost, evaluate, prompt_of, running, weft
from workers import Worker, addresses

NIGHTLY = "--nightly" in sys.argv
MODELS = ["llama-gqa", "llama-moe", "llama-f16", "qwen2", "qwen3", "qwen3moe", "llama3-rope", "llama-plain"]
CELLS = ([(count, shares) for count in (1, 2, 3, 4, 5, 7, 8, 16) for shares in ("", "3,1,1,2,1,1,1,1,1,1,1,1,1,1,1,1")]
         if NIGHTLY else [(2, ""), (3, "3,1,1")])


def tolerance_of(model):
    with open(GOLDEN / model / "cases.json", encoding="utf-8") as file:
        return max(json.load(file)["tol_nmse"] / 10, 1e-6)


def normalized_error(got, want):
    x, y = (array.array("f", data) for data in (got, want))
    assert len(x) == len(y) > 0
    return sum((a - b) ** 2 for a, b in zip(x, y)) / sum(b * b for b in y)


class SameAnswers(unittest.TestCase):
    def check(self, model, want, tokens, *arguments, tolerance=1e-6):
        got = evaluate(model, tokens, "-ub", 16, *arguments)
        self.assertLessEqual(normalized_error(got[0], want[0]), tolerance, arguments)
        self.assertEqual(got[1], want[1], (model, arguments))

    def test_golden_models_over_ranks(self):
        for model in MODELS if NIGHTLY else MODELS[:3]:
            tokens = prompt_of(model)
            want = evaluate(model, tokens, "-ub", 16)
            for count, shares in CELLS:
                if count == 1:
                    continue
                flags = ["--local-workers", count, "--split-mode", "tensor"]
                if shares:
                    flags += ["--tensor-split", ",".join(shares.split(",")[:count])]
                self.check(model, want, tokens, *flags, tolerance=tolerance_of(model))

    def test_shape_160m_in_two_groups_of_two(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            made = weft("synth", "--shape", "160m", "--type", "F16", model)
            self.assertEqual(made.returncode, 0, made.stderr)
            tokens = list(range(1, 40))
            want = evaluate(model, tokens, "-ub", 16)
            self.check(model, want, tokens, "--local-workers", 4, "--layout", "tp=2,pp=2")

    def test_unlike_instruction_sets(self):
        tokens = prompt_of("llama-moe")
        want = evaluate("llama-moe", tokens, "-ub", 16)
        with Worker() as best, Worker("--isa", "scalar") as plain:
            self.check("llama-moe", want, tokens, "--workers", addresses([best, plain]), "--split-mode", "tensor",
                       tolerance=tolerance_of("llama-moe"))
            told = weft("run", "-m", GOLDEN / "llama-moe" / "model.gguf", "-p", "a", "-n", 1, "--verbose", "--workers",
                        addresses([best, plain]), "--split-mode", "tensor")
            self.assertEqual(told.returncode, 0, told.stderr)
            self.assertRegex(told.stderr, r"what top_k takes is chosen by rank 0 for all, as w1\.cpu0 \(cpu, scalar, weft .*\) "
                                          r"rounds unlike w0\.cpu0 \(cpu, ")

    def test_like_ranks_choose_for_themselves(self):
        told = weft("run", "-m", GOLDEN / "llama-moe" / "model.gguf", "-p", "a", "-n", 1, "--verbose", "--local-workers", 2,
                    "--split-mode", "tensor")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertNotIn("rank 0", told.stderr)

    def test_demo_text_by_sampling(self):
        def text(*arguments):
            result = weft("run", "-m", DEMO, "-p", "ROMEO:", "-n", 48, "--temp", 0.8, "--top-k", 20, "--seed", 3, "-t", 1,
                          *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout

        self.assertEqual(text("--local-workers", 3, "--split-mode", "tensor", "--tensor-split", "2,1,1"), text())

    def test_wire_types_and_algorithms(self):
        tokens = prompt_of("llama-gqa")
        want = evaluate("llama-gqa", tokens, "-ub", 16)
        flags = ["--local-workers", 3, "--split-mode", "tensor"]
        for wire, most in (("f32", 1e-6), ("bf16", 1e-4), ("q8_0", 1e-3)):
            for algorithm, transport in (("doubling", "auto"), ("scatter-gather", "grpc")):
                got = evaluate("llama-gqa", tokens, "-ub", 16, *flags, "--wire-type", wire, "--allreduce", algorithm,
                               "--transport", transport)
                error = normalized_error(got[0], want[0])
                self.assertLessEqual(error, most, (wire, algorithm))
                self.assertEqual(error > 1e-8, wire != "f32", (wire, algorithm, error))
                if wire == "f32":
                    self.assertEqual(got[1], want[1], algorithm)

    def test_answers_do_not_depend_on_what_is_computed_beside(self):
        tokens = [1 + i % 60 for i in range(40)]
        logits = {evaluate(DEMO, tokens, "-ub", ubatch, "--local-workers", 3, "--split-mode", "tensor", "--tensor-split",
                           "1,1,1", "--allreduce", algorithm)[0]
                  for algorithm in ("auto", "doubling", "scatter-gather") for ubatch in (1, 5, 64)}
        self.assertEqual(len(logits), 1)

    def test_links_are_measured_where_that_decides(self):
        def told(*arguments):
            result = weft("run", "-m", GOLDEN / "qwen3" / "model.gguf", "-p", "a", "-n", 1, "-t", 1, "--verbose",
                          "--split-mode", "tensor", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr

        three = told("--local-workers", 3)
        for pair in ("w0 and w1", "w0 and w2", "w1 and w2"):
            self.assertRegex(three, rf"link of {pair}, measured: [0-9.]+ us, [0-9.e+]+ GB/s")
        self.assertRegex(three, r"sums of \d+ F32: [a-z, ]+; expected recursive doubling [0-9.]+ us, by parts [0-9.]+ us")
        self.assertNotIn("measured", told("--local-workers", 3, "--allreduce", "doubling", "--overlap", "off"))

    def test_sums_travel_while_the_ranks_compute(self):
        tokens = [1 + i % 60 for i in range(150)]

        def flags(overlap, *arguments):
            return ["-ub", 128, "--local-workers", 4, "--overlap", overlap, *arguments]

        for model, layout in (("llama-gqa", ["--split-mode", "tensor"]), ("llama-moe", ["--layout", "tp=2,pp=2"])):
            want = evaluate(model, tokens, "-ub", 128)
            for overlap in ("on", "off"):
                got = evaluate(model, tokens, *flags(overlap, *layout))
                self.assertLessEqual(normalized_error(got[0], want[0]), tolerance_of(model), (model, overlap))

        def told(*arguments):
            result = weft("run", "-m", GOLDEN / "qwen3" / "model.gguf", "-p", "a " * 80, "-n", 1, "-t", 1, "--verbose",
                          *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stderr

        self.assertRegex(told(*flags("on", "--split-mode", "tensor")),
                         r"of 128 tokens: [1-9]\d* of \d+ sums and gathers travel while their rank computes")
        # Workers of one machine reach each other through its memory.
        self.assertNotIn("travel", told(*flags("auto", "--split-mode", "tensor")))
        refused = weft("run", "-m", GOLDEN / "qwen3" / "model.gguf", "-p", "a", "-n", 1, "--overlap", "on")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--overlap: nothing is summed", refused.stderr)

    def test_weights_sent_by_the_coordinator(self):
        tokens = prompt_of("qwen3")
        want = evaluate("qwen3", tokens, "-ub", 16)
        self.check("qwen3", want, tokens, "--local-workers", 2, "--split-mode", "tensor", "--send-weights",
                   tolerance=tolerance_of("qwen3"))


VARIANTS = ["llama-biases", "llama-per-layer", "llama-unequal-heads", "mixtral-fused", "mixtral-split-experts",
            "qwen3-fused-qkv"]
PROMPT = list(range(1, 20))


class Variants(unittest.TestCase):
    def test_fused_and_uneven_tensors(self):
        for name in VARIANTS if NIGHTLY else VARIANTS[2:4] + VARIANTS[5:]:
            model = GOLDEN / "variants" / name / "model.gguf"
            want = evaluate(model, PROMPT, "-ub", 7)
            got = evaluate(model, PROMPT, "-ub", 7, "--local-workers", 3, "--split-mode", "tensor")
            self.assertLessEqual(normalized_error(got[0], want[0]), 1e-6, name)
            self.assertEqual(got[1], want[1], name)


FEATURES = [
    ("llama, grouped queries", "llama-gqa", []),
    ("llama, one KV head, F16 weights", "llama-f16", []),
    ("llama 3 rope factors", "llama3-rope", []),
    ("longrope", "variants/llama-longrope", []),
    ("biases in attention and feed-forward", "variants/llama-biases", []),
    ("heads and columns that differ by layer", "variants/llama-per-layer", []),
    ("key and value heads of unequal size", "variants/llama-unequal-heads", []),
    ("qwen2", "qwen2", []),
    ("qwen3, norms of heads", "qwen3", []),
    ("fused Q, K, V", "variants/qwen3-fused-qkv", []),
    ("experts (Mixtral)", "llama-moe", []),
    ("experts (qwen3moe)", "qwen3moe", []),
    ("gate and up of experts in one tensor", "variants/mixtral-fused", []),
    ("a tensor per expert", "variants/mixtral-split-experts", []),
    ("KV cache F16", "llama-gqa", ["-ctk", "f16", "-ctv", "f16"]),
    ("weights Q8_0, KV cache Q8_0", DEMO, ["-ctk", "q8_0", "-ctv", "q8_0"]),
]
LAYOUTS = [("2 ranks", ["--local-workers", 2, "--split-mode", "tensor"]),
           ("3 ranks 3:1:1", ["--local-workers", 3, "--split-mode", "tensor", "--tensor-split", "3,1,1"]),
           ("tp=2,pp=2", ["--local-workers", 4, "--layout", "tp=2,pp=2"]),
           ("16 ranks", ["--local-workers", 16, "--split-mode", "tensor"])]


def outcome(path, flags, layout):
    tokens = ",".join(map(str, PROMPT))
    flags = flags or ["-ctk", "f32", "-ctv", "f32"]
    command = ["eval", "-m", path, "--tokens", tokens, "--greedy", 8, "-c", 64, "-t", 1, *flags]
    want, got = weft(*command), weft(*command, *layout)
    assert want.returncode == 0, want.stderr
    if got.returncode != 0:
        return "refused: " + got.stderr.strip().splitlines()[-1].removeprefix("weft: error: ")
    return "same tokens" if got.stdout == want.stdout else "other tokens"


@unittest.skipUnless(NIGHTLY, "the matrix of features is nightly")
class Features(unittest.TestCase):
    def test_the_table_of_the_docs_is_what_happens(self):
        lines = ["| | " + " | ".join(name for name, _ in LAYOUTS) + " |", "|---|" + "---|" * len(LAYOUTS)]
        for feature, model, flags in FEATURES:
            path = model if isinstance(model, pathlib.Path) else GOLDEN / model / "model.gguf"
            cells = [outcome(path, flags, layout) for _, layout in LAYOUTS]
            self.assertNotIn("other tokens", cells, feature)
            lines.append(f"| {feature} | " + " | ".join(cells) + " |")
        page = SOURCE / "docs" / "ranks.md"
        text = page.read_text(encoding="utf-8")
        before, rest = text.split("<!-- features: tests/integration/rank_test.py -->\n")
        _, after = rest.split("<!-- end of features -->")
        new = f"{before}<!-- features: tests/integration/rank_test.py -->\n" + "\n".join(lines) + "\n<!-- end of features -->" + after
        if os.environ.get("UPDATE_GOLDEN"):
            page.write_text(new, encoding="utf-8")
        self.assertEqual(page.read_text(encoding="utf-8"), new)


class Refused(unittest.TestCase):
    def test_bad_flags_are_exit_code_2(self):
        for arguments, culprit in (
                (["--split-mode", "tensor"], "--split-mode tensor"),
                (["--local-workers", 3, "--layout", "tp=2"], "--layout"),
                (["--local-workers", 4, "--layout", "tp=2,pp=3"], "--layout"),
                (["--local-workers", 2, "--layout", "tp=zwei"], "--layout"),
                (["--local-workers", 2, "--layout", "ep=2"], "--layout"),
                (["--local-workers", 2, "--split-mode", "tensor", "--tensor-split", "1,1,1"], "--tensor-split"),
                (["--local-workers", 2, "--split-mode", "tensor", "--tensor-split", "0,0"], "--tensor-split"),
                (["--local-workers", 2, "--wire-type", "bf16"], "--wire-type"),
                (["--wire-type", "q8_0"], "--wire-type"),
                (["--local-workers", 2, "--split-mode", "tensor", "--wire-type", "f16"], "--wire-type"),
                (["--local-workers", 2, "--allreduce", "doubling"], "--allreduce")):
            result = weft("eval", "-m", GOLDEN / "qwen3" / "model.gguf", "--tokens", "1,2", *arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stderr))
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(culprit, result.stderr)


class Failure(unittest.TestCase):
    def check_loss(self, number):
        with Worker() as first, Worker() as second, Worker() as third:
            with running(self, [first, second, third], "--split-mode", "tensor") as process:
                check_lost(self, process, second, number)
            # The survivors are free, and idle: they serve the next command.
            result = weft("eval", "-m", GOLDEN / "qwen3" / "model.gguf", "--tokens", "1,2,3", "--workers",
                          addresses([first, third]), "--split-mode", "tensor")
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_rank_that_is_killed(self):
        self.check_loss(signal.SIGKILL)

    def test_a_rank_that_is_stopped(self):
        self.check_loss(signal.SIGSTOP)


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--nightly"], verbosity=2)
