#!/usr/bin/python3
"""Tidy is a test: layering, sizes, banned calls, names, characters, dead files, weak symbols.

usage: tidy_test.py [--root FOLDER] [--allowed FILE] [--objects OBJECT...]

Without --objects every rule about the source tree runs; with it, only the one about compiled kernels. Exceptions stand
in allowed.txt with their reasons: `RULE PATH [WORD] # REASON`, where PATH is a shell pattern and WORD, if given, occurs in the
message. An exception that matches nothing is an error, so the list can only shrink.
"""

import argparse
import fnmatch
import os
import sys

import build_rules
import call_rules
import layer_rules
import size_rules
import text_rules
from source_tree import Finding, SourceTree

TREE_RULES = [
    layer_rules.check_includes,
    layer_rules.check_library_deps,
    size_rules.check_file_length,
    size_rules.check_function_length,
    call_rules.check_banned_calls,
    text_rules.check_unfinished,
    text_rules.check_file_names,
    text_rules.check_pragma_once,
    text_rules.check_outside_paths,
    text_rules.check_markdown_links,
    text_rules.check_characters,
    build_rules.check_sources_listed,
    build_rules.check_folders_reached,
    build_rules.check_tests_registered,
    build_rules.check_headers_used,
    build_rules.check_scripts,
]


class Exceptions:
    """The lines of allowed.txt, and which of them were needed."""

    def __init__(self, path, text):
        self.path = path
        self.rows = []
        self.broken = []
        for number, line in enumerate(text.split("\n"), 1):
            words, _, reason = line.partition("#")
            words = words.split()
            if not words:
                continue
            if len(words) not in (2, 3) or not reason.strip():
                self.broken.append(Finding("allowed", path, number, "write: RULE PATH [WORD] # REASON"))
                continue
            self.rows.append([number, words[0], words[1], words[2] if len(words) == 3 else "", False])

    def allows(self, finding):
        for row in self.rows:
            _, rule, pattern, word, _ = row
            if finding.rule == rule and fnmatch.fnmatch(finding.path, pattern) and word in finding.message:
                row[4] = True
                return True
        return False

    def problems(self):
        unused = [Finding("allowed", self.path, number, f"'{rule} {pattern}' matches nothing any more; delete the line")
                  for number, rule, pattern, _, used in self.rows if not used]
        return self.broken + unused


def check_tree(root, exceptions):
    """Every finding that no exception covers, and the exceptions' own problems."""
    tree = SourceTree(root)
    findings = [finding for rule in TREE_RULES for finding in rule(tree) if not exceptions.allows(finding)]
    return findings + exceptions.problems(), size_rules.long_files(tree)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=os.path.dirname(os.path.dirname(here)))
    parser.add_argument("--allowed", default=os.path.join(here, "allowed.txt"))
    parser.add_argument("--objects", nargs="*")
    options = parser.parse_args()

    if options.objects is not None:
        findings, notes = list(build_rules.check_kernel_objects(options.objects)), []
        print(f"objects checked: {len(options.objects)}")
    else:
        with open(options.allowed, encoding="utf-8") as lines:
            exceptions = Exceptions(os.path.relpath(options.allowed, options.root), lines.read())
        findings, notes = check_tree(options.root, exceptions)
    for note in notes:
        print("note:", note)
    for finding in findings:
        print(finding)
    print(f"violations: {len(findings)}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
