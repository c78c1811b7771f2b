#!/usr/bin/env python3
"""Writes tests/data/pretokenizer/*.json: texts split to words by Python's `regex` module.

The oracle for coordinator/tokenizer/pre_tokenizer: the expressions below are written down from chapter I.5 of the
specification, apart from those in the C++ table, and run by another regular expression engine. Texts are random, but
the same for a seed. They use code points whose general category is the same in Unicode 14 (the tables of PCRE2 10.42)
and in the tables of `regex`, without U+017F and U+212A, which some engines take for s and k where case is ignored.

Needs the package `regex` and Python 3.11, whose unicodedata has Unicode 14.
Usage: pretokenizer_oracle.py [--seed N] [--count N] [--out FOLDER]
"""

import argparse
import json
import os
import random
import unicodedata

import regex

ANY_CASE = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CJK_SYLLABLES = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
KANA = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
PREFIX = r"[^\r\n\p{L}\p{N}]?"

EXPRESSIONS = {
    "llama-bpe": [rf"{ANY_CASE}|{PREFIX}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{BLANKS}"],
    "qwen2": [rf"{ANY_CASE}|{PREFIX}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{BLANKS}"],
    "qwen35": [rf"{ANY_CASE}|{PREFIX}[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{BLANKS}"],
    "gpt-2": [GPT2],
    "default": [r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"],
    "starcoder": [r"\p{N}", GPT2],
    "refact": [r"\p{N}", GPT2],
    "command-r": [r"\p{N}", GPT2],
    "falcon": [r"[\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"],
    "deepseek-coder": [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", CJK_SYLLABLES, r"\p{N}"],
    "deepseek-v3": [
        r"\p{N}{1,3}",
        KANA,
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{BLANKS}",
    ],
    "gpt-4o": [
        rf"{PREFIX}{UPPER}*{LOWER}+{ANY_CASE}?|{PREFIX}{UPPER}+{LOWER}*{ANY_CASE}?|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
    ],
    "llama4": [
        rf"{PREFIX}{UPPER}*{LOWER}+{ANY_CASE}?|{PREFIX}{UPPER}+{LOWER}*{ANY_CASE}?|\p{{N}}{{1,3}}"
        rf"| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
    ],
    "tekken": [
        rf"{PREFIX}{UPPER}*{LOWER}+|{PREFIX}{UPPER}+{LOWER}*|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{BLANKS}"
    ],
}

# Ranges to draw single characters from, one kind after the other with equal chance.
RANGES = [
    "az", "AZ", "09", "!/", ":@", "[`", "{~",
    "\u00c0\u017e", "\u0180\u024f", "\u01c4\u01cc", "\u0370\u03ff", "\u0400\u04ff", "\u0531\u0587", "\u10a0\u10ff",
    "\u05d0\u05ea", "\u0620\u064a", "\u0904\u0939", "\u0e01\u0e3a", "\u3041\u3096", "\u30a1\u30fa",
    "\u4e00\u4e40", "\u9f90\u9fa8", "\uac00\uac20", "\ud7b0\ud7c6", "\u0800\u0815",
    "\u0300\u030f", "\u093e\u094d", "\u064b\u0652", "\u20d0\u20dc",
    "\u00b2\u00b3", "\u00bc\u00be", "\u0660\u0669", "\u2160\u216b", "\u2460\u2469", "\u3007\u3007", "\U0001d7ce\U0001d7d7",
    "\u00a1\u00bf", "\u2010\u2027", "\u3001\u3003", "\u20a0\u20bf", "\u2190\u21ff", "\u02b0\u02c1",
    "\U0001f600\U0001f64f", "\U0001f3fb\U0001f3ff", "\U0001d400\U0001d433", "\U00020000\U00020020", "\u200b\u200f",
    "\ufe0f\ufe0f", "\ufffd\ufffd", "\x01\x08", "\x7f\x7f", "\u180e\u180e", "\u00ad\u00ad",
]
BLANK_CHARACTERS = " \t\n\r\v\f\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u205f\u3000"
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'M", "'lL", "'D", "'", "''s", "'x"]
EXCLUDED = {"\u017f", "\u212a"}


def has_stable_category(character):
    """True if both Unicode tables agree about the character and it is assigned."""
    category = unicodedata.category(character)
    return category not in ("Cn", "Cs", "Co") and regex.fullmatch(rf"\p{{{category}}}", character) is not None


def random_character(generator):
    """A character of a random range that both tables know."""
    while True:
        low, high = generator.choice(RANGES)
        character = chr(generator.randint(ord(low), ord(high)))
        if character not in EXCLUDED and has_stable_category(character):
            return character


def random_chunk(generator):
    """A run, a mixture or a contraction, as they trip the expressions up."""
    kind = generator.randrange(8)
    if kind == 0:
        return generator.choice(BLANK_CHARACTERS) * generator.randint(1, 4)
    if kind == 1:
        return "".join(generator.choice(" \n\r\t") for _ in range(generator.randint(1, 5)))
    if kind == 2:
        return generator.choice(CONTRACTIONS)
    if kind == 3:
        return " "
    if kind == 4:
        return generator.choice(["Ab", "aB", "ABC", "abc", "1234567", "12", "=>", "...", "//\n", "/", "-x", "HTMLPage"])
    if kind == 5:
        return random_character(generator) * generator.randint(1, 4)
    return "".join(random_character(generator) for _ in range(generator.randint(1, 4)))


def random_text(generator):
    """A short text of random chunks."""
    return "".join(random_chunk(generator) for _ in range(generator.randint(1, 8)))


def split(expressions, text):
    """The words of `text`: each expression splits the pieces of the one before, unmatched text stays as a piece."""
    pieces = [text]
    for expression in expressions:
        compiled = regex.compile(expression)
        refined = []
        for piece in pieces:
            done = 0
            for match in compiled.finditer(piece):
                refined += [piece[done : match.start()], match.group()]
                done = match.end()
            refined.append(piece[done:])
        pieces = [piece for piece in refined if piece]
    return pieces


def main():
    """Writes one file for each id."""
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=20220914)
    parser.add_argument("--count", type=int, default=32, help="texts for each id")
    parser.add_argument("--out", default=os.path.join(here, "..", "data", "pretokenizer"))
    options = parser.parse_args()
    if unicodedata.unidata_version != "14.0.0":
        parser.error(f"this Python has Unicode {unicodedata.unidata_version}, want 14.0.0 (Python 3.11)")
    os.makedirs(options.out, exist_ok=True)
    for pre, expressions in EXPRESSIONS.items():
        generator = random.Random(f"{options.seed} {pre}")
        cases = [split(expressions, random_text(generator)) for _ in range(options.count)]
        lines = ",\n".join(json.dumps(pieces) for pieces in cases)
        with open(os.path.join(options.out, pre + ".json"), "w", encoding="ascii") as file:
            file.write(f'{{"pre": "{pre}", "seed": {options.seed}, "words": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
