"""Network namespaces that stand for machines, for integration tests: each has an interface `eth0` and an address of its
own; all of them hang on one bridge. Needs root and iproute2."""
import os
import pathlib
import subprocess
import time

NETWORK = "10.98.0"


class NotPermitted(Exception):
    """There is no right or no program to make namespaces."""


def _ip(*arguments):
    return subprocess.run(["ip", *map(str, arguments)], capture_output=True, encoding="utf-8", check=False)


class Machines:
    """`count` machines with the addresses 10.98.0.1 and so on. They go with the `with` block."""

    def __init__(self, count):
        self._bridge = f"weft-{os.getpid()}-bridge"
        self.names = [f"weft-{os.getpid()}-{i}" for i in range(count)]
        self.addresses = [f"{NETWORK}.{i + 1}" for i in range(count)]
        try:
            self._build()
        except (OSError, NotPermitted) as error:
            self.close()
            raise NotPermitted(str(error)) from error

    @staticmethod
    def _must(*arguments):
        done = _ip(*arguments)
        if done.returncode != 0:
            raise NotPermitted(f"ip {' '.join(map(str, arguments))}: {done.stderr.strip()}")

    def _build(self):
        self._must("netns", "add", self._bridge)
        self._must("-n", self._bridge, "link", "add", "bridge", "type", "bridge")
        self._must("-n", self._bridge, "link", "set", "bridge", "up")
        for i, (name, address) in enumerate(zip(self.names, self.addresses)):
            self._must("netns", "add", name)
            self._must("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", f"port{i}", "netns",
                       self._bridge)
            self._must("-n", self._bridge, "link", "set", f"port{i}", "master", "bridge", "up")
            self._must("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            self._must("-n", name, "link", "set", "eth0", "up")
            self._must("-n", name, "link", "set", "lo", "up")
        for machine in range(len(self.names)):
            self._await_carrier(machine)

    def _await_carrier(self, machine):
        """UCX ignores an interface before its cable works."""
        deadline = time.monotonic() + 30
        while "state UP" not in _ip("-n", self.names[machine], "-o", "link", "show", "eth0").stdout:
            if time.monotonic() > deadline:
                raise NotPermitted(f"the interface of {self.names[machine]} does not come up")
            time.sleep(0.01)

    def prefix(self, machine):
        """Of a command that runs there."""
        return ["ip", "netns", "exec", self.names[machine]]

    def set_link(self, machine, state):
        """Pulls the cable of that machine ("down") or plugs it in ("up")."""
        self._must("-n", self.names[machine], "link", "set", "eth0", state)

    def counters(self, machine):
        """What passed its interface since it was made: sent and received, packets and bytes."""
        show = "cd /sys/class/net/eth0/statistics && cat tx_packets tx_bytes rx_packets rx_bytes"
        done = subprocess.run([*self.prefix(machine), "sh", "-c", show], capture_output=True, encoding="utf-8", check=True)
        return Counters(*map(int, done.stdout.split()))

    def close(self):
        for name in [*self.names, self._bridge]:
            if pathlib.Path("/run/netns", name).exists():
                _ip("netns", "del", name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Counters:
    def __init__(self, sent_packets, sent_bytes, received_packets, received_bytes):
        self.sent_packets, self.sent_bytes = sent_packets, sent_bytes
        self.received_packets, self.received_bytes = received_packets, received_bytes

    def __sub__(self, other):
        return Counters(*(getattr(self, name) - getattr(other, name) for name in
                          ("sent_packets", "sent_bytes", "received_packets", "received_bytes")))

    def __repr__(self):
        return (f"sent {self.sent_bytes} bytes in {self.sent_packets} packets, "
                f"received {self.received_bytes} bytes in {self.received_packets} packets")
