#!/usr/bin/env python3
"""The manifests of deploy/kubernetes against the schemas of Kubernetes, which the package kubernetes-validate brings, and of
the custom kinds in tests/data/deploy. Runs itself again under .venv, which tests/run.sh makes, where the package is missing.

usage: schema_test.py [--nightly] [unittest arguments]
"""
import copy
import functools
import json
import os
import pathlib
import sys
import unittest

import programs
from programs import SOURCE, VENV

try:
    import jsonschema
    import kubernetes_validate
    import referencing
except ImportError:
    if VENV.exists() and pathlib.Path(sys.prefix) != VENV:
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
    kubernetes_validate = None

import manifests  # pylint: disable=wrong-import-position

# `preStop.sleep` begins here; docs/kubernetes.md says so.
OLDEST = "1.30"
CUSTOM = ("LeaderWorkerSet", "ServiceMonitor", "Certificate", "Issuer")
# Keys of these are names that people give.
FREE = {"labels", "annotations", "matchLabels", "data", "limits", "requests", "selector"}


def versions():
    """The oldest that is supported and the latest three."""
    known = [version for version in kubernetes_validate.utils.all_versions() if version.endswith(".0") or version.count(".") == 2]
    known = sorted({kubernetes_validate.utils.major_minor(version) for version in known},
                   key=lambda version: tuple(map(int, version.split("."))))
    return [OLDEST, *known[-3:]]


@functools.cache
def schemas(version):
    """Folder and definitions of a version, strict: what a schema does not know is refused."""
    folder = pathlib.Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{version}.0-local-strict"
    return folder, json.loads((folder / "_definitions.json").read_text(encoding="utf-8"))


@functools.cache
def kubernetes_validator(name, version):
    folder, definitions = schemas(version)
    if not (folder / f"{name}.json").exists():
        return None
    schema = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    registry = referencing.Resource.from_contents(definitions) @ (referencing.Resource.from_contents(schema) @ referencing.Registry())
    return jsonschema.Draft202012Validator(schema, registry=registry)


@functools.cache
def custom_validator(kind):
    schema = json.loads((SOURCE / "tests/data/deploy" / f"{kind.lower()}.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema)


def errors(document, version):
    """Why a document is not what its kind wants, one after the other."""
    if document["kind"] in CUSTOM:
        yield from custom_validator(document["kind"]).iter_errors(document)
        if document["kind"] == "LeaderWorkerSet":
            group = document.get("spec", {}).get("leaderWorkerTemplate", {})
            for part in (group.get("leaderTemplate"), group.get("workerTemplate")):
                yield from kubernetes_validator("podtemplatespec-v1", version).iter_errors(part)
        return
    group, _, last = document.get("apiVersion", "").rpartition("/")
    parts = [document["kind"].lower(), group.split(".")[0], last]
    validator = kubernetes_validator("-".join(part for part in parts if part), version)
    if validator is None:
        yield jsonschema.ValidationError(f"Kubernetes {version} has no {document['kind']} of '{document.get('apiVersion')}'")
    else:
        yield from validator.iter_errors(document)


def wrong(document, version):
    """The first of these reasons; None if there is none."""
    first = next(errors(document, version), None)
    return first and f"{list(first.absolute_path)}: {first.message}"


def mappings(value, path=()):
    """(path, key) of every key that a schema knows by name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not path or path[-1] not in FREE or isinstance(inner, dict):
                yield path, key
            yield from mappings(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from mappings(inner, (*path, i))


def misspelt(document, path, key):
    changed = copy.deepcopy(document)
    part = changed
    for step in path:
        part = part[step]
    part[key + "s"] = part.pop(key)
    return changed


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if kubernetes_validate is None:
            programs.missing("DeploySchemas.Package", "the package kubernetes-validate is not installed")
        manifests.require_kubectl()

    def test_every_document_is_valid(self):
        seen = set()
        for overlay, variants in manifests.cases():
            for document in manifests.render(overlay, *variants):
                text = json.dumps(document)
                if text in seen:
                    continue
                seen.add(text)
                for version in versions():
                    with self.subTest(overlay=overlay, variants=variants, document=manifests.name_of(document), version=version):
                        self.assertIsNone(wrong(document, version))
        self.assertGreater(len(seen), 50)

    def test_every_custom_kind_is_rendered(self):
        kinds = {document["kind"] for overlay, variants in manifests.cases() for document in manifests.render(overlay, *variants)}
        self.assertLessEqual(set(CUSTOM), kinds)

    def test_every_misspelt_field_is_caught(self):
        """Each field of each document in turn."""
        version = versions()[-1]
        documents = {manifests.name_of(document): document for variants in ((), ("certificates", "service-monitor", "worker-cache"),
                                                                             ("leader-worker-set",))
                     for document in manifests.render("cpu", *variants)}
        count = 0
        for name, document in documents.items():
            for path, key in mappings(document):
                if not path and key == "kind":
                    continue  # by which the schema is found
                with self.subTest(document=name, path=path, key=key):
                    self.assertIsNotNone(wrong(misspelt(document, path, key), version))
                    count += 1
        self.assertGreater(count, 500)

    def test_a_value_of_the_wrong_type_is_caught(self):
        [budget] = manifests.of_kind(manifests.render("cpu"), "PodDisruptionBudget")
        budget = copy.deepcopy(budget)
        budget["spec"]["maxUnavailable"] = ["one"]
        self.assertIsNotNone(wrong(budget, versions()[-1]))


if __name__ == "__main__":
    programs.main()
