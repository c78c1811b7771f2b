"""Rules about the text of any file: names, references outside the repository, characters, unfinished work."""

import os
import re
import unicodedata

from source_tree import Finding

_UNFINISHED = re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X]|HAC[K])\b")
_BANNED_NAMES = re.compile(r"(?:^|[_./-])(?:utils?|helpers?|misc|manager)(?:[_./-]|$)|(?:^|/)common\.(?:h|cc)$")

# Absolute paths of somebody's machine, and the folder beside the checkout.
_OUTSIDE = re.compile(r"(?:^|[^\w./-])(?:\.\./)+shared\b|(?:^|[\s\"'=(:])/(?:work|home|Users|mnt|root)/")
_URL = re.compile(r"https?://([A-Za-z0-9.-]+)")

# Hosts that a text may point at: publications, standards, licences, placeholders and this machine.
_HOSTS = re.compile(
    r"^(?:(?:[\w-]+\.)*(?:arxiv\.org|unicode\.org|ietf\.org|rfc-editor\.org|w3\.org|iso\.org|json-schema\.org|"
    r"kubernetes\.io|opencontainers\.org|github\.com|huggingface\.co|example\.(?:com|org|net))|localhost|127\.0\.0\.1)$")


def check_unfinished(tree):
    for file in tree.text_files():
        for number, line in enumerate(file.lines, 1):
            match = _UNFINISHED.search(line)
            if match:
                yield Finding("unfinished", file.path, number, f"{match.group()}: finish it, or file an issue and say so")


def check_file_names(tree):
    for path in tree.paths:
        match = _BANNED_NAMES.search(path)
        if match:
            yield Finding("file-name", path, 0, f"'{match.group().strip('_./-')}' says nothing; name the one thing in it")
        if re.search(r"[^\x21-\x7e]", path):
            yield Finding("file-name", path, 0, "file names are plain ASCII without spaces")


def check_pragma_once(tree):
    for file in tree.cpp_files():
        if file.path.endswith(".h") and not re.search(r"^#pragma once$", file.code, re.MULTILINE):
            yield Finding("pragma-once", file.path, 0, "a header has #pragma once")


def check_outside_paths(tree):
    for file in tree.text_files():
        for number, line in enumerate(file.lines, 1):
            match = _OUTSIDE.search(line)
            if match:
                yield Finding("outside-path", file.path, number,
                              f"'{match.group().strip()}' lies outside the repository; take it from the environment")
            for host in _URL.findall(line):
                if not _HOSTS.match(host):
                    yield Finding("outside-path", file.path, number,
                                  f"host {host}: name no host; read it from the machine's configuration")


def check_markdown_links(tree):
    """A relative link points at something in the repository."""
    for file in tree.text_files():
        if not file.path.endswith(".md"):
            continue
        for number, line in enumerate(file.lines, 1):
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", line):
                if "://" in target or target.startswith("mailto:"):
                    continue
                full = os.path.normpath(os.path.join(file.folder, target))
                if full.startswith("..") or not os.path.exists(os.path.join(tree.root, full)):
                    yield Finding("link", file.path, number, f"{target} does not exist in the repository")


def _is_invisible(character):
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp") or (
        unicodedata.category(character) == "Zs" and character != " ")


def check_characters(tree):
    for file in tree.text_files():
        ascii_only = (file.is_cpp or file.path.endswith((".py", ".sh", ".cmake")) or file.name == "CMakeLists.txt") \
            and not file.path.startswith("tests/")
        if file.text and not file.text.endswith("\n"):
            yield Finding("characters", file.path, 0, "the last line has no end")
        for number, line in enumerate(file.lines, 1):
            if line.isascii() and line.isprintable():
                if line.endswith(" "):
                    yield Finding("characters", file.path, number, "spaces at the end of the line")
                continue
            for character in line:
                if _is_invisible(character):
                    yield Finding("characters", file.path, number, f"invisible character U+{ord(character):04X}")
                elif ascii_only and ord(character) > 126:
                    yield Finding("characters", file.path, number,
                                  f"U+{ord(character):04X} in a source file; write it as an escape")
                elif file.is_cpp and character == "\t":
                    yield Finding("characters", file.path, number, "tab in a C++ file")
                else:
                    continue
                break
