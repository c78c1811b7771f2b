#!/usr/bin/python3
"""Every tidy rule fires on a planted violation, and none fires on a clean tree."""

import os
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import build_rules  # noqa: E402
import check_skips  # noqa: E402
import size_rules  # noqa: E402
import source_tree  # noqa: E402
import tidy_test  # noqa: E402

HEADER = "#pragma once\n"

# A tree in which every rule has something to look at and nothing to say.
CLEAN = {
    "CMakeLists.txt": "add_subdirectory(common/base)\nadd_subdirectory(common/graph)\nadd_subdirectory(common/cpu)\n"
                      "add_subdirectory(coordinator/models)\nadd_subdirectory(tests/unit/common/base)\n",
    "common/base/CMakeLists.txt": "add_layer_library(weft_base SOURCES a.cc DEPS absl::status)\n",
    "common/base/a.h": HEADER + "namespace weft {\nint Answer();  // it's \"quoted\" -- fine\n}\n",
    "common/base/a.cc": '#include "common/base/a.h"\n\nnamespace weft {\nint Answer() { return 1\'000; }\n}\n',
    "common/graph/CMakeLists.txt": "add_layer_library(weft_graph SOURCES graph.cc DEPS weft_base)\n",
    "common/graph/graph.cc": '#include "common/base/a.h"\n',
    "common/cpu/CMakeLists.txt": "add_library(weft_cpu_kernels OBJECT kernels/k.cc)\n",
    "common/cpu/kernels/k.cc": "#include <stdint.h>\n",
    "coordinator/models/CMakeLists.txt": "add_layer_library(weft_models SOURCES m.cc DEPS weft_graph)\n",
    "coordinator/models/m.cc": "int m = 1;\n",
    "tests/unit/common/base/CMakeLists.txt": "weft_add_test(base_test SOURCES a_test.cc DEPS weft_base)\n",
    "tests/unit/common/base/a_test.cc": '#include "common/base/a.h"\nTEST(A, Condition_Result) {}\n',
    "README.md": "See [the graph](common/graph/graph.cc) and [a paper](https://arxiv.org/abs/1).\n",
    "deploy/start.sh": "#!/usr/bin/env bash\nset -euo pipefail\n",
}

WORK = "TO" + "DO"  # so that this file does not violate the rule it tests
OUTSIDE = "../" + "shared/golden"

# (rule, what is added or replaced in the clean tree, what the message must say)
PLANTED = [
    ("include", {"common/graph/graph.cc": '#include "common/cpu/kernels/k.h"\n'}, "common/graph may not use"),
    ("include", {"coordinator/models/m.cc": '#include "common/device/device.h"\n'}, "coordinator/models may not use"),
    ("include", {"common/base/a.cc": '#include "coordinator/models/m.h"\n'}, "nothing"),
    ("include", {"common/base/a.cc": '#include "../graph/graph.h"\n'}, "from the root"),
    ("include", {"common/cpu/kernels/k.cc": "#include <vector>\n"}, "C headers"),
    ("include", {"common/cpu/kernels/k.cc": '#include "common/base/a.h"\n'}, "C headers"),
    ("include", {"common/base/a.cc": "#include <gtest/gtest.h>\n"}, "belongs to tests"),
    ("include", {"common/base/a.cc": "#include <nlohmann/json.hpp>\n"}, "belongs to coordinator"),
    ("include", {"common/newfolder/x.h": HEADER}, "no row"),
    ("layer", {"common/base/CMakeLists.txt": "add_layer_library(weft_base SOURCES a.cc DEPS weft_graph)\n"},
     "weft_base may not depend on weft_graph"),
    ("file-length", {"common/base/a.cc": "int a;\n" * 801}, "801 lines"),
    ("function-length", {"common/base/a.cc": "namespace weft {\nint F(int x) {\n" + "  x += 1;\n" * 70 + "}\n}\n"},
     "F has 72 lines"),
    ("function-length", {"common/base/a.cc": "class A {\n  void G() const {\n" + "  if (a) {\n  }\n" * 40 + "  }\n};\n"},
     "G has 82 lines"),
    ("function-length", {"common/base/a.cc": "A::A(int a) : a_(a), b_{a} {\n" + "  b_ += 1;\n" * 71 + "}\n"}, "73 lines"),
    ("banned-call", {"common/base/a.cc": "auto s = std::format(f);\n"}, "absl::StrCat"),
    ("banned-call", {"common/base/a.cc": 'void F() { printf("x"); }\n'}, "libraries do not print"),
    ("banned-call", {"common/base/a.cc": "void F() { std::cout << 1; }\n"}, "libraries do not print"),
    ("banned-call", {"common/base/a.cc": "int x = rand();\n"}, "random.h"),
    ("banned-call", {"common/base/a.cc": "std::mt19937 g;\n"}, "random.h"),
    ("banned-call", {"common/base/a.cc": "auto t = time(nullptr);\n"}, "clock.h"),
    ("banned-call", {"common/base/a.cc": "auto t = std::chrono::steady_clock::now();\n"}, "clock.h"),
    ("banned-call", {"tests/unit/common/base/a_test.cc": "TEST(A, B) { absl::SleepFor(x); }\n"}, "deadline"),
    ("banned-call", {"common/base/a.cc": "void F() { usleep(1); }\n"}, "deadline"),
    ("banned-call", {"common/base/a.cc": "int* x = new int[3];\n"}, "make_unique"),
    ("banned-call", {"common/base/a.cc": "void F(int* x) { delete x; }\n"}, "unique_ptr"),
    ("banned-call", {"common/base/a.cc": 'auto x = getenv("A");\n'}, "environment"),
    ("banned-call", {"common/base/a.cc": "std::mutex m;\n"}, "mutex.h"),
    ("banned-call", {"common/base/a.cc": "void F() { throw 1; }\n"}, "absl::Status"),
    ("banned-call", {"common/base/a.cc": "int x = std::stoi(s);\n"}, "SimpleAtoi"),
    ("banned-call", {"common/base/a.cc": "void F() { std::abort(); }\n"}, "CHECK"),
    ("unfinished", {"common/base/a.cc": f"// {WORK}: later\n"}, WORK),
    ("file-name", {"common/base/string_utils.h": HEADER}, "utils"),
    ("file-name", {"common/base/common.h": HEADER}, "common"),
    ("pragma-once", {"common/base/a.h": "int Answer();\n"}, "#pragma once"),
    ("outside-path", {"README.md": f"see {OUTSIDE}\n"}, "outside"),
    ("outside-path", {"common/base/a.cc": 'const char* p = "/ho' + 'me/me/x";\n'}, "outside"),
    ("outside-path", {"README.md": "http:" + "//mirror.invalid/debian\n"}, "mirror.invalid"),
    ("link", {"README.md": "[a](docs/absent.md)\n"}, "absent.md"),
    ("characters", {"common/base/a.cc": "// \u2192\n"}, "U+2192"),
    ("characters", {"README.md": "a\u200bb\n"}, "U+200B"),
    ("characters", {"README.md": "end"}, "last line"),
    ("characters", {"README.md": "end \n"}, "end of the line"),
    ("not-built", {"common/base/b.cc": "int b;\n"}, "lists it"),
    ("not-built", {"common/other/CMakeLists.txt": "\n"}, "add_subdirectory"),
    ("test", {"tests/unit/common/base/CMakeLists.txt": "add_executable(x a_test.cc)\n"}, "weft_add_test"),
    ("test", {"tests/unit/common/base/a_test.cc": "int x;\n"}, "no TEST"),
    ("test", {"tests/unit/common/absent/a_test.cc": "TEST(A, B) {}\n"}, "mirrors no source folder"),
    ("unused-header", {"common/base/b.h": HEADER}, "nothing includes it"),
    ("script", {"deploy/start.sh": "#!/bin/sh\n"}, "pipefail"),
]

# What looks like a violation and is none.
INNOCENT = [
    {"common/base/a.cc": "// printf, new, delete, std::format, rand( and std::mutex in a comment\n"},
    {"common/base/a.cc": 'const char* s = "throw new printf( \\" std::cout";\n'},
    {"common/base/a.cc": 'const char* s = R"(throw " new)";\n'},
    {"common/base/a.cc": "auto x = absl::WrapUnique(new Thing(1));\nauto y = std::unique_ptr<Thing>(new Thing());\n"},
    {"common/base/a.cc": "struct A { A(const A&) = delete; int a; };\nint b = a.time() + a->time(1);\n"},
    {"common/base/a.cc": "auto s = absl::StrFormat(f); snprintf(a, n, f);\n"},
    {"common/base/clock.cc": "auto t = std::chrono::steady_clock::now();\n",
     "common/base/CMakeLists.txt": "add_layer_library(weft_base SOURCES a.cc clock.cc)\n"},
    {"common/base/a.cc": "namespace weft {\nnamespace {\n" + "int F() {\n  return 1;\n}\n" * 40 + "}\n}\n"},
    {"common/base/a.cc": "constexpr int kTable[] = {\n" + "    1,\n" * 100 + "};\n"},
    {"common/base/a.cc": "constexpr std::array<Row, 2> kTable = Rows({\n" + "    {1, 2},\n" * 100 + "});\n"},
]


def write_tree(root, files):
    for path, text in files.items():
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        if path.endswith(".sh"):
            os.chmod(full, 0o755)


def findings_with(changes, allowed=""):
    """The findings of all rules on the clean tree with some files added or replaced."""
    with tempfile.TemporaryDirectory() as root:
        write_tree(root, {**CLEAN, **changes})
        return tidy_test.check_tree(root, tidy_test.Exceptions("allowed.txt", allowed))[0]


class TidyRules(unittest.TestCase):
    def test_clean_tree_has_no_findings(self):
        self.assertEqual([str(finding) for finding in findings_with({})], [])

    def test_every_rule_finds_its_planted_violations(self):
        fired = set()
        for rule, changes, message in PLANTED:
            with self.subTest(rule=rule, message=message), tempfile.TemporaryDirectory() as root:
                write_tree(root, {**CLEAN, **changes})
                tree = source_tree.SourceTree(root)
                found = [(check.__name__, finding) for check in tidy_test.TREE_RULES for finding in check(tree)]
                hits = [name for name, f in found if f.rule == rule and message in f.message]
                self.assertTrue(hits, f"wanted [{rule}] {message}; found {[str(f) for _, f in found]}")
                fired.update(hits)
        self.assertEqual(fired, {check.__name__ for check in tidy_test.TREE_RULES})

    def test_innocent_code_is_left_alone(self):
        for changes in INNOCENT:
            with self.subTest(changes=changes):
                self.assertEqual([str(finding) for finding in findings_with(changes)], [])

    def test_exception_covers_its_finding_only(self):
        found = findings_with({"common/base/a.cc": "int x = rand();\nint* y = new int;\n"},
                              "banned-call common/base/a.cc rand # a reason\n")
        self.assertEqual([f.rule for f in found], ["banned-call"])
        self.assertIn("make_unique", found[0].message)

    def test_exception_without_use_or_reason_is_an_error(self):
        self.assertEqual([f.rule for f in findings_with({}, "link README.md # a reason\n")], ["allowed"])
        self.assertEqual([f.rule for f in findings_with({}, "link README.md\n")], ["allowed"])

    def test_long_files_are_noted(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "a.cc"), "w", encoding="utf-8") as file:
                file.write("int a;\n" * 401)
            self.assertEqual(len(size_rules.long_files(source_tree.SourceTree(root))), 1)


class Skips(unittest.TestCase):
    LOG = ("[  SKIPPED ] Avx512.Dot (0 ms)\n[  SKIPPED ] 2 tests, listed below:\n"
           "[  SKIPPED ] Avx512.Dot\n[  SKIPPED ] All/Vocabulary.Lines/0\n")

    def test_final_list_is_counted_once(self):
        self.assertEqual(check_skips.skipped_cases(self.LOG), ["All/Vocabulary.Lines/0", "Avx512.Dot"])

    def test_unlisted_skip_fails_only_with_golden_results(self):
        with tempfile.TemporaryDirectory() as root:
            log, allowed = os.path.join(root, "log"), os.path.join(root, "allowed")
            for path, text in ((log, self.LOG), (allowed, "*Avx512* # may be absent\n")):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            for golden, expected in (("", 0), ("/somewhere", 1)):
                environment = {**os.environ, "WEFT_GOLDEN_DIR": golden}
                command = [sys.executable, "-B", check_skips.__file__, log, allowed]
                result = subprocess.run(command, env=environment, capture_output=True, check=False)
                self.assertEqual(result.returncode, expected)


class KernelObjects(unittest.TestCase):
    def findings(self, source, name="k.cc"):
        with tempfile.TemporaryDirectory() as root:
            path = os.path.join(root, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(source)
            compiler = os.environ.get("CXX", "c++")
            subprocess.run([compiler, "-O0", "-c", path, "-o", path + ".o"], check=True)
            return list(build_rules.check_kernel_objects([path + ".o"]))

    def test_plain_functions_pass(self):
        self.assertEqual(self.findings("static int G(int x) { return x; }\nint F(int x) { return G(x); }\n"), [])

    def test_inline_function_is_weak(self):
        found = self.findings("inline int G(int x) { return x; }\nint F(int x) { return G(x); }\n")
        self.assertTrue(any("weak" in f.message for f in found))

    def test_instruction_set_shows_only_its_table(self):
        source = "namespace scalar { int Table() { return 1; } }\nint Other() { return 2; }\n"
        self.assertEqual(self.findings(source), [])
        found = self.findings(source, "kernels_scalar.cc")
        self.assertEqual(len(found), 1)
        self.assertIn("Other()", found[0].message)

    def test_library_call_is_found(self):
        found = self.findings("int* F() { return new int(1); }\n")
        self.assertTrue(any("C++ library" in f.message for f in found))


if __name__ == "__main__":
    unittest.main()
