"""The files of the repository as the tidy rules see them: text, and C++ code without comments and literals."""

import os
import re

SKIPPED_FOLDERS = {".git", ".venv", ".cache", "__pycache__", "build"}
CPP_SUFFIXES = (".cc", ".h", ".inc", ".cu", ".cuh")
DATA = re.compile(r"^(?:tests/(?:.*/)?(?:data|corpus)/|models/.*\.(?:txt|json)$)")  # contents of tests, not texts of ours
TEXT_SUFFIXES = CPP_SUFFIXES + (".py", ".sh", ".cmake", ".txt", ".md", ".json", ".yaml", ".proto", ".comp")

# In order: comments, raw strings, strings, characters. A quote between digits separates them and is not one.
_LITERAL = re.compile(
    r"//(?:\\\n|[^\n])*|/\*.*?\*/"
    r'|R"(?P<raw>[^()\\\s]{0,16})\(.*?\)(?P=raw)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def strip_literals(text):
    """Replaces comments, strings and characters by spaces; every line keeps its number and length."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return _LITERAL.sub(blank, text)


class SourceFile:
    """One text file. `path` is relative to the root with forward slashes."""

    def __init__(self, path, text):
        self.path = path
        self.text = text
        self.folder = os.path.dirname(path)
        self.name = os.path.basename(path)
        self.is_cpp = path.endswith(CPP_SUFFIXES)
        self._code = None

    @property
    def lines(self):
        return self.text.split("\n")

    @property
    def code(self):
        if self._code is None:
            self._code = strip_literals(self.text)
        return self._code

    def includes(self):
        """(line number, header, whether it stood in quotes) of every #include."""
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
            if match:
                yield number, match.group(1) or match.group(2), match.group(1) is not None


class SourceTree:
    """All files below a root, text files read."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        self.paths = []
        for folder, names, files in os.walk(root):
            at_root = os.path.samefile(folder, root)
            names[:] = sorted(
                name for name in names
                if name not in SKIPPED_FOLDERS and not (at_root and name.startswith(".") and name != ".ci")
            )
            for name in sorted(files):
                full = os.path.join(folder, name)
                path = os.path.relpath(full, root).replace(os.sep, "/")
                self.paths.append(path)
                if DATA.match(path):
                    continue
                if name.endswith(TEXT_SUFFIXES) or path == ".ci/run":
                    with open(full, encoding="utf-8", errors="surrogateescape", newline="") as stream:
                        self.files[path] = SourceFile(path, stream.read())

    def cpp_files(self):
        return [file for file in self.files.values() if file.is_cpp]

    def text_files(self):
        return list(self.files.values())

    def is_folder(self, path):
        return os.path.isdir(os.path.join(self.root, path))


class Finding:
    """One violation: which rule, where, and what to do about it."""

    def __init__(self, rule, path, line, message):
        self.rule = rule
        self.path = path
        self.line = line
        self.message = message

    def __str__(self):
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: [{self.rule}] {self.message}"
