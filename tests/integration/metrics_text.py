"""Prometheus' text format, read strictly; and the names of metrics that docs/serving.md lists."""
import math
import re

from serve_process import SOURCE

SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def _labels(text):
    labels, at = {}, 0
    while at < len(text):
        found = LABEL.match(text, at)
        assert found, f"bad labels: {text}"
        assert found.group(1) not in labels, f"a label twice: {text}"
        labels[found.group(1)], at = found.group(2), found.end()
    return labels


def _check_histogram(name, samples):
    rows = {}
    for suffix, labels, value in samples:
        key = tuple(sorted((k, v) for k, v in labels.items() if k != "le"))
        rows.setdefault(key, []).append((suffix, labels.get("le"), value))
    for key, parts in rows.items():
        buckets = [(math.inf if le == "+Inf" else float(le), value) for suffix, le, value in parts if suffix == "_bucket"]
        assert buckets == sorted(buckets), f"{name}{key}: buckets do not grow: {buckets}"
        counts = [value for suffix, _, value in parts if suffix == "_count"]
        assert len(counts) == 1 and buckets[-1] == (math.inf, counts[0]), f"{name}{key}: the last bucket is not the count"
        assert sum(suffix == "_sum" for suffix, _, _ in parts) == 1, f"{name}{key}: no sum"


def parse(text):
    """{family: {"type", "help", "samples": [(suffix, labels, value)]}}; fails on what the format does not allow."""
    families, current = {}, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, word, name, rest = line.split(" ", 3)
            assert word in ("HELP", "TYPE"), line
            if name not in families:
                families[name] = {"samples": []}
                current = name
            assert name == current, f"{name} is not in one piece"
            assert word.lower() not in families[name], f"{word} of {name} twice"
            assert not families[name]["samples"], f"{word} of {name} after its samples"
            families[name][word.lower()] = rest
            continue
        found = SAMPLE.fullmatch(line)
        assert found, f"no sample: {line}"
        family = families[current]
        suffix = found.group(1)[len(current):] if found.group(1).startswith(current) else None
        assert suffix in SUFFIXES[family["type"]], f"{line} under {current}"
        family["samples"].append((suffix, _labels(found.group(2) or ""), float(found.group(3))))
    for name, family in families.items():
        assert family.get("help") and family.get("type"), f"{name} has no HELP or TYPE"
        keys = [(suffix, tuple(sorted(labels.items()))) for suffix, labels, _ in family["samples"]]
        assert len(keys) == len(set(keys)), f"{name} has a sample twice"
        assert (family["type"] == "counter") == name.endswith("_total"), f"{name} is a {family['type']}"
        if family["type"] == "histogram":
            _check_histogram(name, family["samples"])
    return families


def total(families, name):
    """The sum of a metric's samples, of a histogram its count; 0 where there is none."""
    family = families.get(name, {"samples": []})
    return sum(value for suffix, _, value in family["samples"] if suffix in ("", "_count"))


def documented(prefix):
    """Names that begin a row of a table of docs/serving.md, with that prefix."""
    text = (SOURCE / "docs" / "serving.md").read_text(encoding="utf-8")
    return {name for name in re.findall(r"(?m)^\| `(\w+)` \| (?:counter|gauge|histogram) \|", text) if name.startswith(prefix)}
