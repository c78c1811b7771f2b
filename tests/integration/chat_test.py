#!/usr/bin/env python3
"""weft chat on a terminal and in a pipe: editing, history, commands, Ctrl-C, what a terminal gets to see.

usage: chat_test.py [unittest arguments]
"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import tempfile
import termios
import time
import unittest

from serve_process import MODEL, WEFT

WAIT_S = 120
LEFT, UP = "\x1b[D", "\x1b[A"
CTRL_A, CTRL_C, CTRL_D, CTRL_E, BACKSPACE = "\x01", "\x03", "\x04", "\x05", "\x7f"
# What the line editor writes to move about.
EDITING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0B]?|[\x07\x08\r]")
SYNTH = ("synth", "--arch", "llama", "--vocab", "4096", "--heads", "8", "--heads-kv", "8")
# The last tokens of such a model end a text.
ESCAPE_ID = 27  # of the control character in its vocabulary
ENDLESS = ("-l", "4094-inf", "-l", "4095-inf")


class Terminal:
    """weft chat as somebody at a terminal has it."""

    def __init__(self, state, *arguments, model=MODEL):
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            os.environ.update(XDG_STATE_HOME=str(state), TERM="vt100", LC_ALL="C.UTF-8")
            os.execv(WEFT, [WEFT, "chat", "-m", model, *arguments])
        self.output = ""
        self.seen = 0  # of the output: where the next look begins
        self.expect(r"> $")

    def fill(self, deadline):
        ready, _, _ = select.select([self.terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"waited in vain, so far: {self.output!r}"
        try:
            part = os.read(self.terminal, 65536)
        except OSError:
            part = b""
        assert part, f"it ended: {self.output!r}"
        self.output += part.decode("utf-8", "replace")

    def expect(self, pattern):
        """What came until the pattern is found in it, without what moves the cursor."""
        deadline = time.monotonic() + WAIT_S
        while True:
            text = EDITING.sub("", self.output[self.seen:])
            if re.search(pattern, text):
                self.seen = len(self.output)
                return text
            self.fill(deadline)

    def echoes(self):
        """Whether the terminal itself shows what is typed."""
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def say(self, text):
        """The answer, when the next prompt is there."""
        self.type(text + "\r")
        return self.expect(r"\n> $")

    def wait(self):
        """Its exit code, when it has ended by itself."""
        while True:
            try:
                part = os.read(self.terminal, 65536)
            except OSError:
                break
            if not part:
                break
            self.output += part.decode("utf-8", "replace")
        _, status = os.waitpid(self.process, 0)
        self.process = None
        return os.waitstatus_to_exitcode(status)

    def close(self):
        if self.process is not None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.terminal)


class ChatCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments, model=MODEL):
        terminal = Terminal(self.folder / "state", "-t", "2", "--seed", "1", *arguments, model=model)
        self.addCleanup(terminal.close)
        return terminal

    def saved(self, terminal):
        path = self.folder / "saved.json"
        path.unlink(missing_ok=True)
        self.assertIn("Saved as", terminal.say(f"/save {path}"))
        return [(message["role"], message["content"]) for message in json.loads(path.read_text())["messages"]]

    def said(self, terminal):
        return [text for role, text in self.saved(terminal) if role == "user"]

    def synth(self, *shape):
        path = str(self.folder / "synth.gguf")
        subprocess.run([WEFT, *SYNTH, *shape, path], check=True, capture_output=True)
        return path


class OnATerminal(ChatCase):
    def test_lines_are_edited_and_remembered(self):
        terminal = self.start("-n", "5", "--system", "Be brief.")
        if "without line editing" in terminal.output:
            self.skipTest("built without libedit")
        self.assertFalse(terminal.echoes())
        self.assertIn("/reset", terminal.say("/help"))
        terminal.say("Helo" + LEFT + "l" + CTRL_E + "!")
        terminal.say("x\u00fc" + BACKSPACE + "y" + CTRL_A + "\u6f22")
        terminal.type("given up")
        terminal.expect("given up$")
        terminal.type(CTRL_C)
        terminal.expect(r"\^C\n> $")
        terminal.say("kept")
        terminal.say(UP + UP + UP)
        self.assertEqual(self.said(terminal), ["Hello!", "\u6f22xy", "kept", "Hello!"])
        self.assertEqual(self.saved(terminal)[0], ("system", "Be brief."))
        terminal.say("/reset")
        self.assertEqual(self.said(terminal), [])
        terminal.type("a\\\r")
        terminal.expect(r"\n\. $")
        terminal.say("b")
        self.assertEqual(self.said(terminal), ["a\nb"])
        terminal.type(CTRL_D)
        self.assertEqual(terminal.wait(), 0)
        history = self.folder / "state" / "weft" / "chat_history"
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)
        # The next program knows what was typed in this one.
        terminal = self.start("-n", "5")
        terminal.say(UP + UP)
        self.assertEqual(self.said(terminal), ["b"])
        terminal.type(CTRL_C)
        terminal.expect(r"Ctrl-C once more.*\n> $")
        terminal.type(CTRL_C)
        self.assertEqual(terminal.wait(), 0)

    def test_errors_are_shown_and_it_goes_on(self):
        terminal = self.start("-n", "5")
        self.assertIn("no command /nonsense", terminal.say("/nonsense"))
        self.assertIn("the context holds", terminal.say("word " * 300))
        self.assertIn("cannot create", terminal.say(f"/save {self.folder}/none/file"))
        terminal.say("Short.")
        self.assertEqual(self.said(terminal), ["Short."])
        terminal.type("/quit\r")
        self.assertEqual(terminal.wait(), 0)

    def check_stop(self, *arguments):
        """Ctrl-C ends an answer that would go on for minutes, and not the program."""
        model = self.synth("--layers", "8", "--embedding", "512", "--head", "64", "--ff", "2048")
        terminal = self.start("-c", "4096", *ENDLESS, *arguments, model=model)
        for _ in range(2):
            terminal.type("Speak.\r")
            terminal.expect(r"(?s)Speak\.\n.*\S")
            terminal.type(CTRL_C)
            terminal.expect(r"\[stopped\]\n> $")
        roles = [role for role, text in self.saved(terminal) if text]
        self.assertEqual(roles[-2:], ["user", "assistant"])
        terminal.type(CTRL_D)
        self.assertEqual(terminal.wait(), 0)
        self.assertNotIn("is lost", terminal.output)

    def test_ctrl_c_stops_the_answer_only(self):
        self.check_stop()

    def test_workers_of_its_own_survive_ctrl_c(self):
        self.check_stop("--local-workers", "2")


class InAPipe(ChatCase):
    def run_lines(self, text, *arguments, model=MODEL, code=0):
        result = subprocess.run([WEFT, "chat", "-m", model, "-t", "2", *arguments], input=text, capture_output=True, text=True,
                                timeout=WAIT_S, check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def test_each_line_is_answered(self):
        path = self.folder / "saved.json"
        lines = f"Speak, my lord, of all that came to pass.\n\nMore.\n/save {path}\n/reset\nMore.\n"
        flags = ("--temp", "0", "-n", "30")
        answers = [json.loads(line) for line in self.run_lines(lines, "--json", *flags).stdout.splitlines()]
        self.assertEqual(len(answers), 3)
        self.assertEqual({answer["finish_reason"] for answer in answers} - {"stop", "length"}, set())
        # Only what is new is read: whole pages of the turn before are found.
        self.assertGreater(answers[1]["reused_tokens"], answers[0]["prompt_tokens"])
        self.assertLess(answers[2]["prompt_tokens"], answers[1]["prompt_tokens"])
        plain = self.run_lines(lines, *flags).stdout
        self.assertEqual(plain, "".join(answer["content"] + "\n" for answer in answers))
        messages = json.loads(path.read_text())["messages"]
        self.assertEqual([message["content"] for message in messages][1::2], [answer["content"] for answer in answers[:2]])

    def test_an_error_ends_it(self):
        self.assertIn("no command /nonsense", self.run_lines("/nonsense\nHello\n", code=2).stderr)
        self.assertIn("-n: 0", self.run_lines("", "-n", "0", code=2).stderr)

    def test_control_characters_of_a_model_are_shown(self):
        model = self.synth("--layers", "2", "--embedding", "64", "--head", "8", "--ff", "128")
        flags = ("--seed", "1", "-n", "600", "-l", f"{ESCAPE_ID}+4", "-c", "1024", "--top-k", "0", "--top-p", "1", "--min-p", "0", *ENDLESS)
        raw = json.loads(self.run_lines("Speak.\n", "--json", *flags, model=model).stdout)["content"]
        control = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertRegex(raw, control)
        shown = self.run_lines("Speak.\n", *flags, model=model).stdout
        self.assertNotRegex(shown, control)
        self.assertEqual(len(shown), len(raw) + 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
