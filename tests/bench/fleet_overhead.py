#!/usr/bin/env python3
"""What a local worker costs beside running in one process, paired in one run: medians over rounds of (A) the time that
a decode step of a one-layer model takes longer, per transport, (B) tokens/s of a model of shape 1b through one worker
as a share of the same in process, and (C) how long two workers that see that model's file take to load it, as a multiple
of one process. Run on an idle machine: tests/bench/fleet_overhead.py [--rounds N] [--large] [--loading [FILE]]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "integration"))

from workers import Worker, addresses  # noqa: E402

BIN = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin"))


def weft(*arguments):
    return subprocess.run([str(BIN / "weft"), *map(str, arguments)], capture_output=True, encoding="utf-8", check=True,
                          timeout=900).stdout


def step_us(model, *arguments):
    report = json.loads(weft("run", "-m", model, "-p", "hello", "-n", 1000, "--ignore-eos", "--temp", 0, "-t", 1,
                             "--json", *arguments))
    return report["decode_seconds"] * 1e6 / (len(report["tokens"]) - 1)


def rates(model, *arguments):
    report = json.loads(weft("bench", "-m", model, "-p", 256, "-n", 32, "-r", 1, "-t", 1, "--json", *arguments))
    return {result["phase"]: result["tokens_per_s"]["median"] for result in report["results"]}


def overhead(folder, rounds):
    model = folder / "one.gguf"
    weft("synth", "--layers", 1, "--embedding", 128, "--heads", 4, "--heads-kv", 2, "--head", 32, "--ff", 256, "--vocab",
         512, "--type", "Q8_0", model)
    here, added = [], {"ucx": [], "grpc": []}
    for _ in range(rounds):
        base = step_us(model)
        here.append(base)
        for transport, values in added.items():
            values.append(step_us(model, "--local-workers", 1, "--transport", transport) - base)
    print(f"decode step of a one-layer model in process: {statistics.median(here):.1f} us (median of {rounds})")
    for transport, values in added.items():
        print(f"  through a local worker over {transport}: +{statistics.median(values):.1f} us "
              f"({min(values):.1f} to {max(values):.1f})")


def large(folder, rounds):
    model = folder / "1b.gguf"
    weft("synth", "--shape", "1b", model)
    shares = {"prefill": [], "decode": []}
    for _ in range(rounds):
        here = rates(model)
        there = rates(model, "--local-workers", 1)
        for phase, values in shares.items():
            values.append(there[phase] / here[phase])
    for phase, values in shares.items():
        print(f"shape 1b Q4_0 through one local worker, {phase}: {statistics.median(values):.3f} of in process "
              f"({min(values):.3f} to {max(values):.3f})")


def load_times(model, *arguments):
    report = json.loads(weft("run", "-m", model, "-p", "hello", "-n", 1, "-t", 1, "--json", *arguments))
    return {"weights": report["weights_seconds"], "until ready": report["load_seconds"]}


def loading(model, rounds):
    """The file is in memory: what is compared is the work, not the disk."""
    with Worker() as first, Worker() as second:
        to_workers = ("--workers", addresses([first, second]))
        load_times(model, *to_workers)
        pairs = [(load_times(model), load_times(model, *to_workers)) for _ in range(rounds)]
    for what in pairs[0][0]:
        one, two = ([pair[side][what] * 1e3 for pair in pairs] for side in range(2))
        ratios = [b / a for a, b in zip(one, two)]
        print(f"loading shape 1b Q4_0, {what}: {statistics.median(one):.1f} ms in process, {statistics.median(two):.1f} ms in "
              f"two workers that see the file: {statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="shape 1b too: 730 MB on disk, some minutes")
    parser.add_argument("--loading", metavar="FILE", nargs="?", const="", help="only the loading of shape 1b; FILE: of "
                        "this model, instead of one made for it")
    arguments = parser.parse_args()
    if arguments.loading:
        loading(arguments.loading, arguments.rounds)
        return
    with tempfile.TemporaryDirectory() as name:
        if arguments.loading is not None:
            model = pathlib.Path(name) / "1b.gguf"
            weft("synth", "--shape", "1b", model)
            loading(model, arguments.rounds)
            return
        overhead(pathlib.Path(name), arguments.rounds)
        if arguments.large:
            large(pathlib.Path(name), arguments.rounds)


if __name__ == "__main__":
    main()
