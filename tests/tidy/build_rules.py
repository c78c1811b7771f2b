"""Every source is compiled, every header used, every folder reached, every test registered."""

import os
import re
import subprocess

from source_tree import Finding

_SOURCE_SUFFIXES = (".cc", ".cu", ".comp")


def _without_comments(text):
    return re.sub(r"#[^\n]*", "", text)


def _list_file(tree, path):
    """The CMakeLists.txt of the nearest folder above a file that has one."""
    folder = os.path.dirname(path)
    while True:
        candidate = os.path.join(folder, "CMakeLists.txt") if folder else "CMakeLists.txt"
        if candidate in tree.files:
            return tree.files[candidate]
        if not folder:
            return None
        folder = os.path.dirname(folder)


def check_sources_listed(tree):
    for path in tree.paths:
        if not path.endswith(_SOURCE_SUFFIXES):
            continue
        lists = _list_file(tree, path)
        words = set(re.split(r"[\s()\";]+", _without_comments(lists.text))) if lists else set()
        if lists is None or os.path.relpath(path, lists.folder or ".") not in words:
            yield Finding("not-built", path, 0, f"no target in {lists.path if lists else 'CMakeLists.txt'} lists it")


def check_folders_reached(tree):
    """Every CMakeLists.txt is reached from the root by add_subdirectory."""
    reached, waiting = set(), ["CMakeLists.txt"]
    while waiting:
        path = waiting.pop()
        if path in reached or path not in tree.files:
            continue
        reached.add(path)
        file = tree.files[path]
        for name in re.findall(r"add_subdirectory\(\s*\"?([^\s)\"]+)", _without_comments(file.text)):
            waiting.append(os.path.normpath(os.path.join(file.folder, name, "CMakeLists.txt")))
    for file in tree.text_files():
        if file.name == "CMakeLists.txt" and file.path not in reached and not file.path.startswith("tests/tidy/"):
            yield Finding("not-built", file.path, 0, "no add_subdirectory leads to this folder")


def check_tests_registered(tree):
    """A test source belongs to a weft_add_test, mirrors a source folder, and has a test in it."""
    for file in tree.cpp_files():
        if not file.path.endswith("_test.cc") or file.path.startswith("tests/support/"):
            continue
        lists = _list_file(tree, file.path)
        registered = lists and any(
            os.path.relpath(file.path, lists.folder or ".") in call.split()
            for call in re.findall(r"weft_add_test\(([^)]*)\)", _without_comments(lists.text)))
        if not registered:
            yield Finding("test", file.path, 0, "no weft_add_test lists it")
        if not re.search(r"^\s*(?:TYPED_)?TEST(?:_[FP])?\s*\(", file.code, re.MULTILINE):
            yield Finding("test", file.path, 0, "has no TEST in it")
        if file.path.startswith("tests/unit/") and not tree.is_folder(file.folder[len("tests/unit/"):]):
            yield Finding("test", file.path, 0, f"mirrors no source folder: {file.folder[len('tests/unit/'):]}")


def check_headers_used(tree):
    used = set()
    for file in tree.cpp_files():
        for _, header, _ in file.includes():
            used.add(header)
            used.add(os.path.normpath(os.path.join(file.folder, header)))
    for file in tree.cpp_files():
        if file.path.endswith((".h", ".inc", ".cuh")) and file.path not in used:
            yield Finding("unused-header", file.path, 0, "nothing includes it; delete it or use it")


def check_scripts(tree):
    for path in tree.paths:
        if not (path.endswith(".sh") or path == ".ci/run"):
            continue
        if not os.access(os.path.join(tree.root, path), os.X_OK):
            yield Finding("script", path, 0, "is not executable")
        if not re.search(r"^set -euo pipefail$", tree.files[path].text, re.MULTILINE):
            yield Finding("script", path, 0, "a script says: set -euo pipefail")


# Kinds of `nm` that a linker may take from one object for the whole program: weak, vague and unique definitions.
_SHARED_KINDS = set("WwVvui")


def check_kernel_objects(objects):
    """Objects compiled for one instruction set define nothing weak, call nothing of the C++ library, and those that
    are compiled with its flags (kernels_NAME) define only their Table() for others."""
    for path in objects:
        listing = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
        for line in listing.splitlines():
            words = line.split(None, 2) if line[:1].strip() else ["", *line.split(None, 1)]
            if len(words) < 3:
                continue
            kind, symbol = words[1], words[2]
            if kind in _SHARED_KINDS:
                yield Finding("weak-symbol", path, 0, f"{symbol} is weak ({kind}); the linker may use it everywhere")
            elif os.path.basename(path).startswith("kernels_") and kind.isupper() and kind != "U" \
                    and not (kind == "T" and symbol.endswith("::Table()")):
                yield Finding("weak-symbol", path, 0, f"{symbol} ({kind}) is seen by others; only Table() may be")
            elif kind == "U" and re.match(r"(?:std|absl|__cxxabiv1)::|operator (?:new|delete)|__cxa_", symbol):
                yield Finding("weak-symbol", path, 0, f"{symbol}: kernels call nothing of the C++ library")
