#!/usr/bin/env python3
"""A worker is killed again and again while commands use it, and started again at the same address. Each command ends
soon with one error, and the worker that stays alive keeps nothing of it: no session, no memory, no descriptor, little
log. `soak_test.py --kills N`; standard library only."""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import unittest

from fault_test import BIN, BOUND_S, CRASH, DEMO, check_serves
from workers import Worker, addresses

KILLS = int(sys.argv[sys.argv.index("--kills") + 1]) if "--kills" in sys.argv else 12
COMMAND = ["run", "-m", DEMO, "-p", "ROMEO:", "--temp", "0", "-t", "1"]
SEED = int(os.environ.get("WEFT_TEST_SEED", "1"))
# Of the log per kill: a session that opens and one that closes, and what a lost peer is called.
LOG_BYTES = 600


def state_of(worker):
    """What a process holds: resident KiB, threads, descriptors."""
    status = pathlib.Path(f"/proc/{worker.process.pid}/status").read_text(encoding="utf-8")
    number = lambda name: int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE).group(1))
    return number("VmRSS"), number("Threads"), len(os.listdir(f"/proc/{worker.process.pid}/fd"))


def await_closed(worker):
    """Until every session that was opened is closed; the log tells."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        text = worker.text()
        if text.count(" opened") == text.count(" closed"):
            return
        time.sleep(0.02)
    raise AssertionError("a session stays open: " + worker.text()[-2000:])


class Soak(unittest.TestCase):
    def kill_once(self, staying, dying, delay):
        """Kills `dying` so many seconds after a command began to use it; returns how long the command took to end."""
        command = [str(BIN / "weft"), *map(str, COMMAND), "-n", "100000", "-c", "30000", "--ignore-eos", "--workers",
                   addresses([staying, dying])]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            try:
                time.sleep(delay)
                self.assertIsNone(process.poll(), "it ended before the kill")
                dying.signal(signal.SIGKILL)
                start = time.monotonic()
                _, error = process.communicate(timeout=60)
                elapsed = time.monotonic() - start
            finally:
                process.kill()
        error = error.decode(errors="replace")
        lines = [line for line in error.splitlines() if "error: " in line]
        self.assertEqual((process.returncode, len(lines)), (3, 1), error)
        self.assertIn(dying.address, lines[0])
        self.assertIsNone(CRASH.search(error), error)
        self.assertLess(elapsed, BOUND_S, error)
        return elapsed

    def test_kills(self):
        delays = random.Random(SEED)
        shared = len(os.listdir("/dev/shm"))
        want = subprocess.run([str(BIN / "weft"), *map(str, COMMAND), "-n", "16"], capture_output=True, timeout=120,
                              check=True).stdout
        slowest, settled = 0.0, None
        with Worker("--no-self-test") as staying:
            dying = Worker("--no-self-test")
            address = dying.address
            try:
                for i in range(KILLS):
                    slowest = max(slowest, self.kill_once(staying, dying, delays.uniform(0.0, 1.2)))
                    dying.kill()
                    dying = Worker("--no-self-test", listen=address)
                    await_closed(staying)
                    if i == min(9, KILLS // 2):
                        settled = state_of(staying), len(staying.text())
                result = subprocess.run([str(BIN / "weft"), *map(str, COMMAND), "-n", "16", "--workers",
                                         addresses([staying, dying])], capture_output=True, timeout=120, check=False)
                self.assertEqual((result.returncode, result.stdout), (0, want), result.stderr)
                check_serves(staying.address)
                await_closed(staying)
            finally:
                dying.kill()
            (resident, threads, descriptors), log = state_of(staying), len(staying.text())
            text = staying.text()
        print(f"{KILLS} kills, seed {SEED}: the slowest command ended after {slowest:.1f} s; the worker that stayed had "
              f"{settled[0]} (KiB, threads, descriptors) after some and {(resident, threads, descriptors)} at the end; "
              f"log {log} bytes", file=sys.stderr)
        self.assertIsNone(CRASH.search(text), text[-2000:])
        # A freed page may stay with the allocator, and gRPC has some threads more or less.
        self.assertLess(resident, settled[0][0] * 1.3 + 20_000)
        self.assertLess(threads, settled[0][1] + 10)
        self.assertLess(descriptors, settled[0][2] + 16)
        self.assertLess(log, LOG_BYTES * (KILLS + 2) + 2000)
        self.assertLessEqual(len(os.listdir("/dev/shm")), shared + 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
