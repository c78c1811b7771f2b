#!/usr/bin/python3
"""A library that calls another without declaring it fails to link: the promise of common/cmake/Layering.cmake.

usage: layering_test.py SOURCE_ROOT CMAKE CXX_COMPILER
"""

import os
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(layering LANGUAGES CXX)
include("{root}/common/cmake/Layering.cmake")
add_layer_library(lower SOURCES lower.cc)
add_layer_library(upper SOURCES upper.cc {deps})
"""
SOURCES = {
    "lower.cc": "int Lower() { return 1; }\n",
    "upper.cc": "int Lower();\nint Upper() { return Lower(); }\n",
}


def build(root, cmake, compiler, deps):
    """Exit status and output of building a project whose upper library calls the lower one."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**SOURCES, "CMakeLists.txt": PROJECT.format(root=root, deps=deps)}.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        output = os.path.join(folder, "build")
        configure = [cmake, "-G", "Ninja", "-S", folder, "-B", output, f"-DCMAKE_CXX_COMPILER={compiler}"]
        subprocess.run(configure, check=True, capture_output=True)
        result = subprocess.run([cmake, "--build", output], capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr


def main(root, cmake, compiler):
    status, output = build(root, cmake, compiler, "DEPS lower")
    if status != 0:
        sys.exit(f"a declared dependency does not build:\n{output}")
    status, output = build(root, cmake, compiler, "")
    if status == 0:
        sys.exit("an undeclared dependency links; the layering check is broken")
    if "undefined reference to `Lower()'" not in output or "upper_layering" not in output:
        sys.exit(f"an undeclared dependency fails for another reason:\n{output}")
    print("an undeclared dependency fails the link, a declared one does not")


if __name__ == "__main__":
    main(*sys.argv[1:])
