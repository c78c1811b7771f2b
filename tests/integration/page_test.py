#!/usr/bin/env python3
"""The page of `weft serve` in a headless Chromium: an answer streams, stop ends it on the server too, the fleet lists its
workers and follows a loss, keys, keyboard, a phone's width. Skips itself without Chromium.

With WEFT_SCREENSHOTS=FOLDER pictures are written there, those of docs/images among them."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import chromium
from serve_process import MODEL, WEFT, ServeProcess, await_value

PICTURES = os.environ.get("WEFT_SCREENSHOTS")
NASTY = "<img src=x onerror=alert(1)>"
KEY_CODES = {"Tab": 9, "Enter": 13, "Escape": 27}
SHIFT = 8

LAST_ANSWER = "[...document.querySelectorAll('.message.model > .text')].map((one) => one.textContent).at(-1) || ''"
IDLE = "document.querySelector('#stop').disabled && !document.querySelector('[aria-busy=true]')"
FOCUS = "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"


class Page(chromium.Chromium):
    """A browser with what a user does."""

    def key(self, key, modifiers=0):
        text = "\r" if key == "Enter" else ""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=KEY_CODES[key],
                      modifiers=modifiers, text=text if kind == "keyDown" else "")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def picture(self, name):
        if PICTURES:
            (pathlib.Path(PICTURES) / f"{name}.png").write_bytes(self.screenshot())


class PageCase(unittest.TestCase):
    arguments = ()
    model = MODEL

    @classmethod
    def setUpClass(cls):
        cls.server = ServeProcess("-t", "2", *cls.arguments, model=cls.model)
        cls.addClassCleanup(cls.server.stop)
        cls.browser = Page(width=1280, height=860)
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.resize(1280, 860)
        self.browser.scheme("light")
        self.browser.open("about:blank")
        self.browser.forget()
        self.browser.open(f"http://127.0.0.1:{self.server.port}/")

    def check_clean(self):
        """Nothing failed, and nothing was asked of another server."""
        self.assertEqual(self.browser.problems(), [])
        for address in self.browser.requests():
            self.assertTrue(address.startswith(f"http://127.0.0.1:{self.server.port}/"), address)

    def ask(self, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        try:
            connection.request("GET" if body is None else "POST", path, body and json.dumps(body),
                               {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            return reply, reply.read().decode()
        finally:
            connection.close()

    def fleet(self, **headers):
        return json.loads(self.ask("/v1/fleet", headers=headers)[1])

    def set_option(self, name, value):
        self.browser.evaluate(f"document.getElementById({json.dumps(name)}).value = {json.dumps(value)}")

    def say(self, text):
        self.browser.evaluate("document.getElementById('message').focus()")
        self.browser.type(text)
        self.browser.key("Enter")


class Chat(PageCase):
    arguments = ("--local-workers", "2", "--seed", "1", "--alias", NASTY)

    def test_an_answer_streams_and_the_next_knows_it(self):
        self.set_option("temperature", "0")
        self.set_option("most", "40")
        messages = []
        for text in ("Speak, " + NASTY, "More."):
            messages.append({"role": "user", "content": text})
            self.say(text)
            self.browser.wait_for(IDLE)
            answer = self.browser.evaluate(LAST_ANSWER)
            _, reply = self.ask("/v1/chat/completions", {"messages": messages, "temperature": 0, "max_tokens": 40})
            self.assertEqual(answer, json.loads(reply)["choices"][0]["message"]["content"])
            self.assertTrue(answer)
            messages.append({"role": "assistant", "content": answer})
        self.assertIn("tokens", self.browser.text(".message .note"))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('main img, #model img').length"), 0)
        self.assertEqual(self.browser.text(".message.user .text"), "Speak, " + NASTY)
        self.browser.wait_for(f"document.getElementById('model').textContent === {json.dumps(NASTY)}")
        self.browser.evaluate("document.getElementById('reset').click()")
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#log article').length"), 0)
        self.check_clean()

    def test_an_error_is_shown_and_the_message_is_kept(self):
        self.set_option("most", "0")
        self.say("Speak.")
        self.browser.wait_for("!document.getElementById('trouble').hidden")
        self.assertIn("max_tokens", self.browser.text("#trouble"))
        self.assertEqual(self.browser.evaluate("document.getElementById('message').value"), "Speak.")
        self.assertTrue(self.browser.evaluate(IDLE))

    def test_the_keyboard_is_enough(self):
        self.set_option("most", "30")
        order = []
        for _ in range(8):
            self.browser.key("Tab")
            order.append(self.browser.evaluate(FOCUS))
        self.assertEqual(order, ["skip", "reset", "log", "message", "send", "SUMMARY", "scroll", "BODY"])
        for name in ("key", "message", "system", "temperature", "most"):
            self.assertTrue(self.browser.evaluate(f"document.getElementById('{name}').labels.length > 0"), name)
        self.browser.key("Tab")
        self.browser.key("Enter")
        self.assertEqual(self.browser.evaluate(FOCUS), "message")
        self.browser.type("one")
        self.browser.key("Enter", SHIFT)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#log article').length"), 0)
        self.browser.type("two")
        self.browser.key("Enter")
        self.browser.wait_for("document.querySelectorAll('#log article').length === 2")
        self.assertEqual(self.browser.evaluate("document.querySelector('.message.user .text').textContent"), "one\ntwo")
        self.browser.wait_for(IDLE)
        self.assertEqual(self.browser.evaluate(FOCUS), "message")
        self.assertEqual(self.browser.evaluate("document.getElementById('log').getAttribute('aria-live')"), "polite")
        self.check_clean()

    def test_a_phone_shows_one_view_at_a_time(self):
        self.browser.resize(360, 740, 2)
        self.set_option("most", "60")
        self.say("Speak.")
        self.browser.wait_for(IDLE)
        visible = "['chat', 'fleet'].filter((id) => document.getElementById(id).offsetParent !== null).join()"
        for view in ("chat", "fleet"):
            self.browser.evaluate(f"document.getElementById('show-{view}').click()")
            self.assertEqual(self.browser.evaluate(visible), view)
            self.browser.wait_for("document.querySelectorAll('.host').length === 3")
            self.assertEqual(self.browser.evaluate("document.documentElement.scrollWidth"), 360)
            self.browser.picture(f"phone-{view}")
        self.check_clean()

    def test_the_fleet_lists_its_workers_and_follows_a_loss(self):
        self.set_option("most", "100")
        self.say("Speak.")
        labels = "[...document.querySelectorAll('.host h4')].map((one) => one.textContent)"
        self.browser.wait_for(f"{labels}.length === 3")
        before = self.browser.evaluate(labels)
        self.assertRegex(before[0], r"^worker w0 \(")
        self.assertRegex(before[1], r"^worker w1 \(")
        rows = "[...document.querySelectorAll('#layers tbody tr')].map((row) => [...row.cells].map((one) => one.textContent))"
        plan = self.fleet()["plan"]
        shown = self.browser.evaluate(rows)
        self.assertEqual([row[1] for row in shown], [part["device"] for part in plan["layers"]])
        self.assertEqual([row[2] for row in shown], [part["why"] for part in plan["layers"]])
        self.assertTrue(all(row[2] for row in shown))
        self.assertEqual({row[1] for row in shown if row[0].startswith("layer")}, {"w0.cpu0", "w1.cpu0"})
        self.assertIn("weights", self.browser.text(".host .device .parts"))
        self.browser.wait_for("document.querySelector('.host .times').textContent.includes('compute')")
        self.browser.wait_for(IDLE)
        for scheme in ("light", "dark"):
            self.browser.scheme(scheme)
            self.browser.picture(scheme)
        os.kill(self.server.workers()[0], signal.SIGKILL)
        self.browser.wait_for(f"{labels}.length === 3 && {labels}[0] !== {json.dumps(before[0])}")
        self.browser.wait_for("document.getElementById('health').textContent === 'ready'")
        self.assertIn("after a loss", self.browser.text("#session"))
        self.assertEqual(self.fleet()["counters"]["sessions_lost"], 1)
        self.check_clean()


class Stop(PageCase):
    """A model that is slow, and never ends."""
    arguments = ("--seed", "1", "-c", "4096", "--parallel", "2", "-l", "4094-inf", "-l", "4095-inf")

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model = folder.name + "/slow.gguf"
        subprocess.run([WEFT, "synth", "--arch", "llama", "--layers", "12", "--embedding", "512", "--heads", "8", "--heads-kv", "8",
                        "--head", "64", "--ff", "2048", "--vocab", "4096", cls.model], check=True, capture_output=True)
        super().setUpClass()

    def test_stop_ends_the_answer_here_and_on_the_server(self):
        self.say("Speak.")
        self.browser.wait_for(f"({LAST_ANSWER}).length > 0")
        self.assertEqual(self.fleet()["active"], 1)
        self.browser.key("Tab")
        self.assertEqual(self.browser.evaluate(FOCUS), "stop")
        self.browser.key("Enter")
        self.browser.wait_for(IDLE)
        await_value(lambda: self.fleet()["active"] == 0, 60)
        self.assertEqual(self.fleet()["counters"]["cancelled"], 1)
        self.assertIn("stopped", self.browser.text(".message .note"))
        self.assertEqual(self.browser.evaluate(FOCUS), "message")
        # Escape does it too, and leaving.
        self.say("Again.")
        self.browser.wait_for("document.querySelectorAll('.message.model').length === 2 && "
                              f"({LAST_ANSWER}).length > 0")
        self.browser.key("Escape")
        self.browser.wait_for(IDLE)
        await_value(lambda: self.fleet()["counters"]["cancelled"] == 2, 60)
        self.say("Once more.")
        self.browser.wait_for("document.querySelectorAll('.message.model').length === 3 && "
                              f"({LAST_ANSWER}).length > 0")
        self.browser.evaluate("document.getElementById('reset').click()")
        await_value(lambda: self.fleet()["counters"]["cancelled"] == 3, 60)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#log article').length"), 0)
        self.assertTrue(self.browser.evaluate(IDLE))
        self.check_clean()


class Keys(PageCase):
    arguments = ("--seed", "1", "--api-key", "open sesame")

    def test_the_page_asks_for_the_key(self):
        reply, text = self.ask("/")
        self.assertEqual(reply.status, 200)
        self.assertTrue(reply.headers["Content-Security-Policy"].startswith("default-src 'self'"))
        self.assertNotIn("style=", text)
        self.assertEqual(self.ask("/v1/fleet")[0].status, 401)
        self.browser.wait_for("!document.getElementById('key-form').hidden")
        self.browser.wait_for(f"({FOCUS}) === 'key'")
        self.browser.picture("key")
        self.browser.type("wrong")
        self.browser.key("Enter")
        self.browser.wait_for("document.getElementById('key-error').textContent !== ''")
        self.browser.type("open sesame")
        self.browser.key("Enter")
        self.browser.wait_for("document.getElementById('health').textContent === 'ready'")
        self.assertTrue(self.browser.evaluate("document.getElementById('key-form').hidden"))
        self.assertEqual(self.browser.evaluate("localStorage.length + document.cookie.length"), 0)
        self.assertEqual(self.browser.evaluate("sessionStorage.length"), 1)
        self.set_option("most", "5")
        self.say("Speak.")
        self.browser.wait_for(f"({LAST_ANSWER}).length > 0 && {IDLE}")
        # Chromium itself writes a line for each reply of 401, and the page none.
        self.assertEqual([text for text in self.browser.problems() if "401" not in text], [])


if PICTURES:
    class Pictures(PageCase):
        """Those of docs/images."""
        arguments = ("--local-workers", "2", "--seed", "7", "--alias", "shakespeare")

        def test_pictures(self):
            for scheme, width, height in (("light", 1180, 800), ("dark", 360, 720)):
                self.browser.open(f"http://127.0.0.1:{self.server.port}/")
                self.browser.resize(width, height)
                self.browser.scheme(scheme)
                self.set_option("most", "90")
                for text in ("What news of the king?", "And of the queen?"):
                    self.say(text)
                    self.browser.wait_for(IDLE)
                self.browser.wait_for("(document.querySelector('.host .times') || {textContent: ''}).textContent !== ''")
                self.browser.picture(f"page-{scheme}")
                self.browser.evaluate("document.getElementById('show-fleet').click()")
                self.browser.picture(f"page-{scheme}-fleet")


if __name__ == "__main__":
    if chromium.find_chromium() is None:
        print("[  SKIPPED ] WeftPage.Chromium")
        sys.exit(0)
    unittest.main(verbosity=2)
