"""Two machines (network namespaces) on a link with a delay and a rate. Needs root, iproute2 and TUN devices."""
import os
import pathlib
import subprocess

from namespaces import NotPermitted

BUILD = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin")).parent
ADDRESSES = ("10.97.0.1", "10.97.0.2")


class SlowLink:
    """Machines 0 and 1, each at its address; each way takes `delay_us` and carries `mbit` a second."""

    def __init__(self, delay_us, mbit):
        self.names = [f"weft-slow-{os.getpid()}-{i}" for i in range(2)]
        self._relay = None
        try:
            self._build(delay_us, mbit)
        except (OSError, NotPermitted) as error:
            self.close()
            raise NotPermitted(str(error)) from error

    @staticmethod
    def _must(*arguments):
        done = subprocess.run(["ip", *arguments], capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            raise NotPermitted(f"ip {' '.join(arguments)}: {done.stderr.strip()}")

    def _build(self, delay_us, mbit):
        for name in self.names:
            self._must("netns", "add", name)
        self._relay = subprocess.Popen([BUILD / "tests" / "weft-slow-link", *self.names, str(delay_us), str(mbit)],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        if self._relay.stdout.readline() != "ready\n":
            raise NotPermitted(self._relay.stderr.read().strip())
        for name, own, other in zip(self.names, ADDRESSES, reversed(ADDRESSES)):
            self._must("-n", name, "addr", "add", own, "peer", other, "dev", "slow0")
            self._must("-n", name, "link", "set", "slow0", "mtu", "9000", "txqueuelen", "2000", "up")
            self._must("-n", name, "link", "set", "lo", "up")

    def prefix(self, machine):
        """Of a command that runs there."""
        return ["ip", "netns", "exec", self.names[machine]]

    def close(self):
        if self._relay is not None:
            self._relay.kill()
            self._relay.communicate()
        for name in self.names:
            if pathlib.Path("/run/netns", name).exists():
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
