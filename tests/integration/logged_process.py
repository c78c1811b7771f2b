"""A process of a test whose log is kept in a file; `process` and `log` are set by who starts it."""


class LoggedProcess:
    def text(self):
        """Of its log so far."""
        with open(self.log.name, encoding="utf-8", errors="replace") as log:
            return log.read()

    def kill(self):
        """At once, where it has not ended: for tests that fail."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)
        self.log.close()
