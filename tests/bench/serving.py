#!/usr/bin/env python3
"""What sharing steps brings: tokens/s of many continuations at once as a multiple of one alone, and what the engine
spends between steps, by the server's own counters: scheduling (batches, pages, launching) and sampling apart. Runs
alternate, medians of the ratios of neighbours count. Bodies are not streamed: on a small machine reading events would
take the server's cores.
usage: tests/bench/serving.py [--rounds N] [--streams N] [--tokens N] [--shape 160m] [FLAG ...]: further flags go to
weft serve, as --local-workers 2. The load before each round is printed."""
import argparse
import concurrent.futures
import http.client
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
import metrics_text  # noqa: E402
from serve_process import WEFT, ServeProcess  # noqa: E402

PROMPT = "To be, or not to be, that is the question: number {}."
COUNTERS = {"tokens": "weft_generated_tokens_total", "steps": "weft_steps_total",
            "working": "weft_engine_working_seconds_total", "waiting": "weft_engine_waiting_seconds_total",
            "sampling": "weft_engine_sampling_seconds_total"}


def complete(port, number, tokens):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    body = {"model": "model", "prompt": PROMPT.format(number), "max_tokens": tokens, "temperature": 0}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    assert "usage" in answer, answer  # random weights hardly ever end a text
    connection.close()


def counters(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.health_port}/metrics", timeout=20) as answer:
        families = metrics_text.parse(answer.read().decode())
    return {key: metrics_text.total(families, name) for key, name in COUNTERS.items()}


def measure(server, streams, tokens):
    """Tokens/s, steps and microseconds between steps, of so many continuations at once."""
    before, start = counters(server), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        list(pool.map(lambda number: complete(server.port, number, tokens), range(streams)))
    seconds, after = time.monotonic() - start, counters(server)
    spent = {key: after[key] - before[key] for key in COUNTERS}
    return {"rate": spent["tokens"] / seconds, "per_step": spent["tokens"] / spent["steps"],
            "scheduling_us": 1e6 * (spent["working"] - spent["sampling"]) / spent["steps"],
            "sampling_us": 1e6 * spent["sampling"] / spent["steps"], "step_us": 1e6 * spent["waiting"] / spent["steps"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--shape", default="160m")
    options, flags = parser.parse_known_args()
    ratios, scheduling, sampling = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        model = str(pathlib.Path(folder) / "model.gguf")
        subprocess.run([WEFT, "synth", "--arch", "llama", "--shape", options.shape, "--type", "Q4_0", model], check=True,
                       capture_output=True)
        server = ServeProcess("-c", "512", "--parallel", str(options.streams), *flags, model=model)
        measure(server, options.streams, 8)
        for _ in range(options.rounds):
            load = pathlib.Path("/proc/loadavg").read_text(encoding="utf-8").split()[0]
            one, many = measure(server, 1, options.tokens), measure(server, options.streams, options.tokens)
            ratios.append(many["rate"] / one["rate"])
            scheduling.append(many["scheduling_us"])
            sampling.append(many["sampling_us"])
            print(f"load {load}: {one['rate']:.1f} tokens/s alone, {many['rate']:.1f} of {options.streams} "
                  f"({many['per_step']:.1f} tokens a step of {many['step_us']:.0f} us), between steps scheduling "
                  f"{one['scheduling_us']:.0f} us alone and {many['scheduling_us']:.0f} us, sampling "
                  f"{one['sampling_us']:.0f} us and {many['sampling_us']:.0f} us", flush=True)
        server.stop()
    print(f"{options.streams} at once: {statistics.median(ratios):.2f} times one ({min(ratios):.2f} to {max(ratios):.2f}); "
          f"between steps scheduling {statistics.median(scheduling):.0f} us ({min(scheduling):.0f} to {max(scheduling):.0f}), "
          f"sampling {statistics.median(sampling):.0f} us ({min(sampling):.0f} to {max(sampling):.0f})")


if __name__ == "__main__":
    main()
