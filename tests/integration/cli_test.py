#!/usr/bin/env python3
"""Runs the weft program as a person would: every command, good and bad input, exit codes, output formats, and the demo
model's continuation and perplexity against the figures that came with it. Standard library only."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
WEFT = os.environ.get("WEFT_BIN_DIR", "build/release/bin") + "/weft"
WORKER = WEFT + "-worker"
MODELS = SOURCE / "models"
DATA = SOURCE / "tests" / "data" / "models"
F16 = MODELS / "shakespeare-f16.gguf"
Q8 = MODELS / "shakespeare-q8_0.gguf"
COMMANDS = ["run", "eval", "perplexity", "tokenize", "inspect", "bench", "explain", "synth", "workers", "doctor", "digest"]


def weft(*arguments, text_in=None):
    return subprocess.run([WEFT, *map(str, arguments)], input=text_in, capture_output=True, timeout=300,
                          encoding="utf-8", errors="surrogateescape", check=False)


class Usage(unittest.TestCase):
    def test_help_of_every_command_has_an_example(self):
        self.assertIn("Example:", weft("--help").stdout)
        for command in COMMANDS:
            result = weft(command, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertIn("Example: weft " + command, result.stdout)
            self.assertIn("--json", result.stdout, command)

    def test_version(self):
        self.assertRegex(weft("--version").stdout, r"^weft \d+\.\d+\.\d+")

    def check_error(self, code, text, *arguments):
        result = weft(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stderr))
        lines = [line for line in result.stderr.splitlines() if line.startswith("weft: error: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(text, lines[0])
        self.assertEqual(result.stdout, "")

    def test_bad_grammars_are_named(self):
        self.check_error(2, "--json-schema: JSON schema: #: the keyword 'not'", "run", "-m", Q8, "-p", "x", "--json-schema",
                         '{"not":{}}')
        self.check_error(2, "/no/such", "run", "-m", Q8, "-p", "x", "--grammar", "/no/such")
        self.check_error(2, "exclude each other", "run", "-m", Q8, "-p", "x", "--grammar", "x", "--json-schema", "{}")
        self.check_error(2, "--ignore-eos", "run", "-m", Q8, "-p", "x", "--json-schema", "{}", "--ignore-eos")

    def test_bad_sampler_flags_are_named(self):
        for bias, word in (("x", "'x'"), ("5", "'5'"), ("5-x", "'5-x'"), ("-5+1", "'-5+1'"), ("99999999+1", "99999999")):
            self.check_error(2, word, "run", "-m", Q8, "-p", "x", f"--logit-bias={bias}")
        self.check_error(2, "dry-sequence-breaker", "run", "-m", Q8, "-p", "x", "--dry-multiplier", 1,
                         "--dry-sequence-breaker", "x" * 50)
        self.check_error(2, "--mirostat", "run", "-m", Q8, "-p", "x", "--mirostat", "3")

    def test_bad_usage_is_exit_code_2_and_one_line(self):
        self.check_error(2, "subcommand", )
        self.check_error(2, "", "juggle")
        self.check_error(2, "--model", "run", "-p", "x")
        self.check_error(2, "/no/such.gguf", "run", "-m", "/no/such.gguf", "-p", "x")
        self.check_error(2, "/no/such.gguf", "inspect", "/no/such.gguf")
        self.check_error(2, "magic", "run", "-m", SOURCE / "README.md", "-p", "x")
        self.check_error(2, "spiral", "run", "-m", Q8, "-p", "x", "--isa", "spiral")
        self.check_error(2, "-ctk", "run", "-m", Q8, "-p", "x", "-ctk", "q4_k")
        self.check_error(2, "-t", "run", "-m", Q8, "-p", "x", "-t", "-3")
        self.check_error(2, "-n", "run", "-m", Q8, "-p", "x", "-n", "-5")
        self.check_error(2, "repeat-penalty", "run", "-m", Q8, "-p", "x", "--repeat-penalty", "0")
        self.check_error(2, "-c", "run", "-m", Q8, "-p", "x", "-c", "-1")
        self.check_error(2, "--seed", "run", "-m", Q8, "-p", "x", "--seed", "99999999999999999999")
        self.check_error(2, "--layout", "run", "-m", Q8, "-p", "x", "-sm", "none", "--layout", "tp=2")
        self.check_error(2, "--layout", "run", "-m", Q8, "-p", "x", "-sm", "layer", "--layout", "tp=2")
        for flag, value in (("--join-workers", 0), ("--join-lease", "nan"), ("--worker-timeout", "nan"),
                            ("--worker-timeout", "0")):
            self.check_error(2, flag, "run", "-m", Q8, "-p", "x", flag, value)
        self.check_error(2, "--api-key", "serve", "-m", Q8, "--port", "0", "--api-key", "a\nb")
        self.check_error(2, "--no-api-key", "serve", "-m", Q8, "--port", "0", "--api-key", "a", "--no-api-key")
        self.check_error(2, "pigeon", "run", "-m", Q8, "-p", "x", "--transport", "pigeon")
        self.check_error(2, "twice", "run", "-m", Q8, "-p", "x", "--layout", "tp=2,tp=1")
        self.check_error(2, "token id", "eval", "-m", Q8, "--tokens", "1,two")
        self.check_error(2, "99999", "eval", "-m", Q8, "--tokens", "1,99999")
        for tokens in (",", "1,,2", "1,2,"):
            self.check_error(2, "no token ids", "eval", "-m", Q8, "--tokens", tokens)
        self.check_error(2, "raise -c", "eval", "-m", Q8, "--tokens", "1,2,3,4,5", "-c", "4")
        self.check_error(2, "raise -c", "run", "-m", Q8, "-p", "to be or not to be " * 20, "-c", "16")
        self.check_error(2, "do not fill one chunk", "perplexity", "-m", Q8, "-f", DATA / "llama-gqa" / "cases.json",
                         "-c", "100000")
        self.check_error(2, "no/such/text", "perplexity", "-m", Q8, "-f", "no/such/text")
        self.check_error(2, "/dev/zero: not a regular file", "perplexity", "-m", Q8, "-f", "/dev/zero")
        self.check_error(2, "shape", "synth", "--shape", "9000b", "/tmp/never.gguf")

    def test_an_empty_value_switches_nothing_off(self):
        for flag in ("--workers", "--workers-dns", "--tls", "--layout"):
            self.check_error(2, flag, "run", "-m", Q8, "-p", "x", "-n", "1", flag, "")
        for flag in ("--api-key", "--api-key-file", "--metrics-token-file", "--host"):
            self.check_error(2, flag, "serve", "-m", Q8, "--port", "0", flag, "")
        for value in ("", ","):
            self.check_error(2, "--workers", "doctor", "--workers", value)
        # The parser alone would take the next argument as the value.
        self.check_error(2, "--api-key: the value is empty", "serve", "-m", Q8, "--port", "0", "--api-key=", "--no-api-key")
        self.check_error(2, "--tls: the value is empty", "explain", "-m", Q8, "--tls=", "--json")
        self.check_error(2, "--prompt: the value is empty", "run", "-m", Q8, "--prompt=", "-n", "1")
        self.check_error(2, "--workers: the value is empty", "run", "-m", Q8, "-p", "x", "--workers=", "--json")
        self.assertEqual(weft("run", "-m", Q8, "-p", "", "-n", "1").returncode, 0)

    def test_help_that_cannot_be_written_is_an_error(self):
        for program, *arguments in ((WEFT, "--help"), (WEFT, "--version"), (WEFT, "run", "--help"),
                                    (WEFT, "serve", "--print-metrics"), (WORKER, "--help"), (WORKER, "--version"),
                                    (WORKER, "--print-metrics")):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([program, *arguments], stdout=full, check=False)
            self.assertNotEqual(result.returncode, 0, arguments)

    def test_not_enough_memory_says_what_to_do(self):
        result = weft("run", "-m", Q8, "-p", "x", "-c", str(1 << 26))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("-c", result.stderr)
        self.assertNotIn("terminate", result.stderr)

    def test_closed_stdout_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([WEFT, "run", "-m", str(Q8), "-p", "ROMEO:", "-n", "4"], stdout=full,
                                    stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"stdout", result.stderr)

    def test_truncated_model_is_one_line_and_exit_code_2(self):
        data = Q8.read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "cut.gguf"
            for size in [0, 3, 23, 24, 100, 5000, len(data) // 2, len(data) - 1]:
                path.write_bytes(data[:size])
                self.check_error(2, "cut.gguf", "run", "-m", path, "-p", "x")


    def test_logits_never_go_over_the_model_or_into_a_pipe(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.gguf"
            model.write_bytes(Q8.read_bytes())
            link = pathlib.Path(folder) / "link.f32"
            link.symlink_to(model)
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            for target, text in ((model, "is the input file"), (link, "is the input file"), (pipe, "pipe"),
                                 ("/dev/null", "not a regular file"), (folder, folder)):
                result = weft("eval", "-m", model, "--tokens", "1,2", "--logits", target)
                self.assertIn(result.returncode, (1, 2), (target, result.stderr))
                self.assertIn(text, result.stderr)
            self.assertEqual(model.read_bytes(), Q8.read_bytes())

    def test_synth_never_replaces_what_is_not_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            self.check_error(2, "not a regular file", "synth", pipe)
            self.check_error(2, "not a regular file", "synth", folder)
            self.assertTrue(pipe.is_fifo())

    def test_inspect_refuses_what_run_refuses(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "lie.gguf"
            data = Q8.read_bytes()
            self.assertIn("weft can run it", weft("inspect", Q8).stdout)
            path.write_bytes(data.replace(b"blk.2.ffn_up.weight", b"blk.2.ffn_xx.weight"))
            self.check_error(2, "blk.2.ffn_up.weight", "run", "-m", path, "-p", "x")
            out = weft("inspect", path).stdout
            self.assertIn("weft cannot run it", out)
            self.assertIn("blk.2.ffn_up.weight", out)


class Run(unittest.TestCase):
    def test_text_goes_to_stdout_and_timings_to_stderr(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 16, "--temp", 0)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("\nI"), result.stdout)
        self.assertIn("tokens/s", result.stderr)

    def test_prompt_from_stdin_is_the_same(self):
        direct = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 16, "--temp", 0)
        piped = weft("run", "-m", Q8, "-p", "-", "-n", 16, "--temp", 0, text_in="ROMEO:")
        self.assertEqual(direct.stdout, piped.stdout)

    def test_endless_stdin_is_refused(self):
        with open("/dev/zero", "rb") as endless:
            result = subprocess.run([WEFT, "run", "-m", str(Q8), "-p", "-"], stdin=endless, capture_output=True,
                                    timeout=60, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"standard input", result.stderr)

    def test_seed_decides(self):
        one, two, other = (weft("run", "-m", Q8, "-p", "KING", "-n", 32, "--temp", 1, "--seed", seed).stdout
                           for seed in (7, 7, 8))
        self.assertEqual(one, two)
        self.assertNotEqual(one, other)

    def test_json(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 8, "--temp", 0, "--json")
        value = json.loads(result.stdout)
        self.assertEqual(len(value["tokens"]), 8)
        self.assertEqual(value["stop"], "length")
        self.assertGreater(value["weights_seconds"], 0)
        self.assertGreater(value["load_seconds"], value["weights_seconds"])
        self.assertRegex(result.stderr, r"load: \d+\.\d\d s; prompt: \d+ tokens in")

    def test_candidates_and_all_logits_give_the_same_text(self):
        for flags, fetches in ((["--temp", 0], False), (["--temp", 1, "--repeat-penalty", 1.3], False),
                               (["--temp", 1, "--top-k", 0, "--repeat-last-n", -1, "--presence-penalty", 1], False),
                               (["--temp", 1, "--typical", 0.8, "--xtc-probability", 0.5, "--dynatemp-range", 0.4], False),
                               (["--temp", 1, "--dry-multiplier", 1, "--logit-bias", "10+3", "-l", "11-inf"], False),
                               (["--temp", 1.5, "--top-k", 0, "--top-p", 1, "--min-p", 0], True)):
            few, full = (json.loads(weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 24, "--seed", 4, "--json", *flags,
                                         *more).stdout) for more in ([], ["--all-logits"]))
            self.assertEqual(few["text"], full["text"], flags)
            self.assertEqual(full["plan"]["logits_fetched"], 0)
            # Where candidates tell in principle, few tokens need more.
            self.assertEqual(few["plan"]["logits_fetched"] > 12, fetches, flags)

    def test_verbose_prints_the_chain(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 4, "--seed", 3, "--verbose", "--mirostat", 2, "-l", "5-1.5")
        self.assertIn("sampler: logit bias (1) -> temperature 0.8 -> mirostat 2 (tau 5, eta 0.1) -> draw (seed 3)",
                      result.stderr)

    def test_grammar_and_schema_bind_the_text(self):
        schema = '{"type":"object","properties":{"name":{"type":"string","maxLength":8},"age":{"type":"integer"}},' \
                 '"required":["name","age"]}'
        for flags in (["--temp", 0], ["--temp", 1, "--seed", 5], ["--temp", 1, "--seed", 5, "--all-logits"]):
            result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 200, "--json-schema", schema, "--json", *flags)
            value = json.loads(result.stdout)
            self.assertEqual(value["stop"], "end of text", result.stderr)
            self.assertEqual(list(json.loads(value["text"])), ["name", "age"])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "list.gbnf"
            path.write_text('root ::= word ("," word){2}\nword ::= [a-z]{1,5}\n')
            few, full = (weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 60, "--seed", 3, "--grammar", path, *more).stdout
                         for more in ([], ["--all-logits"]))
            self.assertRegex(few, r"\A[a-z]{1,5}(,[a-z]{1,5}){2}\n\Z")
            self.assertEqual(few, full)

    def test_logit_bias_decides(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", 3, "--temp", 0, "--json", "--logit-bias", "40+1000")
        self.assertEqual(json.loads(result.stdout)["tokens"], [40, 40, 40])

    def test_context_fills_up_cleanly(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", -1, "-c", 20, "--temp", 0, "--ignore-eos", "--json")
        self.assertEqual(json.loads(result.stdout)["stop"], "context full", result.stderr)


class Placement(unittest.TestCase):
    """Flags that say which device holds what, on a machine that has only its CPU."""

    def test_flags_of_the_field_are_taken(self):
        plain = weft("run", "-m", Q8, "-p", "ROMEO:", "-n", "8", "--seed", "3").stdout
        flags = ["-ngl", "2", "-sm", "layer", "-ot", "ffn_down=cpu", "--cpu-moe", "--no-kv-offload", "--no-op-offload",
                 "--device-batch", "local.cpu0:1-"]
        self.assertEqual(weft("run", "-m", Q8, "-p", "ROMEO:", "-n", "8", "--seed", "3", *flags).stdout, plain)

    def test_nothing_is_planned_again(self):
        result = weft("run", "-m", Q8, "-p", "ROMEO: " * 20, "-n", "40", "--seed", "3", "--json", "--forbid-replans")
        plan = json.loads(result.stdout)["plan"]
        self.assertEqual(plan["replans"], 0)
        self.assertGreater(plan["graphs_reused"], 30)
        self.assertLessEqual(plan["arena_bytes"], 1.1 * plan["arena_lower_bound"])

    def test_unknown_devices_are_listed(self):
        for flags in (["-ot", "ffn=w9.gpu0"], ["--main-device", "nope", "-sm", "none"], ["--device-batch", "nope:1-"]):
            self.assert_refused(flags, "local.cpu0")

    def test_tensor_split_says_what_it_takes(self):
        self.assert_refused(["-ts", "1,nan"], "--tensor-split")
        self.assert_refused(["-ts", "1,1,1"], "--tensor-split")

    def assert_refused(self, flags, text):
        result = weft("run", "-m", Q8, "-p", "x", "-n", "1", *flags)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(text, result.stderr)
        self.assertEqual(result.stderr.strip().count("\n"), 0, result.stderr)


class Demo(unittest.TestCase):
    def test_continuations_equal_the_reference(self):
        cases = json.loads((MODELS / "greedy.json").read_text(encoding="utf-8"))
        for kind, path, margin in (("f16", F16, 0.002), ("q8_0", Q8, 0.02)):
            for case in cases[kind]:
                tokens = ",".join(map(str, case["prompt_tokens"]))
                result = weft("eval", "-m", path, "--tokens", tokens, "--greedy", 64, "-ctk", "f32", "-ctv", "f32",
                              "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                got = json.loads(result.stdout)["greedy"]
                for i, (want, gap) in enumerate(zip(case["greedy_tokens"], case["margins"])):
                    if gap < margin:
                        break
                    self.assertEqual(got[i], want, (kind, case["prompt"], i, gap))

    def test_prompts_are_tokenized_as_the_reference_does(self):
        cases = json.loads((MODELS / "greedy.json").read_text(encoding="utf-8"))
        for case in cases["f16"]:
            result = weft("tokenize", "-m", F16, "-p", case["prompt"], "--json")
            self.assertEqual(json.loads(result.stdout)["ids"], case["prompt_tokens"])

    def test_perplexity_is_within_a_thousandth(self):
        table = {F16: 36.4204, Q8: 36.4162, DATA / "shakespeare" / "shakespeare-q6_k.gguf": 36.4048,
                 DATA / "shakespeare" / "shakespeare-q4_k_m.gguf": 36.3821,
                 DATA / "shakespeare" / "shakespeare-q4_0.gguf": 36.6165}
        for path, want in table.items():
            result = weft("perplexity", "-m", path, "-f", MODELS / "heldout.txt", "-c", 256)
            last = result.stdout.splitlines()[-1]
            self.assertRegex(last, r"^PPL = \d+\.\d{4}$")
            got = float(last.split("=")[1])
            print(f"{path.name}: PPL {got:.4f}, reference {want:.4f}, {100 * (got / want - 1):+.3f} %")
            self.assertLess(abs(got / want - 1), 0.001, path)


class Others(unittest.TestCase):
    def test_eval_writes_a_row_per_position(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "logits.f32"
            result = weft("eval", "-m", Q8, "--tokens", "1 2 3", "--logits", out, "--greedy", 2)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(out.stat().st_size, 3 * 1024 * 4)
            self.assertRegex(result.stdout, r"^\d+ \d+\n$")

    def test_tokenize_and_back(self):
        ids = weft("tokenize", "-m", Q8, "-p", "Romeo, Romeo!").stdout
        self.assertRegex(ids, r"^\d+( \d+)*\n$")
        self.assertEqual(weft("tokenize", "-m", Q8, "--detokenize", ids.strip()).stdout, "Romeo, Romeo!\n")

    def test_inspect(self):
        self.assertIn("llama", weft("inspect", Q8).stdout)
        value = json.loads(weft("inspect", Q8, "--json", "--check").stdout)
        self.assertEqual(value["totals"]["tensors"] if "tensors" in value["totals"] else 29, 29)

    def test_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.gguf"
            path.write_bytes(Q8.read_bytes())
            self.assertEqual(weft("digest", path, "--check").returncode, 2)
            self.assertIn("29 tensors", weft("digest", path).stdout)
            value = json.loads(weft("digest", path, "--check", "--json").stdout)
            self.assertTrue(value["checked"])
            self.assertEqual(value["files"][0]["size"], path.stat().st_size)
            damaged = bytearray(path.read_bytes())
            damaged[-1] ^= 1
            path.write_bytes(damaged)
            result = weft("digest", path, "--check")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"^weft: error: .*model.gguf: tensor '.*' differs from its digests in bytes")

    def test_perplexity_json(self):
        value = json.loads(weft("perplexity", "-m", Q8, "-f", MODELS / "heldout.txt", "--json").stdout)
        self.assertEqual(set(value), {"ppl", "stderr", "chunks", "tokens"})

    def test_synth_bench_and_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tiny.gguf"
            result = weft("synth", "--arch", "qwen3", "--embedding", 256, "--layers", 2, "--heads", 4, "--heads-kv", 2,
                          "--head", 64, "--ff", 512, "--vocab", 512, "--type", "Q4_K", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            bench = json.loads(weft("bench", "-m", path, "-p", 32, "-n", 8, "-r", 2, "--json").stdout)
            self.assertEqual([r["phase"] for r in bench["results"]], ["prefill", "decode"])
            for entry in bench["results"]:
                self.assertEqual(set(entry), {"phase", "tokens", "batch", "context", "tokens_per_s",
                                              "bandwidth_share", "peak_share"})
                self.assertGreater(entry["tokens_per_s"]["median"], 0)
            self.assertGreater(bench["limits"]["read_bytes_per_s"], 0)
            self.assertEqual(weft("run", "-m", path, "-p", "hello", "-n", 4, "-ctk", "q8_0", "-ctv", "q8_0").returncode, 0)

    def test_one_layer_reads_prompts_in_parts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "one.gguf"
            result = weft("synth", "--arch", "llama", "--embedding", 64, "--layers", 1, "--heads", 2, "--heads-kv", 2,
                          "--head", 32, "--ff", 64, "--vocab", 512, path)
            self.assertEqual(result.returncode, 0, result.stderr)
            whole, parts, workers = (weft("run", "-m", path, "-p", "hello " * 30, "-n", 8, "--temp", 0, "--ignore-eos", *flags)
                                     for flags in ((), ("-ub", 16), ("-ub", 16, "--local-workers", 2, "--split-mode", "tensor")))
            self.assertEqual(parts.returncode, 0, parts.stderr)
            self.assertEqual(parts.stdout, whole.stdout)
            self.assertEqual(workers.stdout, whole.stdout, workers.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
