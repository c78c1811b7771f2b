#!/usr/bin/env python3
"""Templates rendered by coordinator/chat/jinja and by Jinja in Python (Debian's python3-jinja2), in the sandbox and with the
tojson that Hugging Face's transformers sets up: the same bytes, or an error on both sides. The corpus is tests/data/chat;
random expressions come from jinja_expressions.py with a seed that is printed and taken back from WEFT_TEST_SEED."""
import datetime
import functools
import json
import os
import pathlib
import random
import subprocess
import unittest

import jinja2
import jinja2.ext
import jinja2.sandbox

import jinja_cases
import jinja_expressions

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
PROGRAM = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin")).parent / "tests" / "weft-jinja"
DATA = SOURCE / "tests" / "data" / "chat"
NOW = datetime.datetime(2024, 7, 26, 9, 5, 3)
RANDOM_EXPRESSIONS = int(os.environ.get("WEFT_TEST_COUNT", "4000"))


class Generation(jinja2.ext.Extension):
    """{% generation %} prints its body."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment(optimized):
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                       optimized=optimized,
                                                       extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment(optimized=True)
# Jinja computes constant expressions while it compiles, by slightly other rules (slices of numbers are then undefined);
# random expressions, which are often constant, do without.
UNOPTIMIZED = environment(optimized=False)


@functools.lru_cache(maxsize=16)
def compiled(template, env):
    return env.from_string(template)


def with_python(template, context, env=ENVIRONMENT):
    """(text, None) or (None, error)."""
    try:
        return compiled(template, env).render(**context), None
    except Exception as error:  # whatever Python raises is an error of the template
        return None, f"{type(error).__name__}: {error}"


class Weft:
    def __init__(self):
        self.process = subprocess.Popen([str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def render(self, template, context):
        self.process.stdin.write(json.dumps({"template": template, "context": context}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"weft-jinja died with {self.process.wait()} at {template!r} with {context!r}")
        answer = json.loads(line)
        return answer.get("text"), answer.get("error")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=30)


class JinjaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.weft = Weft()

    @classmethod
    def tearDownClass(cls):
        cls.weft.close()

    def difference(self, template, context, env=ENVIRONMENT):
        """None, or what differs."""
        # Through JSON, so that both start from the same values.
        wanted, wanted_error = with_python(template, json.loads(json.dumps(context)), env)
        text, error = self.weft.render(template, context)
        if (wanted is None) == (text is None) and wanted == text:
            return None
        if wanted is not None and text is not None and " object at 0x" in wanted:
            return None  # the address of an iterator
        return f"\ntemplate: {template!r}\nPython:   {wanted!r} {wanted_error or ''}\nweft:     {text!r} {error or ''}"

    def check(self, template, context):
        found = self.difference(template, context)
        if found:
            self.fail(found)

    def test_conversations(self):
        data = json.loads((DATA / "conversations.json").read_text(encoding="utf-8"))
        rendered = refused = 0
        for path in sorted((DATA / "templates").glob("*.jinja")):
            template = path.read_text(encoding="utf-8")
            for name, conversation in data["conversations"].items():
                for variables in data["variables"]:
                    context = {"messages": conversation["messages"], "bos_token": "<s>", "eos_token": "</s>", **variables}
                    if conversation.get("with_tools"):
                        context["tools"] = data["tools"]
                    with self.subTest(template=path.name, conversation=name, variables=variables):
                        self.check(template, context)
                    if with_python(template, context)[0] is None:
                        refused += 1
                    else:
                        rendered += 1
        print(f"{rendered} rendered, {refused} refused by the template")
        self.assertGreater(rendered, 800)
        self.assertGreater(refused, 50)

    def test_long_conversation(self):
        messages = [{"role": ("user", "assistant")[i % 2], "content": f"{i} " + "lorem ipsum " * (i % 50)} for i in range(501)]
        for path in sorted((DATA / "templates").glob("*.jinja")):
            with self.subTest(template=path.name):
                self.check(path.read_text(encoding="utf-8"),
                           {"messages": messages, "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True})

    def test_cases(self):
        """Small templates, each for one thing of the language."""
        for template in jinja_cases.TEMPLATES:
            with self.subTest(template=template):
                self.check(template, jinja_cases.CONTEXT)

    def test_random_expressions(self):
        seed = int(os.environ.get("WEFT_TEST_SEED", "20261130"))
        print(f"seed: WEFT_TEST_SEED={seed}")
        generator = jinja_expressions.Generator(random.Random(seed))
        rendered = 0
        found = []
        for _ in range(RANDOM_EXPRESSIONS):
            template = generator.template()
            difference = self.difference(template, jinja_expressions.CONTEXT, UNOPTIMIZED)
            if difference:
                found.append(difference)
            rendered += with_python(template, jinja_expressions.CONTEXT, UNOPTIMIZED)[0] is not None
        print(f"{rendered} of {RANDOM_EXPRESSIONS} rendered, {len(found)} differ")
        self.assertFalse(found, "".join(found[:5]))
        self.assertGreater(rendered, RANDOM_EXPRESSIONS // 4)


if __name__ == "__main__":
    unittest.main(verbosity=2)
