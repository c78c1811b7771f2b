"""A TCP proxy that misbehaves on demand, for integration tests: threads and sockets, standard library only.

A rule says what happens in one direction of a connection once so many bytes have passed; rules can also be armed while
connections are open. Everything ends with the `with` block.
"""
import dataclasses
import socket
import struct
import threading

UP = "up"  # from the one who connects to the target
DOWN = "down"
ACTIONS = ("drop", "delay", "truncate", "reset", "half-close", "corrupt", "stall")
CHUNK = 16384


@dataclasses.dataclass(frozen=True)
class Rule:
    """`action` at byte `after` of that direction, in the connections with these numbers (all if empty).

    drop: the connection forwards nothing more in that direction and reads on. delay: every piece from there on waits for
    `seconds`; once: only the first one. truncate: closes both sides, in the middle of a message as it comes. reset: the
    same with RST. half-close: the end of the stream in that direction only. corrupt: one byte is inverted. stall: reads
    nothing more, so that the sender's window fills.
    """
    action: str
    after: int = 0
    direction: str = UP
    connections: tuple = ()
    seconds: float = 0.0
    once: bool = False

    def __post_init__(self):
        assert self.action in ACTIONS and self.direction in (UP, DOWN), self


class _Connection:
    def __init__(self, proxy, number, near, far):
        self.proxy, self.number, self.near, self.far = proxy, number, near, far
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._pump, args=(UP, near, far)),
                        threading.Thread(target=self._pump, args=(DOWN, far, near))]

    def start(self):
        for thread in self.threads:
            thread.start()

    def close(self, reset=False):
        self.over.set()
        for side in (self.near, self.far):
            try:
                if reset:
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other end was faster

    def _pump(self, direction, source, sink):
        done = 0  # bytes of this direction
        applied = set()  # rules that are over
        try:
            while not self.over.is_set():
                data = source.recv(CHUNK)
                if not data:
                    sink.shutdown(socket.SHUT_WR)
                    return
                rule = self.proxy.rule_for(self.number, direction, done + len(data), applied)
                if rule is None:
                    sink.sendall(data)
                elif not self._apply(rule, data, max(0, rule.after - done), sink, applied):
                    return
                done += len(data)
                self.proxy.note_piece()
        except OSError:
            self.close()

    def _apply(self, rule, data, at, sink, applied):
        """False: this direction is over. `at` is where in `data` the rule begins."""
        self.proxy.struck.set()
        if rule.action == "corrupt":
            at = min(at, len(data) - 1)
            sink.sendall(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1:])
            applied.add(rule)
            return True
        if rule.action == "delay":
            self.over.wait(rule.seconds)
            sink.sendall(data)
            if rule.once:
                applied.add(rule)
            return True
        sink.sendall(data[:at])
        if rule.action == "drop":
            while self.near.recv(CHUNK) if rule.direction == UP else self.far.recv(CHUNK):
                pass
        elif rule.action == "stall":
            self.over.wait()
        elif rule.action == "half-close":
            sink.shutdown(socket.SHUT_WR)
        else:
            self.close(reset=rule.action == "reset")
        return False


class FaultProxy:
    """Forwards to `target` ("HOST:PORT"; may be set later). `address` is what to connect to."""

    def __init__(self, target=None, *rules):
        self.target = target
        self.struck = threading.Event()  # a rule has applied
        self._lock = threading.Lock()
        self._moved = threading.Condition(self._lock)
        self._pieces = 0  # forwarded
        self._rules = list(rules)
        self._connections = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def arm(self, *rules):
        """Instead of those before, in open connections too; bytes count from the connection's start."""
        with self._lock:
            self._rules = list(rules)

    def rule_for(self, number, direction, done, applied):
        with self._lock:
            for rule in self._rules:
                if (rule.direction == direction and done > rule.after and rule not in applied
                        and (not rule.connections or number in rule.connections)):
                    return rule
        return None

    def count(self):
        """Connections so far."""
        with self._lock:
            return len(self._connections)

    def note_piece(self):
        with self._lock:
            self._pieces += 1
            self._moved.notify_all()

    def await_pieces(self, count, seconds):
        """Waits until so many more pieces of data have passed in either direction; False: not by then."""
        with self._lock:
            target = self._pieces + count
            return self._moved.wait_for(lambda: self._pieces >= target, seconds)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return  # closed
            try:
                host, port = self.target.rsplit(":", 1)
                far = socket.create_connection((host, int(port)), timeout=20)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            for side in (near, far):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                connection = _Connection(self, len(self._connections), near, far)
                self._connections.append(connection)
            connection.start()

    def close(self):
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self._thread.join(20)
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()
        for connection in connections:
            for thread in connection.threads:
                thread.join(20)
            connection.near.close()
            connection.far.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
