#!/usr/bin/env python3
"""Runs `weft explain` as a person would: text, JSON with every key that docs/explain.md promises, inventories, bad input.
Standard library only."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
WEFT = os.environ.get("WEFT_BIN_DIR", "build/release/bin") + "/weft"
Q8 = SOURCE / "models" / "shakespeare-q8_0.gguf"
GOLDEN = SOURCE / "tests" / "data" / "models"
GIB = 1 << 30
RACK = {"hosts": [{"name": "alpha", "devices": [{"kind": "gpu", "memory_bytes": 24 * GIB},
                                                {"kind": "cpu", "memory_bytes": 128 * GIB}]},
                  {"name": "beta", "devices": [{"kind": "gpu", "memory_bytes": 16 * GIB},
                                               {"kind": "cpu", "memory_bytes": 64 * GIB}]}]}

# The objects of the JSON form: keys with the types of their values. docs/explain.md lists the same.
OPTIONAL_TEXT = (str, type(None))
SCHEMA = {
    "": {"weft_explain": int, "model": dict, "options": dict, "devices": list, "placement": dict, "weights": list,
         "caches": list, "phases": dict, "remarks": list, "groups": list},
    "model": {"name": str, "architecture": str, "layers": int, "experts": int},
    "options": {"batch": int, "sequences": int, "context": int, "key_type": str, "value_type": str},
    "device": {"name": str, "kind": str, "host": str, "description": str, "batch": dict,
               "memory_bytes": (int, type(None)), "weights": int, "weight_bytes": int, "weights_mapped": bool,
               "cache_bytes": int, "arena_bytes": int, "crossing_bytes": int, "workspace_bytes": int, "sum_bytes": int},
    "placement": {"input": str, "layers": list, "output": str},
    "weight": {"name": str, "tensor": OPTIONAL_TEXT, "type": str, "layer": int, "bytes": int, "device": str,
               "reason": str, "with_layer": bool, "split": OPTIONAL_TEXT},
    "group": {"name": str, "ranks": list, "shares": list, "links": dict, "machines": list},
    "cache": {"layer": int, "kind": str, "bytes": int, "device": str, "reason": str},
    "phase": {"tokens": int, "outputs": int, "counts": dict, "pipeline": dict, "processes": list, "memory": list,
              "passes": list, "splits": list, "cuts": list, "nodes": list, "collectives": list, "rank_traffic": list},
    "collective": {"group": str, "kind": str, "algorithm": str, "wire": str, "elements": int, "count": int, "steps": int,
                   "messages": int, "bytes": int, "predictions": list},
    "rank": {"device": str, "messages": int, "bytes": int, "bytes_per_token": float},
    "counts": {"nodes": int, "splits": int, "copies": int, "copied_bytes": int, "staged_bytes": int,
               "input_bytes": int, "fused": int, "resolved": int, "in_place": int,
               "split_nodes": int, "reductions": int, "gathers": int, "choices": int},
    "pipeline": {"copies": int, "refusal": str},
    "process": {"host": str, "executes": int, "replies": int, "sends": int, "sent_bytes": int, "receives": int,
                "received_bytes": int},
    "memory": {"device": str, "arena_bytes": int, "lower_bound_bytes": int, "chunks": int, "crossing_bytes": int,
               "workspace_bytes": int},
    "pass": {"name": str, "changed": int, "changed_leafs_and_views": int, "changes": list},
    "change": {"node": int, "from": OPTIONAL_TEXT, "to": str, "cause": str, "why": str},
    "split": {"device": str, "nodes": list, "inputs": list},
    "input": {"kind": str, "node": int, "label": str, "bytes": int, "from": OPTIONAL_TEXT},
    "cut": {"count": int, "op": str, "layer_device": str, "device": str, "refused": bool, "why": str},
    "node": {"id": int, "op": str, "name": str, "label": str, "layer": int, "device": str, "cause": str, "why": str,
             "split": int, "bytes": int, "plain": bool},
    "remark": {"code": str, "phase": OPTIONAL_TEXT, "text": str, "action": OPTIONAL_TEXT},
}


def weft(*arguments):
    return subprocess.run([WEFT, *map(str, arguments)], capture_output=True, timeout=120, encoding="utf-8", check=False)


class Explain(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.rack = pathlib.Path(self.folder.name) / "rack.json"
        self.rack.write_text(json.dumps(RACK), encoding="utf-8")

    def run_ok(self, *arguments):
        result = weft("explain", "-m", Q8, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def check_object(self, kind, value):
        self.assertEqual(list(value), list(SCHEMA[kind]), kind)
        for key, types in SCHEMA[kind].items():
            self.assertIsInstance(value[key], types, f"{kind}.{key}")
            if types is int:
                self.assertNotIsInstance(value[key], bool, f"{kind}.{key}")

    def check_phase(self, phase, devices):
        self.check_object("phase", phase)
        self.check_object("counts", phase["counts"])
        self.check_object("pipeline", phase["pipeline"])
        lists = {"processes": "process", "memory": "memory", "passes": "pass", "splits": "split", "cuts": "cut",
                 "nodes": "node", "collectives": "collective", "rank_traffic": "rank"}
        for key, kind in lists.items():
            for value in phase[key]:
                self.check_object(kind, value)
        for one in phase["passes"]:
            self.assertEqual(len(one["changes"]), one["changed"])
            for change in one["changes"]:
                self.check_object("change", change)
        for split in phase["splits"]:
            for value in split["inputs"]:
                self.check_object("input", value)
        self.assertEqual([node["id"] for node in phase["nodes"]],
                         [node for split in phase["splits"] for node in split["nodes"]])
        for node in phase["nodes"]:
            self.assertIn(node["device"], devices)
            self.assertEqual(node["device"], phase["splits"][node["split"]]["device"])

    def check_report(self, text):
        report = json.loads(text)
        self.check_object("", report)
        self.check_object("model", report["model"])
        self.check_object("options", report["options"])
        self.check_object("placement", report["placement"])
        for key, kind in {"devices": "device", "weights": "weight", "caches": "cache", "groups": "group",
                          "remarks": "remark"}.items():
            for value in report[key]:
                self.check_object(kind, value)
        devices = {device["name"] for device in report["devices"]}
        self.assertEqual(list(report["phases"]), ["prefill", "decode"])
        for phase in report["phases"].values():
            self.check_phase(phase, devices)
        return report

    def test_this_machine_as_text(self):
        text = self.run_ok()
        self.assertIn("local.cpu0", text)
        self.assertRegex(text, r"prefill: \d+ tokens, \d+ nodes, 1 split\n")
        self.assertIn("every node as in prefill", text)
        self.assertEqual(text, self.run_ok())

    def test_nodes_and_timings(self):
        self.assertRegex(self.run_ok("--nodes"), r"mul_mat +local.cpu0 +1.wgt0 +blk.0.ffn_up.weight")
        self.assertRegex(self.run_ok("--timings"), r"assign-pinned .* \d+\.\d+ ms")

    def test_json_has_the_documented_keys(self):
        report = self.check_report(self.run_ok("--json", "--batch", 32, "--sequences", 2, "-c", 128, "-ctk", "q8_0"))
        self.assertEqual(report["weft_explain"], 1)
        self.assertEqual(report["options"], {"batch": 32, "sequences": 2, "context": 128, "key_type": "Q8_0",
                                             "value_type": "F16"})
        self.assertEqual(report["phases"]["decode"]["tokens"], 2)

    def test_inventory_explains_a_rack(self):
        report = self.check_report(self.run_ok("--json", "--inventory", self.rack, "-ngl", 2))
        self.assertEqual([device["name"] for device in report["devices"]],
                         ["w0.gpu0", "w1.gpu0", "w0.cpu0", "w1.cpu0", "local.cpu0"])
        self.assertEqual(report["devices"][0]["memory_bytes"], 24 * GIB)
        prefill, decode = report["phases"]["prefill"], report["phases"]["decode"]
        self.assertTrue(any(node["cause"] == "1.off" for node in prefill["nodes"]))
        self.assertFalse(any(node["cause"] == "1.off" for node in decode["nodes"]))
        off = json.loads(self.run_ok("--json", "--inventory", self.rack, "-ngl", 2, "--no-op-offload"))
        self.assertFalse(any(node["cause"] == "1.off" for node in off["phases"]["prefill"]["nodes"]))

    def test_ranks_of_a_tensor_split(self):
        flags = ["--inventory", self.rack, "--split-mode", "tensor", "--tensor-split", "3,1"]
        report = self.check_report(self.run_ok("--json", *flags))
        group = report["groups"][0]
        self.assertEqual((group["name"], group["ranks"], group["shares"]), ("tp0", ["w0.gpu0", "w1.gpu0"], [3, 1]))
        splits = {weight["name"]: weight["split"] for weight in report["weights"]}
        self.assertEqual(splits["blk.0.attn_norm.weight"], "mirrored")
        self.assertRegex(splits["blk.0.ffn_down.weight"], "^cut along 0: 0-[0-9]+ [0-9]+-[0-9]+$")
        first, second = report["devices"][:2]
        self.assertGreater(first["weight_bytes"], second["weight_bytes"])
        layers = report["model"]["layers"]
        whole = 2 * layers + 1  # the embedding, and two per layer
        halves = 4 * layers  # each in two halves, but for the rows that the last layer gives
        # Over a network the sums of one half travel while the other is computed.
        for overlap, prefill in (("auto", halves), ("on", halves), ("off", whole)):
            split = self.check_report(self.run_ok("--json", *flags, "--overlap", overlap))["phases"]
            self.assertEqual((split["prefill"]["counts"]["reductions"], split["decode"]["counts"]["reductions"]),
                             (prefill, whole), overlap)
        for phase in report["phases"].values():
            self.assertEqual(phase["counts"]["gathers"], 0)
            self.assertEqual({node["cause"] for node in phase["nodes"]}, {"rank"})
        text = self.run_ok(*flags)
        self.assertIn("rank 1  w1.gpu0, share 1", text)
        self.assertRegex(text, r"in two halves of \d+ tokens: one is computed while the other's sums travel")
        alone = weft("explain", "-m", Q8, "--split-mode", "tensor")
        self.assertEqual(alone.returncode, 2)
        self.assertIn("--split-mode tensor", alone.stderr)

    def test_workers_of_one_machine_sum_first(self):
        hosts = [{"name": name, "machine": machine, "devices": [{"kind": "cpu", "arithmetic": arithmetic}]}
                 for name, machine, arithmetic in (("a0", "a", "x"), ("b0", "b", "x"), ("a1", "a", "x"), ("b1", "b", "y"))]
        fleet = {"hosts": hosts, "links": [{"a": "a0", "b": "a1", "latency_us": 7, "bytes_per_s": 3e9},
                                           {"a": "a1", "b": "b0", "latency_us": 90, "bytes_per_s": 1e8}]}
        rack = pathlib.Path(self.folder.name) / "pairs.json"
        rack.write_text(json.dumps(fleet), encoding="utf-8")
        flags = ["--inventory", rack, "--split-mode", "tensor", "--batch", 16, "-c", 128]
        report = self.check_report(self.run_ok("--json", *flags))
        group = report["groups"][0]
        self.assertEqual(group["machines"], [0, 1, 0, 1])
        self.assertEqual(group["links"]["within_host"], {"latency_us": 7, "bytes_per_s": 3e9})
        self.assertEqual(group["links"]["between_hosts"], {"latency_us": 90, "bytes_per_s": 1e8})
        for phase in report["phases"].values():
            algorithms = {c["algorithm"] for c in phase["collectives"] if c["kind"] == "all_reduce"}
            self.assertTrue(algorithms and all(name.startswith("hosts first") for name in algorithms), algorithms)
            self.assertEqual(phase["counts"]["choices"], 0)  # a dense model chooses nothing
        text = self.run_ok(*flags)
        self.assertIn("machines of tp0: ranks 0 2 | 1 3", text)
        self.assertIn("links of tp0: 90 us and 0.1 GB/s between machines, 7 us and 3 GB/s within one", text)
        # Ranks that round differently let the first choose their experts.
        moe = weft("explain", "-m", GOLDEN / "llama-moe" / "model.gguf", *flags)
        self.assertEqual(moe.returncode, 0, moe.stderr)
        self.assertRegex(moe.stdout, r"sums and 0 gathers per step, \d+ choices by rank 0 for all")
        self.assertRegex(moe.stdout, r"tp0 +all_gather +x\d+ +2 I32")
        self.assertIn("tp0: what top_k takes is chosen by rank 0 for all, as w3.cpu0 (cpu, y) rounds unlike w0.cpu0 (cpu, x)",
                      moe.stdout)

    def test_what_ranks_send_each_other(self):
        width = json.loads(self.run_ok("--json"))["phases"]["decode"]["nodes"][0]["bytes"]  # of the embedding
        slow = {**RACK, "links": [{"a": "alpha", "b": "beta", "latency_us": 100, "bytes_per_s": 1e8}]}
        self.rack.write_text(json.dumps(slow), encoding="utf-8")
        flags = ["--inventory", self.rack, "--split-mode", "tensor", "--batch", 16, "-c", 128]
        for wire, bytes_of in (("f32", width), ("bf16", width // 2), ("q8_0", width // 4 // 32 * 34)):
            for name, algorithm, steps in (("auto", "recursive doubling", 1), ("scatter-gather", "by parts", 2)):
                report = self.check_report(self.run_ok("--json", *flags, "--wire-type", wire, "--allreduce", name))
                link = report["groups"][0]["links"]["between_hosts"]
                self.assertEqual(link, {"latency_us": 100, "bytes_per_s": 1e8})
                decode = report["phases"]["decode"]
                self.assertEqual({(c["kind"], c["algorithm"], c["wire"].lower(), c["steps"], c["bytes"])
                                  for c in decode["collectives"]},
                                 {("all_reduce", algorithm, wire, steps, 2 * bytes_of)})
                sums = 2 * report["model"]["layers"] + 1
                self.assertEqual(sum(c["count"] for c in decode["collectives"]), sums)
                self.assertEqual({(rank["messages"], rank["bytes"]) for rank in decode["rank_traffic"]},
                                 {(sums * steps, sums * bytes_of)})
                for phase in report["phases"].values():
                    for collective in phase["collectives"]:
                        expected = {p["algorithm"]: p["expected_us"] for p in collective["predictions"]}
                        self.assertEqual(min(expected, key=expected.get), collective["algorithm"])
                        self.assertGreaterEqual(expected[algorithm], 100 * steps)
        text = self.run_ok(*flags, "--wire-type", "bf16")
        self.assertRegex(text, r"between ranks, per step: \d+ steps of messages, .* per token")
        self.assertRegex(text, r"tp0 +all_reduce +x\d+ +\d+ BF16 +recursive doubling +1 step .*expected \d+\.\d us, by parts")
        self.assertIn("links of tp0: 100 us and 0.1 GB/s between machines", text)

    def test_remarks_name_rules_without_effect(self):
        text = self.run_ok("--inventory", self.rack, "-ot", "nothing_like_it=cpu", "--no-kv-offload")
        remarks = text[text.index("\nremarks\n"):]
        self.assertIn("nothing_like_it", remarks)
        self.assertIn("host memory", remarks)

    def test_page_goes_where_it_cannot_hurt(self):
        page = pathlib.Path(self.folder.name) / "page.html"
        self.assertEqual(self.run_ok("--html", page), "")
        text = page.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("<!doctype html>"))
        self.assertNotIn("@DATA@", text)
        json.loads(self.run_ok("--html", page, "--json"))
        before = self.rack.read_text(encoding="utf-8")
        self.check_error("is the input file", "--inventory", self.rack, "--html", self.rack)
        self.assertEqual(self.rack.read_text(encoding="utf-8"), before)
        self.check_error("not a regular file", "--html", "/dev/null")

    def check_error(self, text, *arguments, model=Q8):
        result = weft("explain", "-m", model, *arguments)
        self.assertEqual(result.returncode, 2, (arguments, result.stderr))
        self.assertEqual(result.stdout, "")
        lines = [line for line in result.stderr.splitlines() if line.startswith("weft: error: ")]
        self.assertEqual(len(lines), 1, result.stderr)
        self.assertIn(text, lines[0])

    def test_bad_input_is_exit_code_2(self):
        self.check_error("/no/such.gguf", model="/no/such.gguf")
        self.check_error("magic", model=SOURCE / "README.md")
        self.check_error("--batch", "--batch", -1)
        self.check_error("--batch", "--batch", 1000, "-c", 128)
        self.check_error("--sequences", "--sequences", 0)
        self.check_error("-c", "-c", -7)
        self.check_error("-ctk", "-ctk", "q4_0")
        self.check_error("--override-tensor", "-ot", "x")
        self.check_error("--device-batch", "--device-batch", "w9.gpu0:1-")
        self.check_error("--accel", "--accel", "blas", "--inventory", self.rack)
        self.check_error("/no/such.json", "--inventory", "/no/such.json")
        self.rack.write_text('{"hosts": [{"name": "a", "devices": [{"kind": "toaster"}]}]}', encoding="utf-8")
        self.check_error("hosts[0].devices[0].kind", "--inventory", self.rack)

    def test_docs_list_every_key(self):
        text = (SOURCE / "docs" / "explain.md").read_text(encoding="utf-8")
        words = set(re.findall(r"`([a-z_]+)`", text))
        for kind, keys in SCHEMA.items():
            for key in keys:
                self.assertIn(key, words, f"docs/explain.md does not mention {kind}.{key}")


if __name__ == "__main__":
    unittest.main()
