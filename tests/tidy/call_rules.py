"""Calls that the tree does without, each with what to use instead and where it is at home."""

import re

from source_tree import Finding

_COMMANDS = ("coordinator/cli/", "coordinator/main.cc", "worker/main.cc")
_PRINTING = _COMMANDS + ("common/base/log.cc", "common/base/check.cc", "tests/")

# (pattern in code without comments and literals, path prefixes where it may stand, advice)
BANNED = [
    (r"\bstd::(?:v?format|print(?:ln)?)\b", (), "g++-12 has no std::format; use absl::StrCat or absl::StrFormat"),
    (r"\bstd::(?:views\b|ranges::views\b)", (), "std::ranges views do not exist in every compiler here; write the loop"),
    (r"\b(?:std::)?(?:v?f?printf|puts|fputs|putchar|perror)\s*\(|\bstd::(?:cout|cerr|clog)\b", _PRINTING,
     "libraries do not print; return a Status or use common/base/log.h"),
    (r"(?<![\w.>:])(?:std::)?s?rand\s*\(|\bstd::(?:random_device|mt19937|minstd_rand|default_random_engine)",
     ("common/base/random.",), "use the seeded generator of common/base/random.h"),
    (r"(?<![\w.>:])(?:std::)?time\s*\(|\b(?:gettimeofday|clock_gettime)\s*\(|\b\w*_clock::now\b|\babsl::Now\b",
     ("common/base/clock.", "common/base/unix_time.", "tests/bench/"), "use the Clock of common/base/clock.h"),
    (r"(?<![\w.>])(?:u|nano)?sleep\s*\(|\bsleep_(?:for|until)\s*\(|\babsl::SleepFor\b", (),
     "wait on a condition with a deadline"),
    (r"(?<!operator )\bnew\b(?!\s*\()", (), "use std::make_unique, or absl::WrapUnique(new T(...)) where the constructor is private"),
    (r"(?<!=)(?<!= )(?<!operator )\bdelete\b", (), "let a unique_ptr own it"),
    (r"\bgetenv\s*\(", _COMMANDS + ("tests/",), "only main and commands read the environment; pass the value down"),
    (r"\babsl::Mutex\b|\bstd::(?:shared_|recursive_|timed_)?mutex\b|\bstd::condition_variable\b",
     ("common/base/mutex.h",), "use the annotated wrapper of common/base/mutex.h"),
    (r"\bthrow\b|\bcatch\s*\(", ("tests/",), "errors are absl::Status; use functions that do not throw"),
    (r"\bstd::sto(?:i|l|ll|ul|ull|f|d|ld)\b", (), "it throws; use absl::SimpleAtoi and its kin"),
    (r"(?<![\w.>])(?:std::)?(?:exit|_exit|abort|quick_exit)\s*\(",
     _COMMANDS + ("common/base/check.", "tests/"), "return a Status, or CHECK an invariant of ours"),
    (r"\busing\s+namespace\s+std\b", (), "name what you use"),
]

_OWNED_NEW = re.compile(r"(?:\bWrapUnique|\b(?:std::)?(?:unique|shared)_ptr<[^;{}]*>(?:\s*\w+)?)\s*\(\s*$")


def _is_owned(code, position):
    """Whether this `new` stands directly inside an owner's constructor."""
    return _OWNED_NEW.search(code[max(0, position - 200):position]) is not None


def check_banned_calls(tree):
    for file in tree.cpp_files():
        for pattern, homes, advice in BANNED:
            if file.path.startswith(homes or ("\0",)):
                continue
            for match in re.finditer(pattern, file.code):
                if match.group() == "new" and _is_owned(file.code, match.start()):
                    continue
                line = file.code.count("\n", 0, match.start()) + 1
                if re.match(r"\s*#", file.lines[line - 1]):
                    continue
                yield Finding("banned-call", file.path, line, f"{match.group().strip('( ')}: {advice}")
