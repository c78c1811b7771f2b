"""What the built programs say of themselves: their flags and their metrics. And skips that the nightly run forbids."""
import functools
import os
import pathlib
import re
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", pathlib.Path(__file__).parents[2])).resolve()
DEPLOY = SOURCE / "deploy"
BIN = pathlib.Path(os.environ.get("WEFT_BIN_DIR", SOURCE / "build/release/bin")).resolve()
STRICT = "--nightly" in sys.argv
VENV = SOURCE / ".venv"

# Commands whose flags are those of a command inside them.
COMMANDS = {"certs": ["certs", "worker"]}


def missing(case, what, strict=STRICT):
    """Skips the test that calls it since `what` is not on this machine; in the nightly run that is a failure, except for what
    Debian and PyPI do not give every machine. `case` is how tests/tidy/check_skips.py calls it."""
    if strict:
        raise AssertionError(f"{what}: needed in the nightly run")
    print(f"[  SKIPPED ] {case}", file=sys.stderr)
    raise unittest.SkipTest(what)


def run(*command, **options):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, timeout=120, **options)


def says(program, *arguments):
    done = run(BIN / program, *arguments)
    assert done.returncode == 0, f"{program} {arguments}: {done.stderr}"
    return done.stdout


@functools.cache
def flags(program, command=None):
    """{flag: whether it takes a value} of `weft COMMAND` or weft-worker, by its help."""
    text = says(program, *(COMMANDS.get(command, [command]) if command else []), "--help")
    found = {}
    for line in text.splitlines():
        head = re.match(r"  (-[-\w,]+)(?:[ =](\S+))?", line)
        if head:
            takes = bool(head.group(2)) and bool(re.match(r"(TEXT|INT|FLOAT|UINT|NUMBER|ENUM)", head.group(2)))
            found.update({name: takes for name in head.group(1).split(",")})
    assert "--help" in found, text
    return found


@functools.cache
def commands():
    """Subcommands of weft."""
    listed = says("weft", "--help").split("Subcommands:")[1].split("Example:")[0]
    return set(re.findall(r"(?m)^  (\w+) ", listed))


@functools.cache
def metrics():
    """{name: type} of all metrics of both programs."""
    table = says("weft", "serve", "--print-metrics") + says("weft-worker", "--print-metrics")
    rows = [line.split(" ", 2) for line in table.splitlines()]
    assert all(len(row) == 3 and row[1] in ("counter", "gauge", "histogram") for row in rows), rows
    names = [row[0] for row in rows]
    assert len(names) == len(set(names)), "a metric is listed twice"
    return {row[0]: row[1] for row in rows}


def check_arguments(words, positionals=False):
    """Reasons why a command line of weft or weft-worker (its program first) would not be taken: unknown flags, values that are
    missing, words that are no flags unless they may be."""
    program, rest = pathlib.PurePath(words[0]).name, list(words[1:])
    command = None
    if program == "weft":
        if not rest or rest[0] not in commands():
            return [f"weft has no command {rest[:1]}"]
        command = rest.pop(0)
    known, wrong = flags(program, command), []
    takes_value = {"-ngl": True} | known
    while rest:
        name, equals, _ = rest.pop(0).partition("=")
        if not name.startswith("-"):
            if positionals:
                continue
            wrong.append(f"{program} {command or ''}: '{name}' is no flag")
        elif name not in known:
            wrong.append(f"{program} {command or ''}: there is no flag {name}")
        elif takes_value.get(name) and not equals:
            if not rest or rest[0].startswith("--"):
                wrong.append(f"{program}: {name} wants a value")
            else:
                rest.pop(0)
    return wrong


def values(words, flag):
    """What a flag is given in a command line, each time."""
    return [words[i + 1] for i, word in enumerate(words[:-1]) if word == flag] + [
        word.partition("=")[2] for word in words if word.startswith(flag + "=")]


def main():
    unittest.main(argv=[argument for argument in sys.argv if argument != "--nightly"], verbosity=2)
