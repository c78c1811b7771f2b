#!/usr/bin/env python3
"""weft serve with two local workers, by plain HTTP: answers, streams, health, a worker that is lost, the end.

usage: serve_cli_test.py [unittest arguments]
"""
import base64
import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import metrics_text
from serve_process import MODEL, WEFT, ServeProcess, await_value
from workers import Worker


class Server(ServeProcess):
    """weft serve with two threads, asked by plain HTTP."""

    def __init__(self, *arguments):
        super().__init__("-t", "2", *arguments)

    def ask(self, path, body=None, port=None):
        """Status and text of a reply."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=120)
        try:
            if body is None:
                connection.request("GET", path)
            else:
                connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()

    def complete(self, prompt, count, **fields):
        status, text = self.ask("/v1/completions", {"prompt": prompt, "max_tokens": count, "temperature": 0, **fields})
        assert status == 200, text
        return json.loads(text)["choices"][0]["text"]

    def is_ready(self):
        return self.ask("/readyz", port=self.health_port)[0] == 200


# More than is computed while a test looks.
LONG = {"prompt": "ROMEO:", "max_tokens": 4000, "n": 4, "temperature": 0, "ignore_eos": True}


def steps_of(server):
    return json.loads(server.ask("/healthz", port=server.health_port)[1])["steps"]


def run_alone(prompt, count):
    """What `weft run` says."""
    result = subprocess.run([WEFT, "run", "-m", MODEL, "-p", prompt, "-n", str(count), "--temp", "0", "-t", "2"],
                            capture_output=True, text=True, timeout=120, check=True)
    return result.stdout[:-1]


# The demo model's context has little room.
SHORT_TEMPLATE = "{% for t in tools %}{{ t.function.name }} {% endfor %}{% for m in messages %}{{ m.content }}" \
                 "{% for c in m.tool_calls %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}\n{% endfor %}"
PROMPTS = ["ROMEO:", "JULIET:\n", "First Citizen:\nBefore we", "To be, or not", "KING RICHARD III:\n", "A"]


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--local-workers", "2", "--seed", "1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, "SIGTERM is no failure"

    def test_many_at_once_get_what_each_gets_alone(self):
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            answers = list(pool.map(lambda prompt: self.server.complete(prompt, 40), PROMPTS))
        self.assertEqual(answers, [run_alone(prompt, 40) for prompt in PROMPTS])

    def test_stream(self):
        status, text = self.server.ask("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Speak."}], "max_tokens": 12, "stream": True,
            "stream_options": {"include_usage": True}})
        self.assertEqual(status, 200, text)
        events = [line[len("data: "):] for line in text.splitlines() if line.startswith("data: ")]
        self.assertEqual(events[-1], "[DONE]")
        chunks = [json.loads(event) for event in events[:-1]]
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 12)
        self.assertEqual([c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1], "length")

    def test_formats_bind_the_text(self):
        schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
                  "required": ["name", "age"], "additionalProperties": False}
        status, text = self.server.ask("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Who?"}], "max_tokens": 200, "seed": 3, "n": 3,
            "response_format": {"type": "json_schema", "json_schema": {"name": "who", "schema": schema}}})
        self.assertEqual(status, 200, text)
        for choice in json.loads(text)["choices"]:
            self.assertEqual(choice["finish_reason"], "stop")
            self.assertEqual(list(json.loads(choice["message"]["content"])), ["name", "age"])
        status, text = self.server.ask("/v1/completions", {"prompt": "A", "max_tokens": 50, "grammar": 'root ::= [a-c]{3} "!"'})
        self.assertEqual(status, 200, text)
        self.assertRegex(json.loads(text)["choices"][0]["text"], r"\A[a-c]{3}!\Z")
        for fields, word in (({"grammar": "root ::= " + "(" * 60000}, "nested groups"), ({"grammar": "x"}, "grammar"),
                             ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
                                 "type": "string", "pattern": "((((a{0,999}){0,999}){0,999}))"}}}}, "alive stacks"),
                             ({"response_format": {"type": "json_schema", "json_schema": {
                                 "name": "x", "schema": {"not": {}}}}}, "'not'")):
            status, text = self.server.ask("/v1/completions", {"prompt": "A", "max_tokens": 5, **fields})
            self.assertEqual(status, 400, text)
            self.assertIn(word, text)

    def test_tool_choice_makes_the_model_call(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as template:
            template.write(SHORT_TEMPLATE)
            template.flush()
            server = Server("--chat-template", template.name)
        self.addCleanup(server.stop)
        point = {"type": "object", "properties": {"x": {"type": "integer"}, "on": {"type": "boolean"}}, "required": ["x", "on"]}
        tools = [{"type": "function", "function": {"name": name, "parameters": point}} for name in ("plot", "erase")]
        body = {"messages": [{"role": "user", "content": "Draw."}], "tools": tools, "max_tokens": 200, "seed": 4, "n": 2}
        for choice, names in (("required", {"plot", "erase"}), ({"type": "function", "function": {"name": "erase"}}, {"erase"})):
            status, text = server.ask("/v1/chat/completions", {**body, "tool_choice": choice, "parallel_tool_calls": False})
            self.assertEqual(status, 200, text)
            for answer in json.loads(text)["choices"]:
                self.assertEqual(answer["finish_reason"], "tool_calls", text)
                (call,) = answer["message"]["tool_calls"]
                self.assertIn(call["function"]["name"], names)
                self.assertEqual(list(json.loads(call["function"]["arguments"])), ["x", "on"])
        strict = {"type": "function", "function": {"name": "f", "strict": True, "parameters": {"not": {}}}}
        status, text = server.ask("/v1/chat/completions", {**body, "tools": [strict], "tool_choice": "required"})
        self.assertEqual(status, 400, text)
        self.assertIn("tools[0].function.parameters", text)

    def test_embeddings_are_alike_where_texts_are(self):
        def embed(texts, **fields):
            status, text = self.server.ask("/v1/embeddings", {"input": texts, **fields})
            self.assertEqual(status, 200, text)
            return [entry["embedding"] for entry in json.loads(text)["data"]]

        texts = ["My lord, the king", "My lord, the king", "My lord, the queen", "7777"]
        vectors = embed(texts)
        for vector in vectors:
            self.assertAlmostEqual(sum(x * x for x in vector), 1, places=4)

        def likeness(a, b):
            return sum(x * y for x, y in zip(vectors[a], vectors[b]))

        self.assertAlmostEqual(likeness(0, 1), 1, places=4)
        self.assertGreater(likeness(0, 2), likeness(0, 3))
        (packed,) = embed(texts[:1], encoding_format="base64")
        for x, y in zip(struct.unpack(f"<{len(vectors[0])}f", base64.b64decode(packed)), vectors[0]):
            self.assertAlmostEqual(x, y, places=4)

    def test_refusals_name_the_field(self):
        for body, field in (({"prompt": "a", "max_tokens": "many"}, "max_tokens"), ({"max_tokens": 1}, "prompt"),
                            ({"prompt": "a", "temperature": -1}, "temperature")):
            status, text = self.server.ask("/v1/completions", body)
            self.assertEqual(status, 400, text)
            self.assertEqual(json.loads(text)["error"]["param"], field)
        endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
        status, text = self.server.ask("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "a"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": endless}}})
        self.assertEqual((status, json.loads(text)["error"]["param"]), (400, "response_format"), text)
        self.assertNotIn("rule", text)
        self.assertEqual(self.server.ask("/v1/nothing")[0], 404)

    def test_health_and_metrics(self):
        for path in ("/livez", "/readyz", "/healthz"):
            self.assertEqual(self.server.ask(path, port=self.server.health_port)[0], 200)
        self.server.complete("ROMEO:", 4)
        status, text = self.server.ask("/metrics", port=self.server.health_port)
        self.assertEqual(status, 200)
        self.assertRegex(text, r"(?m)^weft_ready 1$")

    def test_metrics_are_documented_and_move(self):
        def read():
            status, text = self.server.ask("/metrics", port=self.server.health_port)
            self.assertEqual(status, 200)
            return metrics_text.parse(text)

        names = metrics_text.documented("weft_") - metrics_text.documented("weft_worker_")
        before = read()
        self.server.complete("ROMEO: a prompt of its own", 30)
        self.server.complete("ROMEO: a prompt of its own", 30)
        after = read()
        self.assertEqual(set(after), names)
        for name in ("weft_requests_total", "weft_requests_finished_total", "weft_prompt_tokens_total",
                     "weft_generated_tokens_total", "weft_steps_total", "weft_step_tokens_total", "weft_step_seconds",
                     "weft_batch_tokens", "weft_batch_sequences", "weft_queue_seconds", "weft_time_to_first_token_seconds",
                     "weft_time_per_token_seconds", "weft_engine_waiting_seconds_total", "weft_engine_working_seconds_total",
                     "weft_graphs_reused_total", "weft_rank_steps_total", "weft_rank_compute_seconds_total",
                     "weft_rank_wait_seconds_total", "weft_rank_wire_seconds_total", "weft_rank_sent_bytes_total",
                     "weft_transport_bytes_total"):
            self.assertGreater(metrics_text.total(after, name), metrics_text.total(before, name), name)
        for name in ("weft_slots", "weft_kv_pages", "weft_kv_cache_bytes", "weft_weight_bytes", "weft_arena_bytes",
                     "weft_graphs_built_total", "weft_rank_programs_total", "weft_sessions_opened_total"):
            self.assertGreater(metrics_text.total(after, name), 0, name)
        self.assertEqual(metrics_text.total(after, "weft_replans_total"), 0)
        ranks = {labels["rank"] for _, labels, _ in after["weft_rank_steps_total"]["samples"]}
        self.assertEqual(ranks, {"w0", "w1", "local"})

    def test_workers_can_be_ended(self):
        """They do not inherit that the server waits for signals."""
        for worker in self.server.workers():
            status = pathlib.Path(f"/proc/{worker}/status").read_text(encoding="utf-8")
            blocked = int(re.search(r"SigBlk:\s*([0-9a-f]+)", status).group(1), 16)
            self.assertEqual(blocked & (1 << (signal.SIGTERM - 1)), 0, status)


class LostWorker(unittest.TestCase):
    def test_a_worker_that_is_killed_loses_no_request(self):
        server = Server("--local-workers", "2")
        want = [run_alone(prompt, 150) for prompt in PROMPTS]
        with concurrent.futures.ThreadPoolExecutor(len(PROMPTS)) as pool:
            answers = [pool.submit(server.complete, prompt, 150) for prompt in PROMPTS]
            await_value(lambda: json.loads(server.ask("/healthz", port=server.health_port)[1])["steps"] > 20, 60)
            os.kill(server.workers()[0], signal.SIGKILL)
            self.assertEqual([answer.result() for answer in answers], want)
        await_value(server.is_ready, 30)
        self.assertIn("requests go on", server.text())
        self.assertEqual(server.stop(), 0)

    def test_a_worker_that_is_stopped_is_not_ready(self):
        server = Server("--local-workers", "2")
        stopped = server.workers()[0]
        began = time.monotonic()
        os.kill(stopped, signal.SIGSTOP)
        # Local workers are started anew, so that it may be ready again soon after.
        await_value(lambda: "the session is lost" in server.text(), 30)
        seconds = time.monotonic() - began
        print(f"a stopped worker was noticed after {seconds:.1f} s", flush=True)
        self.assertLess(seconds, 10)  # 5 where the machine is not crowded
        await_value(server.is_ready, 60)
        self.assertEqual(server.complete("ROMEO:", 10), run_alone("ROMEO:", 10))
        self.assertEqual(server.stop(), 0)

    def test_the_end_while_a_worker_is_lost(self):
        """With 0, and whoever waits for the next session is told."""
        for waiting in (0, 3):
            with self.subTest(waiting=waiting), Worker("--no-self-test") as worker:
                server = Server("--workers", worker.address, "--drain-seconds", "1")
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    answers = [pool.submit(server.ask, "/v1/completions", LONG) for _ in range(waiting)]
                    await_value(lambda: not waiting or steps_of(server) > 20, 60)
                    worker.signal(signal.SIGKILL)
                    await_value(lambda: "the session is lost" in server.text(), 30)
                    self.assertEqual(server.stop(), 0)
                    for answer in answers:
                        status, text = answer.result()
                        self.assertEqual((status, "shutting down" in text), (503, True), text)


class LateRequests(unittest.TestCase):
    def test_a_deadline_does_not_wait_for_the_step(self):
        """The worker stops, and is not lost for long."""
        with Worker("--no-self-test") as worker:
            server = Server("--workers", worker.address, "--worker-timeout", "60")
            self.addCleanup(server.kill)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
            connection.request("POST", "/v1/completions", json.dumps({**LONG, "stream": True}),
                               {"Content-Type": "application/json"})
            connection.getresponse().read(10)
            worker.signal(signal.SIGSTOP)
            for more in ({}, {"n": 3}):
                status, text = server.ask("/v1/completions", {"prompt": "a", "max_tokens": 2, "timeout": 0.5, **more})
                self.assertEqual((status, "in time" in text), (504, True), text)
            status, text = server.ask("/v1/completions", {"prompt": "a", "max_tokens": 2, "timeout": 0.5, "stream": True})
            self.assertIn("in time", text)
            self.assertNotIn("the session is lost", server.text())
            worker.signal(signal.SIGCONT)
            connection.close()

    def test_flags_that_cannot_be_are_refused(self):
        caches = [("--cache-tokens", tokens) for tokens in ("1000000000", "1000000000000", "9223372036854775807", "-1")]
        origins = [("--cors-origin", origin) for origin in ("http://localhost x", "localhost", "https://localhost/page", "")]
        for flag, value in caches + origins:
            result = subprocess.run([WEFT, "serve", "-m", MODEL, "--port", "0", flag, value], capture_output=True, timeout=60,
                                    encoding="utf-8", check=False)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(flag, result.stderr)


class EndOfDrain(unittest.TestCase):
    def test_whoever_is_not_finished_is_told(self):
        for seconds in ("0", "0.2"):
            with self.subTest(seconds=seconds):
                server = Server("-c", "8192", "--drain-seconds", seconds)
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    whole = [pool.submit(server.ask, "/v1/completions", LONG) for _ in range(2)]
                    streams = [pool.submit(server.ask, "/v1/completions", {**LONG, "stream": True}) for _ in range(2)]
                    await_value(lambda: steps_of(server) > 20, 60)
                    self.assertEqual(server.stop(), 0)
                    for answer in whole:
                        status, text = answer.result()
                        self.assertEqual((status, "shutting down" in text), (503, True), text)
                    for answer in streams:
                        status, text = answer.result()  # its last chunk is there, or this raises IncompleteRead
                        self.assertEqual(status, 200)
                        error = json.loads(text.strip().splitlines()[-1].removeprefix("data: "))["error"]
                        self.assertIn("shutting down", error["message"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
