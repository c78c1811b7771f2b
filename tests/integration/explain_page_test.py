#!/usr/bin/env python3
"""Opens the page of `weft explain --html` in a headless Chromium: passes step, toggles show the plans that the command
prints for the same flags, hostile names stay text, nothing is loaded and nothing fails. Skips itself without Chromium.

With WEFT_SCREENSHOT=FILE the picture in docs/ is written there instead."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import chromium

SOURCE = pathlib.Path(os.environ.get("WEFT_SOURCE_DIR", "."))
WEFT = os.environ.get("WEFT_BIN_DIR", "build/release/bin") + "/weft"
Q8 = SOURCE / "models" / "shakespeare-q8_0.gguf"
PICTURE = SOURCE / "docs" / "explain.png"
GIB = 1 << 30
MOST_PAGE_BYTES = 3 << 20
MOST_PICTURE_BYTES = 300_000
RACK = {"hosts": [{"name": "alpha", "devices": [{"kind": "gpu", "memory_bytes": 24 * GIB},
                                                {"kind": "gpu", "memory_bytes": 24 * GIB},
                                                {"kind": "cpu", "memory_bytes": 128 * GIB}]},
                  {"name": "beta", "devices": [{"kind": "gpu", "memory_bytes": 16 * GIB},
                                               {"kind": "cpu", "memory_bytes": 64 * GIB}]}]}
SHAPE = ["--embedding", 64, "--heads", 4, "--heads-kv", 2, "--head", 32, "--ff", 128, "--vocab", 512]

# By node: the device's number in the page; -1: nowhere.
CELLS = """(() => {
  document.getElementById('expand').textContent === 'Expand all' && document.getElementById('expand').click();
  return [...document.querySelectorAll('.cell')].map((cell) => {
    const name = [...cell.classList].find((one) => /^d[0-9]+$/.test(one));
    return name ? Number(name.slice(1)) : -1;
  });
})()"""
STEP = "Number(new URLSearchParams(location.hash.slice(1)).get('step'))"
SPLITS = "document.querySelector('#steps li:last-child .amount').textContent"


def weft(*arguments):
    result = subprocess.run([WEFT, *map(str, arguments)], capture_output=True, timeout=120, encoding="utf-8", check=False)
    if result.returncode != 0:
        raise AssertionError((arguments, result.stderr))
    return result.stdout


class ExplainPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder_object = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder_object.cleanup)
        cls.folder = pathlib.Path(cls.folder_object.name)
        cls.rack = cls.folder / "rack.json"
        cls.rack.write_text(json.dumps(RACK), encoding="utf-8")
        cls.experts = cls.folder / "experts.gguf"
        weft("synth", "--arch", "qwen3moe", "--layers", 6, "--experts", 8, "--experts-used", 2, *SHAPE, cls.experts)
        cls.browser = chromium.Chromium()
        cls.addClassCleanup(cls.browser.close)

    def make_page(self, model, *flags):
        page = self.folder / f"{self.id()}.html"
        weft("explain", "-m", model, "--html", page, *flags)
        self.assertLess(page.stat().st_size, MOST_PAGE_BYTES)
        return page

    def open(self, page, state=""):
        self.browser.open("about:blank")
        seen = len(self.browser.requests())
        self.browser.open(f"file://{page}{state}")
        self.seen = seen
        self.address = f"file://{page}"

    def check_nothing_failed(self):
        self.assertEqual(self.browser.problems(), [])
        asked = {address.partition("#")[0] for address in self.browser.requests()[self.seen:]}
        self.assertEqual(asked, {self.address})

    def choose(self, name, label):
        done = self.browser.evaluate(f"""(() => {{
          const labels = [...document.querySelectorAll('#controls label')];
          const found = labels.find((one) => one.querySelector('input').name === {json.dumps(name)} &&
                                             one.textContent === {json.dumps(label)});
          if (found) found.querySelector('input').click();
          return Boolean(found);
        }})()""")
        self.assertTrue(done, (name, label))

    def report(self, model, *flags):
        return json.loads(weft("explain", "-m", model, "--json", *flags))

    def check_cells(self, wanted, what=""):
        """Devices of all cells. (Comparing long lists with assertEqual takes minutes where they differ.)"""
        cells = self.browser.evaluate(CELLS)
        self.assertEqual(len(cells), len(wanted), what)
        wrong = [at for at, pair in enumerate(zip(cells, wanted)) if pair[0] != pair[1]]
        self.assertEqual(wrong[:5], [], f"{what}: {len(wrong)} nodes elsewhere")

    def check_plan(self, phase, devices):
        """The cells at every step against the passes that the command printed."""
        names = [device["name"] for device in devices]
        places = {node["id"]: -1 for node in phase["nodes"]}
        for step in range(len(phase["passes"]) + 1):
            if step > 0:
                for change in phase["passes"][step - 1]["changes"]:
                    places[change["node"]] = names.index(change["to"])
            self.browser.evaluate(f"document.querySelectorAll('#steps button')[{step}].click()")
            self.assertEqual(self.browser.evaluate(STEP), step)
            self.check_cells(list(places.values()), f"step {step}")
        count = len(phase["splits"])
        self.assertEqual(self.browser.evaluate(SPLITS), f"{count} split" + ("" if count == 1 else "s"))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('#splits tbody tr').length"), count)

    def test_passes_step_with_buttons_and_keys(self):
        page = self.make_page(self.experts, "--inventory", self.rack)
        self.open(page)
        last = self.browser.evaluate("document.querySelectorAll('#steps button').length") - 1
        self.assertEqual(last, 5)
        self.assertEqual(self.browser.evaluate(STEP), last)
        for step in range(last - 1, -1, -1):
            self.browser.press("ArrowLeft")
            self.assertEqual(self.browser.evaluate(STEP), step)
        self.assertEqual(set(self.browser.evaluate(CELLS)), {-1})
        self.browser.evaluate("document.getElementById('next').click()")
        self.assertEqual(self.browser.evaluate(STEP), 1)
        self.assertIn(-1, self.browser.evaluate(CELLS))
        self.assertGreater(self.browser.evaluate("document.querySelectorAll('.cell.changed').length"), 0)
        self.browser.press("ArrowRight")
        self.assertNotIn(-1, self.browser.evaluate(CELLS))
        self.browser.press("d")
        self.assertIn("phase=decode", self.browser.evaluate("location.hash"))
        self.check_nothing_failed()

    def test_play_runs_to_the_last_pass(self):
        page = self.make_page(Q8)
        self.open(page, "#step=4")
        self.browser.press(" ", " ")
        self.assertEqual(self.browser.evaluate("document.getElementById('play').textContent"), "Pause")
        self.browser.wait_for(f"{STEP} === 5")
        self.browser.wait_for("document.getElementById('play').textContent === 'Play'")
        self.check_nothing_failed()

    def test_toggles_show_the_plans_of_the_same_flags(self):
        rack = ("--inventory", self.rack)
        page = self.make_page(self.experts, *rack)
        self.open(page)
        report = self.report(self.experts, *rack)
        self.check_plan(report["phases"]["prefill"], report["devices"])
        cases = [([("experts", "--cpu-moe")], ["--cpu-moe"]),
                 ([("op offload", "off")], ["--cpu-moe", "--no-op-offload"]),
                 ([("-ngl", "3"), ("op offload", "on")], ["--cpu-moe", "-ngl", "3"]),
                 ([("KV offload", "off"), ("experts", "with layer")], ["-ngl", "3", "--no-kv-offload"])]
        counts = set()
        for choices, flags in cases:
            for name, label in choices:
                self.choose(name, label)
            report = self.report(self.experts, *rack, *flags)
            for phase in ("prefill", "decode"):
                self.browser.press(phase[0])
                self.check_plan(report["phases"][phase], report["devices"])
                counts.add(len(report["phases"][phase]["splits"]))
        self.assertGreater(len(counts), 3)
        self.check_nothing_failed()

    def test_memory_and_remarks_follow_the_toggles(self):
        page = self.make_page(self.experts, "--inventory", self.rack)
        self.open(page)
        bar = "document.querySelector('[data-device=\"0\"] .parts').textContent"
        before = self.browser.evaluate(bar)
        self.assertIn("at least", before)
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('.remark').length"), 0)
        self.choose("experts", "--cpu-moe")
        self.browser.press("d")
        self.assertNotEqual(self.browser.evaluate(bar), before)
        remarks = "document.getElementById('remarks').textContent"
        self.assertNotIn("host memory", self.browser.evaluate(remarks))
        self.choose("KV offload", "off")
        self.assertIn("host memory", self.browser.evaluate(remarks))
        self.assertIn("against given", self.browser.evaluate("document.getElementById('figures').textContent"))
        self.check_nothing_failed()

    def test_a_cell_tells_its_cause_and_history(self):
        page = self.make_page(self.experts, "--inventory", self.rack)
        self.open(page, "#step=5")
        self.browser.evaluate("document.querySelector('.cell[tabindex=\"0\"]').focus()")
        self.assertIn("token_embd.weight", self.browser.evaluate("document.getElementById('tip').textContent"))
        self.browser.press("ArrowDown")
        self.browser.press("ArrowRight")
        self.assertIn("blk.0.attn_q.weight", self.browser.evaluate("document.getElementById('tip').textContent"))
        self.assertEqual(self.browser.evaluate(STEP), 5)
        self.browser.press("Enter", "\r")
        node = self.browser.evaluate("document.getElementById('node').textContent")
        self.assertIn("assign-pinned: w0.gpu0 1.wgt0 its weight 'blk.0.attn_q.weight' lies there", node)
        self.check_nothing_failed()

    def test_hostile_names_stay_text(self):
        model = self.folder / "hostile.gguf"
        data = Q8.read_bytes()
        name = b"</script><b>x</b"
        self.assertEqual(data.count(b"Shakespeare demo"), 1)
        self.assertEqual(len(name), len(b"Shakespeare demo"))
        model.write_bytes(data.replace(b"Shakespeare demo", name))
        inventory = self.folder / "hostile.json"
        host = "<img src=x onerror=alert(1)>"
        inventory.write_text(json.dumps({"hosts": [{"name": host, "devices": [{"kind": "gpu"}, {"kind": "cpu"}]}]}),
                             encoding="utf-8")
        page = self.make_page(model, "--inventory", inventory)
        text = page.read_text(encoding="utf-8")
        self.assertNotIn("<b>", text)
        self.assertNotIn("<img", text)
        self.open(page)
        self.assertIn(name.decode(), self.browser.evaluate("document.getElementById('summary').textContent"))
        self.assertIn(host, self.browser.evaluate("document.getElementById('messages').textContent"))
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('img, b').length"), 0)
        self.check_nothing_failed()

    def test_policy_forbids_other_scripts_and_styles(self):
        page = self.make_page(Q8)
        text = page.read_text(encoding="utf-8")
        self.assertIn("default-src 'none'", text)
        self.assertNotIn("unsafe", text)
        changed = self.folder / "changed.html"
        changed.write_text(text.replace("</body>", "<script>document.title = 'taken'</script></body>"), encoding="utf-8")
        self.open(changed)
        self.assertNotEqual(self.browser.evaluate("document.title"), "taken")
        self.assertTrue(any("Content Security Policy" in problem for problem in self.browser.problems()))
        self.browser.forget()

    def test_a_hundred_layers(self):
        model = self.folder / "deep.gguf"
        weft("synth", "--arch", "qwen3moe", "--layers", 100, "--experts", 8, "--experts-used", 4, *SHAPE, model)
        page = self.make_page(model, "--inventory", self.rack, "--cpu-moe")
        self.open(page, "#phase=decode")
        self.assertLess(self.browser.evaluate("document.querySelectorAll('.row').length"), 20)
        report = self.report(model, "--inventory", self.rack, "--cpu-moe")
        nodes = report["phases"]["decode"]["nodes"]
        names = [device["name"] for device in report["devices"]]
        self.check_cells([names.index(node["device"]) for node in nodes])
        self.assertEqual(self.browser.evaluate("document.querySelectorAll('.row').length"), 102)
        self.check_nothing_failed()

    def test_controls_have_names_and_the_page_goes_dark(self):
        page = self.make_page(self.experts, "--inventory", self.rack)
        self.open(page)
        roles = {"button", "radio", "checkbox", "combobox", "gridcell", "link"}
        controls = []
        # The browser fills the tree after the page has loaded.
        deadline = time.monotonic() + 60
        while len(controls) <= 30 and time.monotonic() < deadline:
            tree = self.browser.call("Accessibility.getFullAXTree")["nodes"]
            controls = [node for node in tree if node.get("role", {}).get("value") in roles and not node["ignored"]]
        self.assertGreater(len(controls), 30)
        unnamed = [node["role"]["value"] for node in controls if not node.get("name", {}).get("value")]
        self.assertEqual(unnamed, [])
        background = "getComputedStyle(document.body).backgroundColor"
        light = self.browser.evaluate(background)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.browser.call("Emulation.setEmulatedMedia", features=dark)
        self.browser.wait_for("document.documentElement.dataset.theme === 'dark'")
        self.assertNotEqual(self.browser.evaluate(background), light)
        self.browser.call("Emulation.setEmulatedMedia", features=[])
        self.check_nothing_failed()

    def test_the_picture_in_the_docs(self):
        page = self.make_page(self.experts, "--inventory", self.rack, "--cpu-moe")
        self.open(page, "#phase=decode&step=5")
        self.browser.evaluate("document.querySelector('.cell[data-node=\"21\"]').click()")
        picture = self.browser.screenshot()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertLess(len(picture), MOST_PICTURE_BYTES)
        if os.environ.get("WEFT_SCREENSHOT"):
            pathlib.Path(os.environ["WEFT_SCREENSHOT"]).write_bytes(picture)
        kept = PICTURE.read_bytes()
        self.assertEqual(kept[:8], b"\x89PNG\r\n\x1a\n")
        self.assertLess(len(kept), MOST_PICTURE_BYTES)
        self.assertIn("(explain.png)", (SOURCE / "docs" / "explain.md").read_text(encoding="utf-8"))
        self.check_nothing_failed()


if __name__ == "__main__":
    if chromium.find_chromium() is None:
        print("[  SKIPPED ] ExplainPage.Chromium")
        sys.exit(0)
    unittest.main()
