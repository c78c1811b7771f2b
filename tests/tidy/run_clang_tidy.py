#!/usr/bin/env python3
"""Runs clang-tidy on sources, and remembers those that passed.

usage: run_clang_tidy.py BUILD < FILES

BUILD is a built folder with compile_commands.json; FILES are sources, a line each, relative to the
repository; those that BUILD does not compile are left out. A source passes once for its own text,
that of the headers it includes, the command, the configuration and the tool; then a stamp in
$WEFT_TIDY_CACHE (default ~/.cache/weft-tidy) stands for it. Exit code 1 if a source has a finding.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The pinned one of tests/requirements-tidy.txt where it is installed: it leaves system headers alone, which more
# than halves the time, and has more checks.
PINNED = ROOT / ".venv/bin/clang-tidy"
TOOL = str(PINNED) if PINNED.exists() else "clang-tidy-16"


def cache_folder():
    default = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "weft-tidy"
    return pathlib.Path(os.environ.get("WEFT_TIDY_CACHE", default))


def compiled(build):
    """By source, relative to the root: its object and command."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if source.is_relative_to(ROOT):
            arguments = shlex.split(entry["command"])
            found[str(source.relative_to(ROOT))] = (arguments[arguments.index("-o") + 1], entry["command"])
    return found


def dependencies(build):
    """By object: the files that it was compiled from, as Ninja wrote them down."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True, check=True)
    found, current = {}, None
    for line in text.stdout.splitlines():
        if line.startswith("    "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = found.setdefault(line.split(":")[0], [])
    return found


class Keys:
    """What a source's result depends on, as one hash."""

    def __init__(self, build):
        self.build = build
        version = subprocess.run([TOOL, "--version"], capture_output=True, text=True, check=True)
        self.version = version.stdout.encode()
        self.dependencies = dependencies(build)
        self.digests = {}

    def digest(self, path):
        if path not in self.digests:
            full = (self.build / path).resolve()
            if full.is_relative_to(ROOT):
                self.digests[path] = hashlib.sha256(full.read_bytes()).digest()
            else:
                self.digests[path] = f"{full} {full.stat().st_size}".encode()
        return self.digests[path]

    def configuration(self, source):
        """The texts of the configurations that hold for a source: its folder's and those above."""
        folders = (ROOT / source).relative_to(ROOT).parents
        found = (ROOT / folder / ".clang-tidy" for folder in folders)
        return b"".join(path.read_bytes() for path in found if path.exists())

    def of(self, source, target, command):
        """None where the object was not built, so that its headers are unknown."""
        files = self.dependencies.get(target)
        if not files:
            return None
        key = hashlib.sha256(self.version + self.configuration(source) + command.replace(str(ROOT), "").encode())
        for path in sorted(files):
            key.update(self.digest(path))
        return key.hexdigest()


def check(build, source):
    command = [TOOL, "-p", str(build), "--quiet", "--extra-arg=-Wno-unknown-warning-option", source]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1]).resolve()
    known = compiled(build)
    sources = sorted({line.strip() for line in sys.stdin} & known.keys())
    keys = Keys(build)
    stamps = cache_folder()
    stamps.mkdir(parents=True, exist_ok=True)
    wanted = {}
    for source in sources:
        key = keys.of(source, *known[source])
        if key is None or not (stamps / key).exists():
            wanted[source] = key
    print(f"clang-tidy: {len(sources)} files, {len(sources) - len(wanted)} of them passed before as they are", flush=True)
    failed = 0
    jobs = int(os.environ.get("WEFT_JOBS", os.cpu_count()))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(check, build, source): source for source in wanted}
        for number, done in enumerate(concurrent.futures.as_completed(running), 1):
            source, result = running[done], done.result()
            if result.returncode != 0:
                failed += 1
                print(result.stdout + result.stderr, flush=True)
            elif wanted[source]:
                (stamps / wanted[source]).touch()
            if number % 25 == 0:
                print(f"clang-tidy: {number} of {len(wanted)}", flush=True)
    if failed:
        sys.exit(f"clang-tidy: {failed} of {len(sources)} files have findings")


if __name__ == "__main__":
    main()
