#!/usr/bin/env python3
"""The openai package, unmodified, and hostile sockets against `weft serve` with two local workers. Needs openai;
runs itself again under .venv, which `tests/run.sh --nightly` makes, where it is missing.

usage: serve_test.py [unittest arguments]
WEFT_SERVE_URL: a server that runs already, "http://127.0.0.1:PORT HEALTH_PORT"; else one is started.
"""
import concurrent.futures
import json
import os
import pathlib
import socket
import sys
import threading
import unittest
import urllib.error
import urllib.request

from serve_process import SOURCE, ServeProcess, await_value

VENV_PYTHON = SOURCE / ".venv/bin/python"

try:
    import openai
except ImportError as missing:
    if VENV_PYTHON.exists() and pathlib.Path(sys.prefix) != SOURCE / ".venv":
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])
    print(f"{missing}: no test with it; pip install -r tests/requirements.txt")
    print("[  SKIPPED ] ServeTest.OpenAiPackage")
    sys.exit(0)


class Server(ServeProcess):
    """weft serve with two local workers, or the one that runs already."""

    def __init__(self, *arguments):
        given = os.environ.get("WEFT_SERVE_URL")
        self.given = bool(given) and not arguments
        if self.given:
            url, health = given.split()
            self.port, self.health_port = int(url.rsplit(":", 1)[1]), int(health)
        else:
            super().__init__("--local-workers", "2", "-c", "1024", *arguments)

    def client(self, key="none"):
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key, max_retries=0, timeout=120)

    def stop(self):
        return 0 if self.given else super().stop()


def get(port, path):
    """Status and text of a GET."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def post(port, path, body):
    """Status and text of a POST of bytes."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def exchange(port, pieces, patience=20):
    """Sends pieces of bytes over a socket and returns what comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
        try:
            for piece in pieces:
                connection.sendall(piece)
            reply = b""
            while True:
                more = connection.recv(65536)
                if not more:
                    return reply
                reply += more
        except (ConnectionError, TimeoutError):
            return b""


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = cls.server.client()
        cls.model = cls.client.models.list().data[0].id

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.stop()

    def health(self):
        return json.loads(get(self.server.health_port, "/healthz")[1])

    def await_idle(self):
        await_value(lambda: self.health()["requests"] == {"active": 0, "waiting": 0}, 60)
        self.assertEqual(self.health()["kv_pages"]["used"], 0)


class Client(WithServer):
    """What the openai package can do."""

    def chat(self, **fields):
        messages = [{"role": "system", "content": "You are a player."}, {"role": "user", "content": "Speak."}]
        return self.client.chat.completions.create(**{"model": self.model, "messages": messages, "max_tokens": 16, **fields})

    def complete(self, **fields):
        return self.client.completions.create(**{"model": self.model, "prompt": "ROMEO:", "max_tokens": 16, **fields})

    def test_chat_whole_and_streamed_are_equal(self):
        whole = self.chat(temperature=0)
        self.assertIn(whole.choices[0].finish_reason, ("stop", "length"))
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        chunks = list(self.chat(temperature=0, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, whole.choices[0].message.content)
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertEqual({chunk.id for chunk in chunks}, {chunks[0].id})

    def test_choices_seeds_and_stops(self):
        several = self.chat(n=3, seed=5, temperature=1)
        self.assertEqual([choice.index for choice in several.choices], [0, 1, 2])
        again = self.chat(n=3, seed=5, temperature=1)
        self.assertEqual([c.message.content for c in several.choices], [c.message.content for c in again.choices])
        text = self.complete(temperature=0, extra_body={"ignore_eos": True}).choices[0].text
        stop = text[len(text) // 2:][:2]
        stopped = self.complete(temperature=0, stop=[stop], extra_body={"ignore_eos": True}).choices[0]
        self.assertEqual(stopped.text, text[:text.index(stop)])
        self.assertEqual(stopped.finish_reason, "stop")

    def test_batches_equal_single_answers(self):
        prompts = ["ROMEO:", "JULIET:", "First Citizen:", "O, "]
        alone = [self.complete(prompt=prompt, temperature=0).choices[0].text for prompt in prompts]
        together = self.complete(prompt=prompts, temperature=0)
        self.assertEqual([choice.text for choice in together.choices], alone)

    def test_log_probabilities(self):
        reply = self.chat(logprobs=True, top_logprobs=2, temperature=0)
        content = reply.choices[0].logprobs.content
        self.assertTrue(content)
        for token in content:
            self.assertLessEqual(token.logprob, 0)
            self.assertEqual(len(token.top_logprobs), 2)
            self.assertAlmostEqual(token.top_logprobs[0].logprob, token.logprob, 3)

    def test_cached_prompts_are_told(self):
        prompt = "Long ago, in a town far from here, there lived two houses, both alike in dignity. " * 4
        self.complete(prompt=prompt)
        self.assertGreater(self.complete(prompt=prompt).usage.prompt_tokens_details.cached_tokens, 0)

    def test_errors_name_the_field(self):
        with self.assertRaises(openai.BadRequestError) as raised:
            self.chat(temperature=-1)
        self.assertEqual(raised.exception.param, "temperature")
        with self.assertRaises(openai.NotFoundError) as raised:
            self.chat(model="another")
        self.assertEqual(raised.exception.code, "model_not_found")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.complete(prompt="word " * 5000)
        self.assertEqual(raised.exception.param, "prompt")
        with self.assertRaises(openai.BadRequestError) as raised:
            self.client.embeddings.create(model=self.model, input="")
        self.assertEqual(raised.exception.param, "input")

    def test_embeddings(self):
        reply = self.client.embeddings.create(model=self.model, input=["My lord, the king", "My lord, the king", "7777"])
        first, second, third = (entry.embedding for entry in reply.data)
        self.assertAlmostEqual(sum(x * y for x, y in zip(first, second)), 1, places=4)
        self.assertLess(sum(x * y for x, y in zip(first, third)), 0.9999)
        self.assertEqual(reply.usage.prompt_tokens, reply.usage.total_tokens)

    def test_leaving_a_stream_ends_it(self):
        before = self.health()["requests"]
        self.assertEqual(before["active"], 0)
        stream = self.complete(max_tokens=900, stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()
        self.await_idle()

    def test_tokens_there_and_back(self):
        tokens = json.loads(post(self.server.port, "/tokenize", b'{"content": "to be"}')[1])["tokens"]
        body = json.dumps({"tokens": tokens}).encode()
        self.assertIn("to be", json.loads(post(self.server.port, "/detokenize", body)[1])["content"])


class Load(WithServer):
    def test_many_streams_a_quarter_leaves(self):
        lengths = [4, 8, 16, 40]
        alone = {n: self.client.completions.create(model=self.model, prompt=f"Scene {n}.", max_tokens=n, temperature=0)
                 .choices[0].text for n in lengths}

        def one(number):
            length = lengths[number % len(lengths)]
            stream = self.client.completions.create(model=self.model, prompt=f"Scene {length}.", max_tokens=length,
                                                    temperature=0, stream=True)
            text = ""
            for chunk in stream:
                text += chunk.choices[0].text
                if number % 4 == 1 and text:
                    stream.close()
                    return None
            return text == alone[length]

        with concurrent.futures.ThreadPoolExecutor(200) as pool:
            results = list(pool.map(one, range(200)))
        self.assertEqual(results.count(False), 0)
        self.assertGreaterEqual(results.count(True), 150)
        self.await_idle()


class Hostile(WithServer):
    HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"

    def tearDown(self):
        self.assertEqual(get(self.server.port, "/readyz")[0], 200)

    def check_refused(self, *pieces):
        reply = exchange(self.server.port, pieces)
        self.assertRegex(reply[:12], rb"^HTTP/1\.[01] 4\d\d", pieces[0][:80])

    def test_bodies(self):
        for body in [b"", b"[" * 100000, b'{"a":' * 50000, b'{"prompt": "\xff\xfe"}', b'{"prompt": "a", "n": 1e400}',
                     b'{"prompt": "a", "max_tokens": 99999999999999999999}', b'{"prompt": "a", "n": -1}',
                     b'{"prompt": "a", "tools": ' + b"[" * 3000 + b"]" * 3000 + b"}", b'{"prompt": [-1]}',
                     b'{"prompt": "a", "stop": ' + json.dumps(["x"] * 1000).encode() + b"}"]:
            status, text = post(self.server.port, "/v1/completions", body)
            self.assertEqual(status, 400, (body[:80], text))
            self.assertIn("message", json.loads(text)["error"])

    def test_grammars(self):
        for grammar in ["(" * 60000 + '"a"' + ")" * 60000, "root ::= " + "(" * 60000 + '"a"' + ")" * 60000, "root ::= root"]:
            body = json.dumps({"prompt": "a", "grammar": grammar}).encode()
            self.assertIn(post(self.server.port, "/v1/completions", body)[0], (400, 501))

    def test_heads(self):
        self.check_refused(b"nonsense\r\n\r\n")
        self.check_refused(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n")
        self.check_refused(self.HEAD + b"X: " + b"x" * 1000000 + b"\r\n\r\n")
        self.check_refused(self.HEAD + b"A: b\r\n" * 50000 + b"\r\n")
        self.check_refused(self.HEAD + b"Content-Length: 99999999999\r\n\r\n")
        self.check_refused(self.HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}")
        self.check_refused(self.HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")

    def test_split_pieces(self):
        body = b'{"prompt": "a", "max_tokens": 1}'
        request = self.HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        reply = exchange(self.server.port, [request[i:i + 1] for i in range(len(request))])
        self.assertTrue(reply.startswith(b"HTTP/1.1 200"), reply[:200])

    def test_slow_heads_do_not_take_the_server(self):
        slow = [socket.create_connection(("127.0.0.1", self.server.port), 10) for _ in range(50)]
        for connection in slow:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost:")
        self.assertEqual(get(self.server.health_port, "/livez")[0], 200)
        self.assertEqual(get(self.server.port, "/livez")[0], 200)
        for connection in slow:
            connection.settimeout(40)
            reply = connection.recv(4096)
            self.assertTrue(reply == b"" or reply.startswith(b"HTTP/1.1 4"), reply)
            connection.close()

    def test_random_bytes(self):
        seed = int(os.environ.get("WEFT_TEST_SEED", "1"))
        print("WEFT_TEST_SEED =", seed)
        state = seed
        for _ in range(200):
            data = bytearray()
            for _ in range(200):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
                data.append(state >> 56)
            exchange(self.server.port, [bytes(data), b"\r\n\r\n"])


class Keys(unittest.TestCase):
    def test_keys_and_drain(self):
        server = Server("--api-key", "secret")
        try:
            with self.assertRaises(openai.AuthenticationError):
                server.client("wrong").models.list()
            client = server.client("secret")
            model = client.models.list().data[0].id
            self.assertEqual(get(server.port, "/metrics")[0], 401)
            self.assertIn("weft_ready 1", get(server.health_port, "/metrics")[1])
            # What is under way when the server is told to stop comes to its end.
            stream = iter(client.completions.create(model=model, prompt="ROMEO:", max_tokens=200, stream=True,
                                                    extra_body={"ignore_eos": True}))
            next(stream)
            code = []
            stopping = threading.Thread(target=lambda: code.append(server.stop()))
            stopping.start()
            self.assertIn("length", [chunk.choices[0].finish_reason for chunk in stream])
            stopping.join()
            self.assertEqual(code, [0])
        finally:
            if server.process.poll() is None:
                server.process.kill()


if __name__ == "__main__":
    unittest.main()
