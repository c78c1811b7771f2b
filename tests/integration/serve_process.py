"""A `weft serve` of a test: started on any free ports, ended by SIGTERM."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from logged_process import LoggedProcess

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", pathlib.Path(__file__).parents[2])).resolve()
WEFT = os.environ.get("WEFT_BIN_DIR", "build/release/bin") + "/weft"
MODEL = str(SOURCE / "models" / "shakespeare-q8_0.gguf")
READY = re.compile(r"listening on http://\S+:(\d+) \(health on (\d+)\)")
START_S = 120


def await_value(ask, seconds):
    """The first value of ask() that is not false; fails after that time."""
    deadline = time.monotonic() + seconds
    while True:
        value = ask()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {seconds} s in vain"
        time.sleep(0.02)


class ServeProcess(LoggedProcess):
    """weft serve with the demo model or another; returns when it listens."""

    def __init__(self, *arguments, model=MODEL):
        self.log = tempfile.NamedTemporaryFile("r", prefix="weft-serve-", suffix=".log")
        with open(self.log.name, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([WEFT, "serve", "-m", model, "--port", "0", *arguments],
                                            stdout=subprocess.DEVNULL, stderr=log)
        try:
            found = await_value(lambda: READY.search(self.text()) or self.ended(), START_S)
        except AssertionError:
            self.kill()
            raise
        self.port, self.health_port = int(found.group(1)), int(found.group(2))

    def ended(self):
        assert self.process.poll() is None, f"weft serve ended with {self.process.returncode}: {self.text()}"

    def workers(self):
        """Processes that it started."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(pid) for pid in listed.stdout.split()]

    def stop(self):
        """Its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        finally:
            self.kill()
