"""The kustomizations of deploy/kubernetes, rendered, and what tests look for in them."""
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile

import programs
from programs import DEPLOY, VENV, run

try:
    import yaml
except ImportError:
    if VENV.exists() and pathlib.Path(sys.prefix) != VENV:
        os.execv(VENV / "bin/python", [str(VENV / "bin/python"), *sys.argv])
    raise

KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = sorted(folder.name for folder in (KUBERNETES / "overlays").iterdir())
VARIANTS = sorted(folder.name for folder in (KUBERNETES / "variants").iterdir())
# Variants that exclude each other: the volume of models comes from one place.
TOGETHER = [name for name in VARIANTS if name not in ("model-host-path", "leader-worker-set")] + ["leader-worker-set"]
POD_OWNERS = {"StatefulSet": ("spec", "template"), "Deployment": ("spec", "template"),
              "LeaderWorkerSet": ("spec", "leaderWorkerTemplate")}


@functools.cache
def kubectl():
    """A kubectl whose kustomize knows components, or None."""
    for path in (shutil.which("kubectl"), VENV / "bin/kubectl"):
        if path and os.path.exists(path):
            found = re.search(r"Kustomize Version: v(\d+)", run(path, "version", "--client").stdout)
            if found and int(found.group(1)) >= 5:
                return str(path)
    return None


def require_kubectl():
    if kubectl() is None:
        programs.missing("DeployManifests.Kubectl", "there is no kubectl with kustomize 5 on this machine")


@functools.cache
def _copy():
    """The folder of manifests, copied, so that kustomizations of tests can lie beside them."""
    folder = tempfile.TemporaryDirectory(prefix="weft-manifests-")
    shutil.copytree(KUBERNETES, folder.name + "/kubernetes")
    return folder


@functools.cache
def render(overlay, *variants):
    """The documents of an overlay with variants over it."""
    test = pathlib.Path(_copy().name, "kubernetes", "-".join(("test", overlay, *variants)))
    test.mkdir()
    (test / "kustomization.yaml").write_text(yaml.safe_dump({
        "resources": [f"../overlays/{overlay}"], "components": [f"../variants/{name}" for name in variants]}), encoding="utf-8")
    done = run(kubectl(), "kustomize", test)
    assert done.returncode == 0, f"{overlay} {variants}: {done.stderr}"
    return list(yaml.load_all(done.stdout, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def cases():
    """All overlays and variants that are tested: (overlay, variants)."""
    # The overlay dev has its volume of models from a folder already.
    singles = [(overlay, (name,)) for overlay in OVERLAYS for name in VARIANTS
               if not (overlay == "dev" and name in ("model-host-path", "model-read-write", "service-monitor", "certificates"))]
    return [(overlay, ()) for overlay in OVERLAYS] + singles + [("cpu", tuple(TOGETHER)), ("cuda", tuple(TOGETHER))]


def of_kind(documents, *kinds):
    return [document for document in documents if document["kind"] in kinds]


def name_of(document):
    return f"{document['kind']} {document['metadata']['name']}"


def templates(documents):
    """(name of the owner, template) of all pods."""
    found = []
    for owner in of_kind(documents, *POD_OWNERS):
        part = owner
        for key in POD_OWNERS[owner["kind"]]:
            part = part[key]
        parts = [part["leaderTemplate"], part["workerTemplate"]] if owner["kind"] == "LeaderWorkerSet" else [part]
        found += [(name_of(owner), template) for template in parts]
    assert len(found) == 2, "a fleet has one kind of worker and one coordinator"
    return found


def component_of(template):
    return template["metadata"]["labels"]["app.kubernetes.io/component"]


def pod_of(documents, component):
    """(template, container) of `worker` or `coordinator`."""
    [template] = [template for _, template in templates(documents) if component_of(template) == component]
    [container] = template["spec"]["containers"]
    return template, container


def command_line(documents, container):
    """The words that a container runs, variables replaced as the cluster would; resources count as 1."""
    variables = {}
    maps = {document["metadata"]["name"]: document["data"] for document in of_kind(documents, "ConfigMap")}
    for source in container.get("envFrom", []):
        variables.update(maps[source["configMapRef"]["name"]])
    for variable in container.get("env", []):
        variables[variable["name"]] = variable.get("value", "1")
    program = {"worker": "weft-worker", "coordinator": "weft"}[container["name"]]
    return [program] + [re.sub(r"\$\((\w+)\)", lambda found: variables[found.group(1)], word) for word in container["args"]]


def bytes_of(quantity):
    """Of Kubernetes, or of a flag of ours: "50Gi", "24gb" (powers of 1024)."""
    number, unit = re.fullmatch(r"(\d+)(|[KMGT]i|[kmgt]b)", quantity).groups()
    return int(number) << (10 * " kmgt".index(unit[:1].lower() or " "))


