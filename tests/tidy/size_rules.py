"""How long a file and a function may be."""

import re

from source_tree import Finding

FILE_LINES_WARNING = 400
FILE_LINES_LIMIT = 800
FUNCTION_LINES_LIMIT = 70

_SCOPE = re.compile(r"^\s*(?:template\s*<.*>\s*)?(?:inline\s+)?(?:namespace|class|struct|union|extern)\b", re.DOTALL)


def _line_count(file):
    return file.text.count("\n") + (not file.text.endswith("\n"))


def check_file_length(tree):
    for file in tree.cpp_files() + [f for f in tree.text_files() if f.path.endswith((".py", ".sh", ".cmake"))]:
        count = _line_count(file)
        if count > FILE_LINES_LIMIT:
            yield Finding("file-length", file.path, 0, f"{count} lines; the limit is {FILE_LINES_LIMIT}: split it")


def long_files(tree):
    """Files that are allowed but on the way to be too long, as printable lines."""
    return [f"{file.path}: {_line_count(file)} lines, aim for {FILE_LINES_WARNING}"
            for file in tree.cpp_files() if FILE_LINES_WARNING < _line_count(file) <= FILE_LINES_LIMIT]


def _without_directives(code):
    """Blanks preprocessor lines with their continuations: their braces need not match."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda match: re.sub(r"[^\n]", " ", match.group()), code,
                  flags=re.MULTILINE | re.DOTALL)


def _kind(header):
    """What a { after this text opens, where declarations stand: a scope, a function, or something else."""
    header = header.strip()
    if _SCOPE.match(header) and not re.search(r"\)\s*(?:const|noexcept|override)?\s*$", header):
        return "scope"
    if "(" in header and not re.match(r"(?:enum|using|typedef)\b", header):
        before = header.split("(", 1)[0]
        if "=" not in before or "operator" in before:
            return "function"
    return "other"


def functions(code):
    """(line of the opening brace, its header text, line count) of every function body. Lambdas belong to theirs."""
    code = _without_directives(code)
    stack = []  # (kind, position of the brace, text before it)
    start = 0
    for match in re.finditer(r"[{};]", code):
        mark, position = match.group(), match.start()
        kind = None
        if mark == "{":
            header = code[start:position]
            if any(outer[0] != "scope" for outer in stack):
                kind = "inner"
            elif re.search(r"[\w>]$", header):
                kind = "initializer"  # member_{value}: the declaration goes on after it
            else:
                kind = _kind(header)
            stack.append((kind, position, header))
        elif mark == "}" and stack:
            kind, opened, header = stack.pop()
            if kind == "function":
                yield code.count("\n", 0, opened) + 1, header.strip(), code.count("\n", opened, position) + 1
        if kind not in ("inner", "initializer"):
            start = position + 1


def check_function_length(tree):
    for file in tree.cpp_files():
        for line, header, count in functions(file.code):
            if count > FUNCTION_LINES_LIMIT:
                name = " ".join(header.split("(")[0].split()[-1:])
                yield Finding("function-length", file.path, line,
                              f"{name} has {count} lines; the limit is {FUNCTION_LINES_LIMIT}: split it")
