#!/usr/bin/env python3
"""What a command does when the way to a worker misbehaves: the control connections of the second worker pass a proxy
that stalls, cuts, spoils or slows them, at a byte of the load or during a step. Weights and activations go past it, to
the address that the worker names itself, unless a test has it name the proxy. Standard library only."""
import contextlib
import dataclasses
import subprocess
import sys
import threading
import time
import unittest

from fault_proxy import ACTIONS, DOWN, UP, FaultProxy, Rule
from fault_test import BIN, BOUND_S, COMMANDS, CRASH, LOSS_S, check_error, check_serves, run_all, weft
from workers import Worker

NIGHTLY = "--nightly" in sys.argv
# What a wrong byte leads to may end by a call's deadline of 30 s, or of 60 s without progress at the worker's disk. A
# connection of calls that stalls is noticed like a lost worker.
CALL_BOUND_S = 80
CALLS, PINGS, DATA = 0, 1, 2  # connections by number, as the coordinator opens them
PING_BYTES = 400  # of a session that has been opened
BREAKS = ("truncate", "reset", "half-close")


@contextlib.contextmanager
def fleet(*rules, data=False):
    """Two workers, the second behind a proxy, with its data or without: (first, second, proxy)."""
    with (FaultProxy(None, *rules) as proxy, Worker("--no-self-test") as first,
          Worker("--no-self-test", *(("--announce", proxy.address) if data else ())) as second):
        proxy.target = second.address
        yield first, second, proxy


def arguments_of(command, first, proxy):
    return [*COMMANDS[command], "--transport", "grpc", "--worker-timeout", LOSS_S, "--workers",
            f"{first.address},{proxy.address}"]


def check_others(first, second):
    for worker in (first, second):
        check_serves(worker.address)
        assert not CRASH.search(worker.text()), worker.text()


@dataclasses.dataclass(frozen=True)
class LoadCase:
    rules: tuple
    command: str = "heavy"
    codes: tuple = (1, 3)
    data: bool = False  # passes the proxy, too

    def __str__(self):
        return f"{self.rules} during the load"

    def is_about(self, *actions):
        return any(rule.action in actions for rule in self.rules)


def load_cases():
    made = []
    for direction in (UP, DOWN):
        for after in (0, 150):
            made += [LoadCase((Rule(action, after, direction, (CALLS,)),)) for action in BREAKS]
        # Between two calls nobody misses the connection: it is opened again.
        made += [LoadCase((Rule(action, 1500, direction, (CALLS,)),), codes=(0, 1, 3)) for action in BREAKS]
        for action in ("stall", "drop"):
            # As one break of the network would do to both.
            made.append(LoadCase((Rule(action, 1500, direction, (CALLS,)), Rule(action, PING_BYTES, direction, (PINGS,)))))
        # A wrong byte may matter to nobody, else it is found: in the connection, in a message, by a digest.
        for after in (3, 40, 500, 1500):
            made.append(LoadCase((Rule("corrupt", after, direction, (CALLS,)),), codes=(0, 1, 2, 3)))
        made += [LoadCase((Rule(action, 5000, direction, (DATA,)),), data=True) for action in BREAKS]
    # The list of weights and a program: what is wrong in them would change answers.
    made += [LoadCase((Rule("corrupt", after, UP, (CALLS,)),), codes=(0, 1, 2, 3)) for after in (1300, 8000)]
    # Weights on their way.
    return made + [LoadCase((Rule("corrupt", after, UP, (DATA,)),), codes=(0, 1, 2, 3), data=True)
                   for after in (40, 1000, 5000, 100000)]


def nightly_load_cases():
    made = [LoadCase((Rule("corrupt", after, direction, (CALLS,)),), codes=(0, 1, 2, 3))
            for direction in (UP, DOWN) for after in range(0, 6000, 397)]
    made += [LoadCase((Rule(action, 1500, direction, (CALLS,)),))
             for direction in (UP, DOWN) for action in ("stall", "drop")]
    return made


def run_load_case(case):
    with fleet(*case.rules, data=case.data) as (first, second, proxy):
        start = time.monotonic()
        result = weft(*arguments_of(case.command, first, proxy), timeout=CALL_BOUND_S + 30)
        elapsed = time.monotonic() - start
        assert not CRASH.search(result.stderr), result.stderr
        if not proxy.struck.is_set():  # the bytes did not reach so far
            assert result.returncode == 0 and NIGHTLY, f"the rule did not apply: {result.stderr}"
        else:
            assert result.returncode in case.codes, f"exit code {result.returncode}: {result.stderr}"
        if result.returncode == 0:
            want = weft(*COMMANDS["run"])
            assert want.returncode == 0 and result.stdout == want.stdout, (want.stdout, result.stdout)
        else:
            check_error(result, proxy.address)
        own_deadline = case.is_about("corrupt")
        assert elapsed < (CALL_BOUND_S if own_deadline else BOUND_S), f"took {elapsed:.1f} s: {result.stderr}"
        proxy.close()
        check_others(first, second)
        return elapsed


@contextlib.contextmanager
def running(first, proxy):
    """A run over both that would go on for long, once its first token is out."""
    with subprocess.Popen([str(BIN / "weft"), *map(str, arguments_of("long", first, proxy))],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(1), process.stderr.read()
            drain = threading.Thread(target=process.stdout.read)
            drain.start()
            yield process
        finally:
            process.kill()
            drain.join(30)


def run_step_case(rule):
    with fleet() as (first, second, proxy):
        with running(first, proxy) as process:
            proxy.arm(rule)
            assert proxy.struck.wait(30), "no ping came by"
            start = time.monotonic()
            process.wait(BOUND_S + 60)
            elapsed = time.monotonic() - start
            error = process.stderr.read().decode()
        result = subprocess.CompletedProcess([], process.returncode, "", error)
        assert result.returncode == 3, f"exit code {result.returncode}: {error}"
        check_error(result, proxy.address)
        assert not CRASH.search(error), error
        assert elapsed < BOUND_S, f"took {elapsed:.1f} s: {error}"
        check_others(first, second)
        return elapsed


class ProxyFaults(unittest.TestCase):
    def test_during_the_load(self):
        run_all(self, run_load_case, load_cases())

    def test_during_a_step(self):
        rules = [Rule(action, 0, direction) for direction in (UP, DOWN) for action in ACTIONS if action != "delay"]
        run_all(self, run_step_case, rules)

    def test_late_pings_lose_no_worker(self):
        for direction in (UP, DOWN):
            with fleet() as (first, second, proxy), running(first, proxy) as process:
                proxy.arm(Rule("delay", 0, direction, seconds=LOSS_S / 2, once=True))
                self.assertTrue(proxy.struck.wait(30))
                # Longer than a loss takes, as the pings count it.
                self.assertTrue(proxy.await_pieces(8, 60))
                self.assertIsNone(process.poll())

    def test_pings_that_stay_away_lose_the_worker(self):
        run_step_case(Rule("delay", 0, DOWN, seconds=4 * LOSS_S))

    def test_a_slow_way_for_weights_starves_no_ping(self):
        # Takes longer than a loss; the pings have a connection of their own.
        rule = Rule("delay", 0, UP, (DATA,), seconds=0.1)
        with fleet(rule, data=True) as (first, second, proxy):
            start = time.monotonic()
            result = weft(*arguments_of("heavy", first, proxy), timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertGreater(time.monotonic() - start, LOSS_S)
            self.assertEqual(result.stdout, weft(*COMMANDS["run"]).stdout)
            check_others(first, second)

    @unittest.skipUnless(NIGHTLY, "nightly")
    def test_calls_on_a_spoiled_connection_end(self):
        run_all(self, run_load_case, nightly_load_cases())


if __name__ == "__main__":
    unittest.main(argv=[argument for argument in sys.argv if argument != "--nightly"], verbosity=2)
