#!/usr/bin/env python3
"""Rules for Prometheus and the dashboard for Grafana: their form, and that the metrics and labels in them exist.

usage: observability_test.py [--nightly] [unittest arguments]
"""
import json
import os
import re
import shutil
import tempfile
import unittest

import programs
from manifests import yaml
from programs import DEPLOY, SOURCE, run

RULES = DEPLOY / "observability" / "rules.yaml"
DASHBOARD = DEPLOY / "observability" / "dashboard.json"
# Metrics of others that rules may use.
FOREIGN = {"certmanager_certificate_expiration_timestamp_seconds"}
WORDS = {"absent", "changes", "increase", "rate", "sum", "without", "by", "histogram_quantile", "time", "and", "on", "or", "unless",
         "label_values", "max", "min", "avg", "le"}
DURATION = re.compile(r"\d+[smhd]")


def metric_names(expression):
    """Names in an expression of PromQL that stand where a metric does."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    text = re.sub(r"\{[^{}]*\}", "", text)
    text = re.sub(r"\[[^\]]*\]", "", text)
    text = re.sub(r"\b(by|without|on)\s*\([^()]*\)", "", text)
    return {name for name in re.findall(r"[A-Za-z_:][\w:]*", text) if name not in WORDS}


def selectors(expression):
    """(metric, {label: value}) of every selector with labels."""
    return [(name, dict(re.findall(r'(\w+)\s*[=!]~?\s*"((?:[^"\\]|\\.)*)"', labels)))
            for name, labels in re.findall(r"([A-Za-z_:][\w:]*)\{([^{}]*)\}", expression)]


def documented_labels():
    """{metric: labels} of the tables in docs/serving.md."""
    rows = re.findall(r"(?m)^\| `(\w+)` \| \w+ \| (.*?) \|", (SOURCE / "docs/serving.md").read_text(encoding="utf-8"))
    # `state`: `active`, `waiting` - only the first is the label.
    return {name: set(re.findall(r"`(\w+)`(?=:| *,|$|: )", re.sub(r": *`[^|]*?(?=, `\w+`:|$)", "", cell))) for name, cell in rows}


class Observability(unittest.TestCase):
    def check(self, expression):
        known = programs.metrics()
        names = metric_names(expression)
        self.assertTrue(names, expression)
        for name in names:
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            if name in FOREIGN:
                continue
            if known.get(base) == "histogram":
                self.assertNotEqual(name, base, f"{expression}: {name} is a histogram, which has no value of its own")
            else:
                self.assertIn(name, known, expression)
        self.assertEqual(expression.count("("), expression.count(")"), expression)
        for name in re.findall(r"(?:rate|increase)\((\w+)", expression):
            self.assertIn(known.get(re.sub(r"_(bucket|sum|count)$", "", name)), ("counter", "histogram"), expression)

    def test_names_are_found(self):
        self.assertEqual(metric_names('sum by (le) (rate(weft_a_bucket{x="weft_b"}[5m])) > 2 * time() and on (i) weft_c == 1'),
                         {"weft_a_bucket", "weft_c"})
        self.assertEqual(selectors('a{x="1", y=~"b|c"} + d'), [("a", {"x": "1", "y": "b|c"})])

    def test_rules(self):
        groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))
        self.assertEqual(set(groups), {"groups"})
        seen = set()
        for group in groups["groups"]:
            self.assertEqual(set(group), {"name", "rules"})
            for rule in group["rules"]:
                with self.subTest(rule=rule.get("alert")):
                    self.assertLessEqual(set(rule), {"alert", "expr", "for", "labels", "annotations"})
                    self.assertRegex(rule["alert"], r"^Weft[A-Z]\w+$")
                    self.assertNotIn(rule["alert"], seen)
                    seen.add(rule["alert"])
                    self.assertTrue(DURATION.fullmatch(rule.get("for", "0s")))
                    self.assertIn(rule["labels"]["severity"], ("critical", "warning", "info"))
                    self.assertEqual(set(rule["annotations"]), {"summary", "description"})
                    self.check(rule["expr"])
        self.assertGreater(len(seen), 10)

    def test_a_metric_that_says_when_a_certificate_ends_has_a_rule(self):
        ends = [name for name in programs.metrics() if re.search("certificate|expir", name)]
        text = RULES.read_text(encoding="utf-8")
        self.assertEqual([name for name in ends if name not in text], [])

    def test_promtool_takes_the_rules(self):
        promtool = shutil.which("promtool") or os.environ.get("WEFT_PROMTOOL")
        if promtool is None:
            programs.missing("DeployObservability.Promtool", "there is no promtool on this machine", strict=False)
        done = run(promtool, "check", "rules", RULES)
        self.assertEqual(done.returncode, 0, done.stderr)
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy2(RULES, folder)
            shutil.copy2(SOURCE / "tests/data/deploy/alerts.yaml", folder)
            done = run(promtool, "test", "rules", f"{folder}/alerts.yaml")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_dashboard(self):
        board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        variables = {variable["name"] for variable in board["templating"]["list"]} | {"__rate_interval"}
        labels = documented_labels()
        panels = board["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        cells = set()
        for panel in panels:
            place = panel["gridPos"]
            own = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(own & cells, f"{panel['title']} lies over another panel")
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells |= own
            for target in panel.get("targets", []):
                with self.subTest(panel=panel["title"], expression=target["expr"]):
                    expression = target["expr"]
                    self.check(expression)
                    self.assertLessEqual(set(re.findall(r"\$(\w+)", expression)), variables)
                    shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                    names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in metric_names(expression)}
                    has = set().union(*(labels[name] for name in names)) | {"instance", "job"}
                    self.assertLessEqual(shown, has)
        self.assertGreater(len(cells), 500)

    def test_labels_are_read_from_the_document(self):
        labels = documented_labels()
        self.assertEqual(labels["weft_requests"], {"state"})
        self.assertEqual(labels["weft_transport_bytes_total"], {"transport", "direction"})
        self.assertEqual(labels["weft_http_requests_total"], {"route", "code"})
        self.assertEqual(labels["weft_ready"], set())
        self.assertEqual(labels["weft_worker_device_memory_bytes"], {"device", "state"})


if __name__ == "__main__":
    programs.main()
