#!/usr/bin/env python3
"""What cutting every layer over local workers costs on a machine with two cores: tokens/s of shape 1b Q4_0 over two
workers with one thread each (tensor split), as a share of one process with two threads. Runs alternate, medians of
the shares of neighbours count; then where a decode step of the workers goes.
usage: tests/bench/tensor_split.py [--rounds N] [--model FILE] [--prompt N] [FLAG ...]: further flags go to the workers'
runs, as --wire-type bf16. Run on an idle machine; the load before each round is printed."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

BIN = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin"))
RANKS = ["--local-workers", 2, "--split-mode", "tensor"]


def weft(*arguments):
    return subprocess.run([str(BIN / "weft"), *map(str, arguments)], capture_output=True, encoding="utf-8", check=True,
                          timeout=900).stdout


def rates(model, prompt, *arguments):
    report = json.loads(weft("bench", "-m", model, "-p", prompt, "-n", 32, "-r", 3, "-t", 2, "--json", *arguments))
    return {result["phase"]: result["tokens_per_s"]["median"] for result in report["results"]}


def compare(model, options, flags):
    shares = {"prefill": [], "decode": []}
    for _ in range(options.rounds):
        load = pathlib.Path("/proc/loadavg").read_text(encoding="utf-8").split()[0]
        here = rates(model, options.prompt)
        there = rates(model, options.prompt, *RANKS, *flags)
        for phase, values in shares.items():
            values.append(there[phase] / here[phase])
        print(f"load {load}: " + ", ".join(f"{phase} {there[phase]:.2f} against {here[phase]:.2f} tokens/s"
                                           for phase in shares), flush=True)
    for phase, values in shares.items():
        print(f"{phase}: {statistics.median(values):.3f} of one process ({min(values):.3f} to {max(values):.3f})")


def where(model, flags):
    report = json.loads(weft("run", "-m", model, "-p", "hello", "-n", 32, "--ignore-eos", "--temp", 0, "-t", 2, "--stats",
                             "--json", *RANKS, *flags))
    for process in report.get("processes", report.get("stats", [])):
        print(f"{process['name']}: computed {process['compute_us']:.0f} us, waited {process['wait_us']:.0f} us, wire "
              f"{process['wire_us']:.0f} us per step")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--model", type=pathlib.Path, help="instead of shape 1b Q4_0, which takes 730 MB on disk")
    parser.add_argument("--prompt", type=int, default=128)
    options, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as name:
        model = options.model
        if model is None:
            model = pathlib.Path(name) / "1b.gguf"
            weft("synth", "--shape", "1b", model)
        compare(model, options, flags)
        where(model, flags)


if __name__ == "__main__":
    main()
