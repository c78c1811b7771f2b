#!/usr/bin/python3
"""Counts the GoogleTest cases that skipped themselves, from CTest's log.

usage: check_skips.py LOG ALLOWED

Prints every skipped case. With WEFT_GOLDEN_DIR set (the data that tests skip without is there), a case that no pattern
in ALLOWED names makes the exit status 1. ALLOWED has lines `PATTERN # REASON`.
"""

import fnmatch
import os
import re
import sys


def read_patterns(path):
    patterns = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            pattern, _, reason = line.partition("#")
            if not pattern.strip():
                continue
            if not reason.strip():
                sys.exit(f"{path}:{number}: a pattern needs a reason after #")
            patterns.append(pattern.strip())
    return patterns


def skipped_cases(log):
    """Names in the final list of each test program: lines `[  SKIPPED ] Suite.Name` without a time."""
    return sorted(set(re.findall(r"^\[  SKIPPED \] (\S+\.\S+)$", log, re.MULTILINE)))


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    with open(arguments[0], encoding="utf-8", errors="replace") as log:
        cases = skipped_cases(log.read())
    patterns = read_patterns(arguments[1])
    unexpected = [case for case in cases if not any(fnmatch.fnmatch(case, pattern) for pattern in patterns)]
    for case in cases:
        print("skipped:", case)
    print(f"skipped cases: {len(cases)}, of them not in {os.path.basename(arguments[1])}: {len(unexpected)}")
    if unexpected and os.environ.get("WEFT_GOLDEN_DIR"):
        print("error: with the golden results at hand these must run:", ", ".join(unexpected))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
