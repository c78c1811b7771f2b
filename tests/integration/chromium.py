"""A headless Chromium under the DevTools protocol, over a pair of pipes. Standard library only."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium")
_SHORTEST_WAIT_S = 0.001


def find_chromium():
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class ProtocolError(Exception):
    pass


class Chromium:
    """One page of a browser of its own. Collects what goes wrong in the page: see problems()."""

    def __init__(self, width=1360, height=980, timeout_s=60):
        self._timeout_s = timeout_s
        self._profile = tempfile.TemporaryDirectory()
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        arguments = [find_chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
                     "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}",
                     f"--window-size={width},{height}", "about:blank"]

        def place_pipes():
            # The protocol wants 3 and 4, which the pipes may be in the other order.
            read, write = os.dup(to_browser), os.dup(from_browser)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self._process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, preexec_fn=place_pipes, close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._next_id = 1
        self._events = []
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def close(self):
        os.close(self._write)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            left = max(deadline - time.monotonic(), _SHORTEST_WAIT_S)
            if not select.select([self._read], [], [], left)[0]:
                raise ProtocolError("the browser does not answer")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise ProtocolError("the browser ended")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        message = {"id": self._next_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._next_id += 1
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise ProtocolError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self._events.append(answer)

    def open(self, address):
        """Loads a page and waits until it is complete."""
        self._events = [event for event in self._events if event["method"] != "Page.loadEventFired"]
        result = self.call("Page.navigate", url=address)
        if "errorText" in result:
            raise ProtocolError(f"{address}: {result['errorText']}")
        deadline = time.monotonic() + self._timeout_s
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            event = self._receive(deadline)
            if "method" in event:
                self._events.append(event)

    def evaluate(self, expression):
        """The value of an expression in the page, awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise ProtocolError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, expression):
        """Until the expression is true in the page; fails when time is up."""
        deadline = time.monotonic() + self._timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise ProtocolError(f"never true: {expression}")

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text if kind == "keyDown" else "")

    def screenshot(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def problems(self):
        """Errors and warnings of console, log and uncaught exceptions so far, as text."""
        found = []
        for event in self._events:
            method, value = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(value["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and value["type"] in ("error", "warning", "assert"):
                found.append(str(value["args"]))
            elif method == "Log.entryAdded" and value["entry"]["level"] in ("error", "warning"):
                found.append(value["entry"]["text"])
        return found

    def forget(self):
        """Drops what was collected."""
        self._events = []

    def requests(self):
        """Addresses that were asked for."""
        return [event["params"]["request"]["url"] for event in self._events
                if event["method"] == "Network.requestWillBeSent"]
