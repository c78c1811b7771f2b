#!/usr/bin/env python3
"""Texts that coordinator/grammar draws for JSON schemas, validated by Debian's python3-jsonschema: hand-written schemas and a
few hundred random ones, whose seed is printed and taken back from WEFT_TEST_SEED."""
import datetime
import json
import os
import pathlib
import random
import re
import subprocess
import unittest

import jsonschema

PROGRAM = pathlib.Path(os.environ.get("WEFT_BIN_DIR", "build/release/bin")).parent / "tests" / "weft-schema-walks"
SCHEMAS = int(os.environ.get("WEFT_TEST_COUNT", "300"))
TEXTS = 8
TIME = re.compile(r"\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")

PERSON = {"type": "object", "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 20}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "mail": {"type": ["string", "null"], "format": "email"}, "born": {"type": "string", "format": "date"},
    "tags": {"type": "array", "items": {"enum": ["a", "b\"c", "é"]}, "maxItems": 3}},
    "required": ["name", "tags"], "additionalProperties": False}

HAND_WRITTEN = [
    PERSON,
    {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"], "$defs": {"node": {
        "type": "object", "properties": {"value": {"type": "number"}, "left": {"$ref": "#/$defs/node"},
                                         "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
        "required": ["value"]}}},
    {"oneOf": [{"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number", "minimum": 0}},
                "required": ["kind", "r"]},
               {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "integer", "minimum": 1}},
                "required": ["kind", "side"]}]},
    {"type": "array", "prefixItems": [{"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}, {"type": "boolean"}],
     "items": {"type": "integer", "exclusiveMinimum": -10, "exclusiveMaximum": 10}, "minItems": 1, "maxItems": 5},
    {"allOf": [{"$ref": "#/definitions/base"}, {"properties": {"extra": {"type": "string"}}, "required": ["extra"]}],
     "definitions": {"base": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}},
    {"type": "object", "properties": {"a": {"const": 1}, "ab": {"const": 2}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number", "minimum": 2, "maximum": 7}}},
    {"type": "object"}, {}, True, {"type": "array"}, {"type": "string"},
    {"type": "string", "pattern": "[^a-z\\s]{2}"}, {"type": "string", "pattern": "^(?:\\w+\\.)*\\w+@\\w+\\.(com|org)$"},
    {"type": "string", "pattern": "^[\\W]+$"}, {"type": "string", "pattern": "\\.\"\\\\$"},
    {"const": {"a": [1, None, "x\n\"\u2028"]}}, {"enum": ["\\", "/", "\t", 1.5, -3, []]},
]


class Schemas:
    """Random schemas of what is supported, each a value that something satisfies."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, depth=0):
        kinds = [self.string, self.integer, self.number, self.values, lambda d: {"type": self.random.choice(
            ["boolean", "null", "string", "number", "integer"])}]
        if depth < 4:
            kinds += [self.object, self.object, self.array, self.array, self.any_of, self.all_of]
        return self.random.choice(kinds)(depth)

    def name(self):
        return "".join(self.random.choice("ab\"\\é_ ") for _ in range(self.random.randint(1, 4)))

    def string(self, _):
        kind = self.random.randint(0, 3)
        if kind == 0:
            return {"type": "string", "format": self.random.choice(["date", "time", "date-time", "uuid"])}
        if kind == 1:
            parts = ["a", "[b-d]+", "\\d{1,3}", "(?:x|yz)?", "\\.", "[^q\"]", ".", "\\s*", "\\W", "é{2,}"]
            body = "".join(self.random.choice(parts) for _ in range(self.random.randint(1, 4)))
            return {"type": "string", "pattern": self.random.choice(["^", ""]) + body + self.random.choice(["$", ""])}
        low = self.random.randint(0, 4)
        return {"type": "string", "minLength": low, "maxLength": low + self.random.randint(0, 5)}

    def integer(self, _):
        low = self.random.choice([0, 1, -1]) * self.random.randint(0, 10 ** self.random.randint(0, 6))
        schema = {"type": "integer"}
        if self.random.random() < 0.7:
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self.random.random() < 0.7:
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = low + self.random.randint(
                2, 10 ** self.random.randint(1, 6))
        return schema

    def number(self, _):
        low = self.random.randint(0, 50)
        schema = {"type": "number", "minimum": low}
        if self.random.random() < 0.5:
            schema["maximum"] = low + self.random.randint(0, 100)
        return schema

    def values(self, _):
        some = [None, True, 0, -2.5, "a", "\"q\"", "é\n", [1, {"a": []}], {"x y": None}]
        return {"enum": self.random.sample(some, self.random.randint(1, 4))}

    def object(self, depth):
        properties = {self.name(): self.one(depth + 1) for _ in range(self.random.randint(0, 5))}
        schema = {"type": "object", "properties": properties,
                  "required": [name for name in properties if self.random.random() < 0.5]}
        kind = self.random.randint(0, 3)
        if kind == 0:
            schema["additionalProperties"] = False
        elif kind == 1:
            schema["additionalProperties"] = self.one(depth + 2)
        return schema

    def array(self, depth):
        schema = {"type": "array", "items": self.one(depth + 1)}
        low = self.random.randint(0, 2)
        if self.random.random() < 0.5:
            schema["minItems"] = low
        if self.random.random() < 0.5:
            schema["maxItems"] = low + self.random.randint(0, 3)
        if self.random.random() < 0.4:
            schema["prefixItems"] = [self.one(depth + 1) for _ in range(self.random.randint(1, 3))]
        return schema

    def any_of(self, depth):
        return {"anyOf": [self.one(depth + 1) for _ in range(self.random.randint(1, 3))]}

    def all_of(self, depth):
        parts = []
        for prefix in "pq":
            properties = {prefix + self.name(): self.one(depth + 1) for _ in range(self.random.randint(0, 2))}
            parts.append({"type": "object", "properties": properties, "required": list(properties)[:1]})
        return {"allOf": parts}


class Walks(unittest.TestCase):
    def check(self, schemas, seed):
        lines = "".join(json.dumps(schema) + "\n" for schema in schemas)
        result = subprocess.run([PROGRAM, str(seed), str(TEXTS)], input=lines, capture_output=True, text=True, timeout=500,
                                check=True)
        answers = [json.loads(line) for line in result.stdout.split("\n") if line]
        self.assertEqual(len(answers), len(schemas))
        # What the package knows of these is from older drafts, or needs more packages.
        checker = jsonschema.FormatChecker(formats=["date"])
        checker.checks("time", ValueError)(
            lambda text: not isinstance(text, str) or bool(TIME.fullmatch(text) and datetime.time.fromisoformat(text[:8])
                                                           is not None))
        checker.checks("date-time", ValueError)(
            lambda text: not isinstance(text, str) or bool(TIME.fullmatch(text[11:]) and text[10] == "T" and
                                                           datetime.datetime.fromisoformat(text[:19])))
        count = 0
        for schema, answer in zip(schemas, answers):
            self.assertNotIn("error", answer, schema)
            validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
            for text in answer["texts"]:
                errors = [error.message for error in validator.iter_errors(json.loads(text))]
                self.assertEqual(errors, [], (schema, text))
                count += 1
        return count

    def test_hand_written_schemas(self):
        for seed in range(5):
            self.check(HAND_WRITTEN, seed)

    def test_random_schemas(self):
        seed = int(os.environ.get("WEFT_TEST_SEED", "51"))
        print(f"seed: WEFT_TEST_SEED={seed}")
        maker = Schemas(seed)
        count = self.check([maker.one() for _ in range(SCHEMAS)], seed)
        # Few walks do not come to an end.
        self.assertGreater(count, SCHEMAS * TEXTS * 0.9)


if __name__ == "__main__":
    unittest.main()
