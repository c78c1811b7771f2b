"""Random templates for jinja_test.py: expressions whose value, or failure, Python knows. Left out is what
docs/chat-templates.md lists as different: integers beyond 64 bits, complex numbers, addresses in repr(), Markup."""

CONTEXT = {
    "a": 3, "b": -7, "c": 2.5, "d": 0, "s": "Hello Wörld", "t": "  x,y ", "e": "", "yes": True, "no": False, "nil": None,
    "xs": [1, 2, 3, 5], "ys": ["b", "a", "C"], "m": {"k": "v", "n": 1, "x": [1, 2], "q": None},
    "rows": [{"role": "user", "id": 2}, {"role": "tool", "id": 1}, {"role": "user", "id": 3, "extra": "é"}],
}

NUMBERS = ["a", "b", "c", "d", "0", "1", "2", "7", "1.5", "0.25", "yes", "10"]
TEXTS = ["s", "t", "e", "'a'", "'x y'", "''", "'Ünï'", "m.k", "'1'", "'a,b,,c'"]
LISTS = ["xs", "ys", "[]", "[1, 'a', none]", "rows", "(1, 2)", "range(4)", "m.x", "['b', 'a']"]
OTHERS = ["nil", "none", "true", "false", "undefined_name", "m", "m.zz", "{}", "{'a': 1, 'b': [2]}"]
RELATIONS = ["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
TEXT_FILTERS = ["upper", "lower", "title", "capitalize", "trim", "length", "list", "first", "last", "reverse", "int", "float", "tojson",
                "string", "wordcount", "replace('a', 'b')", "indent(2)", "default('q')", "join('-')", "count"]
LIST_FILTERS = ["length", "first", "last", "join(',')", "list", "reverse|list", "sort", "unique|list", "sum", "min", "max", "tojson",
                "map('string')|list", "select('string')|list", "reject('none')|list", "batch(2)|list", "map('upper')|join", "string",
                "map(attribute='role')|list", "selectattr('id', 'gt', 1)|list", "sort(attribute='id')|map(attribute='id')|list",
                "sort(reverse=true)", "tojson(indent=2)", "select|list", "rejectattr('extra', 'defined')|list"]
NUMBER_FILTERS = ["abs", "round", "int", "float", "string", "tojson", "round(1)", "default(1)", "round(1, 'floor')", "round(0, 'ceil')"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "title()", "split()", "split(',')", "split('o', 1)", "rsplit(None, 1)",
           "startswith('a')", "endswith('d')", "replace('l', 'L')", "find('o')", "count('l')", "capitalize()", "splitlines()", "isdigit()",
           "strip('x ')", "center(9)", "zfill(6)", "partition(',')", "rfind('l')", "isupper()", "swapcase()", "join(ys)", "removeprefix('a')"]
TESTS = ["defined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "odd", "even", "true",
         "false", "eq(1)", "in(xs)", "divisibleby(2)", "undefined", "not defined", "not none", "not string", "lower", "upper"]
SUBSCRIPTS = ["[0]", "[-1]", "[1:]", "[:2]", "[::-1]", "[-2:]", "[::2]", "[5]", "[1:3]", "[4:0:-1]", ".k", "['k']", "['role']", "[a]"]


class Generator:
    def __init__(self, random):
        self.random = random

    def pick(self, choices):
        return self.random.choice(choices)

    def number(self, depth):
        kind = self.random.randrange(5) if depth > 0 else 0
        if kind == 0:
            return self.pick(NUMBERS)
        if kind == 1:
            return f"({self.number(depth - 1)} {self.pick(['+', '-', '*', '/', '//', '%'])} {self.number(depth - 1)})"
        if kind == 2:
            return f"({self.any(depth - 1)})|length"
        if kind == 3:
            return f"(-{self.number(depth - 1)})"
        return f"({self.number(depth - 1)})|{self.pick(NUMBER_FILTERS)}"

    def text(self, depth):
        kind = self.random.randrange(6) if depth > 0 else 0
        if kind == 0:
            return self.pick(TEXTS)
        if kind == 1:
            return f"({self.any(depth - 1)} ~ {self.any(depth - 1)})"
        if kind == 2:
            return f"({self.text(depth - 1)} + {self.text(depth - 1)})"
        if kind == 3:
            return f"({self.text(depth - 1)}).{self.pick(METHODS)}"
        if kind == 4:
            return f"({self.text(depth - 1)})|{self.pick(TEXT_FILTERS)}"
        return f"({self.text(depth - 1)}){self.pick(SUBSCRIPTS)}"

    def list(self, depth):
        kind = self.random.randrange(5) if depth > 0 else 0
        if kind == 0:
            return self.pick(LISTS)
        if kind == 1:
            return "[" + ", ".join(self.any(depth - 1) for _ in range(self.random.randrange(4))) + "]"
        if kind == 2:
            return f"({self.list(depth - 1)} + {self.list(depth - 1)})"
        if kind == 3:
            return f"({self.list(depth - 1)}){self.pick(SUBSCRIPTS)}"
        return f"({self.list(depth - 1)})|{self.pick(LIST_FILTERS)}"

    def truth(self, depth):
        kind = self.random.randrange(5)
        if kind == 0:
            return f"({self.any(depth - 1)} {self.pick(RELATIONS)} {self.any(depth - 1)})"
        if kind == 1:
            return f"({self.any(depth - 1)} is {self.pick(TESTS)})"
        if kind == 2:
            return f"(not {self.any(depth - 1)})"
        if kind == 3:
            return f"({self.number(depth - 1)} {self.pick(RELATIONS[:6])} {self.number(depth - 1)} {self.pick(RELATIONS[:6])} {self.number(depth - 1)})"
        return f"({self.any(depth - 1)} {self.pick(['and', 'or'])} {self.any(depth - 1)})"

    def any(self, depth):
        if depth <= 0:
            return self.pick(NUMBERS + TEXTS + LISTS + OTHERS)
        kind = self.random.randrange(9)
        if kind < 2:
            return self.number(depth)
        if kind < 4:
            return self.text(depth)
        if kind < 6:
            return self.list(depth)
        if kind == 6:
            return self.truth(depth)
        if kind == 7:
            return f"({self.any(depth - 1)} if {self.truth(depth - 1)} else {self.any(depth - 1)})"
        return "{" + ", ".join(f"'{key}': {self.any(depth - 1)}" for key in "ab"[:self.random.randrange(3)]) + "}"

    def template(self):
        depth = self.random.randrange(1, 4)
        kind = self.random.randrange(6)
        if kind == 0:
            return f"{{% if {self.truth(depth)} %}}A{{% else %}}B{{% endif %}}"
        if kind == 1:
            return (f"{{% for i in {self.list(depth)} %}}{{{{ loop.index }}}}:{{{{ i }}}}"
                    f"{{% if {self.truth(1)} %}}{{% break %}}{{% endif %}},{{% else %}}-{{% endfor %}}")
        if kind == 2:
            return f"{{% set v = {self.any(depth)} %}}{{{{ v }}}}|{{{{ v is defined }}}}"
        if kind == 3:
            return f"{{% macro f(p, q={self.any(1)}) %}}{{{{ p }}}}{{{{ q }}}}{{% endmacro %}}{{{{ f({self.any(depth)}) }}}}"
        # Never constant, since Jinja computes constants by slightly other rules.
        return f"{{{{ ({self.any(depth)}, a)[0] }}}}"
