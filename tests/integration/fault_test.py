#!/usr/bin/env python3
"""What a command does when a worker dies, stops, fails or talks nonsense: at every call of the control plane, at every
kind of message of the data plane, at step k. The rows come from the service descriptor: a call without a row fails.
Standard library only. `fault_test.py --nightly` runs the long rest."""
import concurrent.futures
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

from workers import BIN, Worker

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
TESTS = BIN.parent / "tests"
WORKER = TESTS / "weft-worker-test"
MODEL = SOURCE / "tests" / "data" / "models" / "qwen3" / "model.gguf"
DEMO = SOURCE / "models" / "shakespeare-q8_0.gguf"

NIGHTLY = "--nightly" in sys.argv
PARALLEL = 4
LOSS_S = 2.0  # --worker-timeout
# The goal is 3 s from the fault to the end of the command; a shared machine that runs several cases gets more.
BOUND_S = 8
COMMAND_S = 60
CRASH = re.compile(r"terminate called|Assertion|Check failed|Segmentation|SIGABRT|Aborted|Sanitizer|pure virtual")

COMMANDS = {
    "eval": ["eval", "-m", MODEL, "--tokens", "1,2,3,4,5", "--greedy", "8", "-t", "1"],
    "send": ["eval", "-m", MODEL, "--tokens", "1,2,3,4,5", "--greedy", "8", "-t", "1", "--send-weights"],
    "run": ["run", "-m", DEMO, "-p", "ROMEO:", "-n", "24", "--temp", "0", "-t", "1"],
    "ranks": ["run", "-m", DEMO, "-p", "ROMEO:", "-n", "24", "--temp", "0", "-t", "1", "--split-mode", "tensor"],
    "heavy": ["run", "-m", DEMO, "-p", "ROMEO:", "-n", "24", "--temp", "0", "-t", "1", "--send-weights"],
    "workers": ["workers"],
    # Long enough for many pings.
    "long": ["run", "-m", DEMO, "-p", "ROMEO:", "-n", "100000", "-c", "30000", "--ignore-eos", "-t", "1"],
}

KILL, STOP, ERROR, GARBAGE = "kill", "stop", "error", "garbage"
LOST, FAILED = {3}, {1, 3}


@dataclasses.dataclass(frozen=True)
class Row:
    command: str  # of COMMANDS, or "call": weft-call-worker
    actions: tuple = (KILL, STOP, ERROR, GARBAGE)
    faulty: int = 1  # which of the two workers
    counts: tuple = (1,)
    quiet: tuple = ()  # actions that the command need not notice
    drains: bool = False  # the worker rightly refuses what comes after
    devices: str = "cpu"
    blind: bool = False  # the other worker does not see the file


ROWS = {
    "Hello": Row("eval"),
    # Its later messages are pings. A stream that goes on has no status to be wrong.
    "Session": Row("eval", (KILL, STOP, GARBAGE)),
    "OpenEpoch": Row("eval"),
    "ConnectPeers": Row("eval"),
    "QuerySupport": Row("eval"),
    "QueryTensorBytes": Row("eval", devices="cpu,fake:1", quiet=(ERROR, GARBAGE)),  # the extent serves as well
    "AllocateBuffer": Row("run"),
    "FreeBuffer": Row("call", quiet=(ERROR, GARBAGE)),
    "FillBuffer": Row("call"),
    "WriteBuffer": Row("call"),
    "ReadBuffer": Row("call"),
    "LoadWeights": Row("eval"),
    "FindWeights": Row("send", quiet=(ERROR, GARBAGE)),  # what others have is worth asking, not needed
    # The other one takes; what came with a wrong reply is right all the same.
    "GiveWeights": Row("eval", faulty=0, quiet=(ERROR, GARBAGE), blind=True),
    "TakeWeights": Row("send"),
    "InstallProgram": Row("eval"),
    "Instantiate": Row("eval"),
    "ReleaseInstance": Row("call", quiet=(GARBAGE,)),  # its refusal has no reply to spoil
    "MeasureLink": Row("workers"),
    "Statistics": Row("call"),
    "Drain": Row("call", drains=True),
    "Messages": Row("eval", (KILL, STOP, GARBAGE)),  # the greeting
    # Kinds of messages on the data plane, by the side that sees them: the process with the higher number connects. The
    # 3rd request of a worker is a decode step.
    "kExecute": Row("run", (KILL, STOP), counts=(1, 3, 9)),
    "kReply": Row("run", (KILL, STOP, GARBAGE), counts=(1, 3)),
    "kCancel": Row("call", (KILL, STOP)),
    "kEdge": Row("run", (KILL, STOP, GARBAGE), faulty=0, counts=(1, 3)),
    "kProbe": Row("workers", (KILL, STOP, GARBAGE)),
    # Other values of the same size are a sum like any.
    "kCollective": Row("ranks", (KILL, STOP), faulty=0, counts=(1, 9)),
    # Weights that came are right, whatever the worker says of them.
    "kWeights": Row("heavy", (KILL, STOP, GARBAGE), counts=(1, 5), quiet=(GARBAGE,)),
}


# What only the worker of their row sees.
ONE_SIDED = ("ConnectPeers", "kEdge", "kCollective", "AllocateBuffer")
# weft-call-worker sends its kCancel over gRPC.
OVER_UCX = ("kExecute", "kReply", "kEdge", "kCollective", "kProbe", "kWeights")


def known_verbs():
    """The calls of both services, and the kinds of messages."""
    proto = (SOURCE / "proto" / "worker.proto").read_text(encoding="utf-8")
    verbs = re.findall(r"^\s*rpc\s+(\w+)\s*\(", proto, re.MULTILINE)
    header = (SOURCE / "rpc_backend" / "protocol" / "message_kinds.h").read_text(encoding="utf-8")
    kinds = re.findall(r"^\s*(k\w+) = \d+,", header, re.MULTILINE)
    assert len(verbs) >= 20 and len(kinds) >= 5, (verbs, kinds)
    return verbs + kinds


@dataclasses.dataclass(frozen=True)
class Case:
    verb: str
    action: str
    count: int
    faulty: int
    command: str = ""  # instead of the row's
    transport: str = "grpc"

    def __str__(self):
        return f"{self.verb}:{self.action}:{self.count} at worker {self.faulty} over {self.transport}"


def cases():
    made = []
    for verb, row in ROWS.items():
        for action in row.actions:
            for count in row.counts:
                made.append(Case(verb, action, count, row.faulty))
                if verb in OVER_UCX:
                    made.append(Case(verb, action, count, row.faulty, transport="ucx"))
    return made + [Case("Session", action, 2, 1, "long") for action in (KILL, STOP, GARBAGE)]


def nightly_cases():
    made = [Case("kExecute", action, count, faulty, transport=transport)
            for transport in ("grpc", "ucx") for action in (KILL, STOP) for count in range(1, 21) for faulty in (0, 1)]
    made += [Case("Session", action, count, faulty, "long")
             for action in (KILL, STOP, GARBAGE) for count in (2, 3) for faulty in (0, 1)]
    made += [Case(verb, action, count, 1 - row.faulty) for verb, row in ROWS.items() for action in row.actions
             for count in row.counts if verb not in ONE_SIDED and row.command != "call"]
    return made


def weft(*arguments, program=BIN / "weft", timeout=BOUND_S + COMMAND_S):
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, timeout=timeout, encoding="utf-8",
                          errors="replace", check=False)


def command_of(row, case, addresses):
    command = case.command or row.command
    if command == "call":
        return weft(addresses[case.faulty], case.verb, program=TESTS / "weft-call-worker")
    return weft(*COMMANDS[command], "--transport", case.transport, "--worker-timeout", LOSS_S, "--workers",
                ",".join(addresses))


def check_error(result, address):
    """Exactly one line says what is wrong, and names the worker."""
    lines = [line for line in result.stderr.splitlines() if "error: " in line]
    assert len(lines) == 1 and lines[0].startswith("weft: error: "), f"want one error line: {result.stderr}"
    assert address in lines[0], f"does not name {address}: {lines[0]}"


def check_serves(address):
    result = weft("workers", "--no-links", "--workers", address)
    assert result.returncode == 0, f"{address} does not serve any more: {result.stderr}"


def check_worker_after(worker, case, row):
    if case.action == KILL:
        assert worker.process.wait(20) == -signal.SIGKILL
    else:
        worker.signal(signal.SIGCONT)
        if not row.drains:
            check_serves(worker.address)
    assert not CRASH.search(worker.text()), worker.text()


def expected_codes(case, row):
    codes = LOST if case.action in (KILL, STOP) else FAILED
    return codes | {0} if case.action in row.quiet else codes


def run_case(case):
    """Returns the seconds from the fault to the end of the command; AssertionError where it did wrong."""
    row = ROWS[case.verb]
    arguments = ["--no-self-test", "--devices", row.devices]
    fault = ["--fault", f"{case.verb}:{case.action}:{case.count}"]
    extra = [fault if number == case.faulty else ["--no-files"] if row.blind else [] for number in (0, 1)]
    with (Worker(*arguments, *extra[0], binary=WORKER) as first,
          Worker(*arguments, *extra[1], binary=WORKER) as second):
        pair = [first, second]
        faulty, other = pair[case.faulty], pair[1 - case.faulty]
        result = command_of(row, case, [worker.address for worker in pair])
        elapsed = time.time() - os.stat(faulty.log.name).st_mtime  # it wrote last when the fault struck
        assert f"fault: {case.verb} {case.action}" in faulty.text(), f"the fault was not reached: {result.stderr}"
        codes = expected_codes(case, row)
        assert result.returncode in codes, f"exit code {result.returncode}, want {codes}: {result.stderr}"
        if result.returncode != 0:
            check_error(result, faulty.address)
        assert not CRASH.search(result.stderr), result.stderr
        if case.action in (KILL, STOP):
            assert elapsed < BOUND_S, f"took {elapsed:.1f} s: {result.stderr}"
        check_serves(other.address)
        assert not CRASH.search(other.text()), other.text()
        check_worker_after(faulty, case, row)
        return elapsed


def run_all(test, function, todo):
    """All at once, a few at a time; fails with everything that went wrong."""
    wrong, slowest = [], (0.0, None)

    def run(case):
        try:
            return case, function(case), None
        except (AssertionError, RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            return case, 0.0, f"{case}: {error or type(error)}"

    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for case, seconds, error in pool.map(run, todo):
            slowest = max(slowest, (seconds, str(case)), key=lambda entry: entry[0])
            if error:
                wrong.append(error)
    print(f"{len(todo)} cases; the slowest took {slowest[0]:.1f} s: {slowest[1]}", file=sys.stderr)
    test.assertEqual(wrong, [], "\n" + "\n".join(wrong))


class FaultTable(unittest.TestCase):
    def test_every_verb_has_a_row(self):
        self.assertEqual(sorted(known_verbs()), sorted(ROWS))
        for verb, row in ROWS.items():
            self.assertIn(KILL, row.actions, verb)
            self.assertIn(STOP, row.actions, verb)

    def test_an_unknown_verb_or_action_is_refused(self):
        for fault in ("Nonsense:kill", "Hello:sing", "Hello", "Hello:kill:0", "Hello:kill:1:2"):
            result = weft("--fault", fault, program=WORKER)
            self.assertEqual(result.returncode, 2, fault)
            self.assertIn(fault, result.stderr)

    def test_every_fault_ends_the_command_and_nothing_else(self):
        run_all(self, run_case, cases())

    def test_a_worker_that_was_stopped_before(self):
        with Worker("--no-self-test") as first, Worker("--no-self-test") as second:
            second.signal(signal.SIGSTOP)
            for command in ("eval", "workers"):
                start = time.monotonic()
                result = weft(*COMMANDS[command], "--workers", f"{first.address},{second.address}")  # its own limit
                elapsed = time.monotonic() - start
                self.assertEqual(result.returncode, 3, result.stderr)
                check_error(result, second.address)
                self.assertLess(elapsed, BOUND_S, result.stderr)
                print(f"{command} at a stopped worker ended after {elapsed:.1f} s", file=sys.stderr)
            second.signal(signal.SIGCONT)
            check_serves(second.address)

    @unittest.skipUnless(NIGHTLY, "nightly")
    def test_every_step_and_either_worker(self):
        run_all(self, run_case, nightly_cases())


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--nightly"], verbosity=2)
