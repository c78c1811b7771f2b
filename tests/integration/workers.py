"""Worker processes for integration tests: started on any free port, always reaped."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from logged_process import LoggedProcess

BIN = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin"))


class Worker(LoggedProcess):
    """A weft-worker that listens. Its log is kept in a file."""

    def __init__(self, *arguments, listen="127.0.0.1:0", prefix=(), binary=BIN / "weft-worker", environment=None):
        self.log = tempfile.NamedTemporaryFile("r", prefix="weft-worker-", suffix=".log")
        with open(self.log.name, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*prefix, str(binary), "--listen", listen, "--threads", "1", *map(str, arguments)],
                stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, **(environment or {})})
        self.address = self._await_address()

    def _await_address(self):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            found = re.search(r"listening on (\S+)", self.text())
            if found:
                return found.group(1)
            if self.process.poll() is not None:
                raise RuntimeError(f"the worker ended with {self.process.returncode}: {self.text()}")
            time.sleep(0.01)
        self.kill()
        raise RuntimeError("the worker does not listen: " + self.text())

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self):
        """Ends it as a person would; returns its exit code."""
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            return self.process.wait(20)
        finally:
            self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def addresses(workers):
    return ",".join(worker.address for worker in workers)
