#!/usr/bin/python3
"""Every header compiles alone: it includes what it uses.

usage: header_test.py SOURCE_ROOT CXX_COMPILER BUILD

BUILD is a built folder, with the headers that are generated.
"""

import concurrent.futures
import os
import subprocess
import sys

from source_tree import SourceTree

FOLDERS = ("common/", "coordinator/", "worker/", "rpc_backend/", "tests/support/", "tests/conformance/")

# Headers of one instruction set: part of the file name -> flags. None: not for this processor.
INSTRUCTION_SETS = {
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi2"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni", "-mavx2", "-mfma", "-mf16c"],
    "neon": None,
}


def compile_alone(root, compiler, build, path):
    """The compiler's complaint about the header, empty if there is none."""
    flags = []
    for name, extra in INSTRUCTION_SETS.items():
        if name in os.path.basename(path):
            if extra is None:
                return ""
            flags = extra
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", *flags, "-I", root, "-isystem", build, "-x", "c++", "-"]
    result = subprocess.run(command, input=f'#include "{path}"\n', capture_output=True, text=True, check=False)
    return result.stderr if result.returncode else ""


def main(root, compiler, build):
    headers = [file.path for file in SourceTree(root).cpp_files()
               if file.path.endswith(".h") and file.path.startswith(FOLDERS)]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, complaint in zip(headers, pool.map(lambda path: compile_alone(root, compiler, build, path), headers)):
            if complaint:
                failed += 1
                print(f"{path} does not compile alone:\n{complaint}")
    print(f"headers: {len(headers)}, not self-contained: {failed}")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
