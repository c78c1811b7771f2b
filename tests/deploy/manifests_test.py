#!/usr/bin/env python3
"""The manifests of deploy/kubernetes fit the programs and each other: flags, paths, ports, names, sizes, times.

usage: manifests_test.py [--nightly] [unittest arguments]
"""
import functools
import pathlib
import re
import sys
import unittest
import urllib.error
import urllib.request

import manifests
import programs
from manifests import bytes_of, command_line, name_of, of_kind, pod_of, render, templates
from programs import BIN, SOURCE, values

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
from serve_cli_test import Server  # pylint: disable=wrong-import-position
from serve_process import await_value  # pylint: disable=wrong-import-position
from workers import Worker  # pylint: disable=wrong-import-position

PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@functools.cache
def parsed(words):
    """What a program says to a command line that it shall only take apart: exit code and the two outputs."""
    done = programs.run(BIN / words[0], *words[1:], "--print-metrics")
    return done.returncode, done.stdout, done.stderr


def port_numbers(container):
    return {port["name"]: port["containerPort"] for port in container["ports"]}


def per_rendering(body):
    """A test of (self, documents), run for every rendering."""
    @functools.wraps(body)
    def test(self):
        for overlay, variants in manifests.cases():
            with self.subTest(overlay=overlay, variants=variants):
                body(self, render(overlay, *variants))
    return test


def per_pod(body):
    """A test of (self, documents, pod, container, words) for every pod of every rendering; words: its command line."""
    @functools.wraps(body)
    @per_rendering
    def test(self, documents):
        for owner, template in templates(documents):
            [container] = template["spec"]["containers"]
            with self.subTest(owner=owner, pod=container["name"]):
                body(self, documents, template["spec"], container, command_line(documents, container))
    return test


class Manifests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        manifests.require_kubectl()

    @per_pod
    def test_flags_exist_and_take_these_values(self, documents, pod, container, words):
        self.assertEqual(programs.check_arguments(words), [])
        code, out, error = parsed(tuple(words))
        self.assertEqual((code, error), (0, ""), words)
        self.assertIn("weft_ready" if container["name"] == "coordinator" else "weft_worker_ready", out)

    def test_a_bad_value_would_be_noticed(self):
        for command in (["weft", "serve", "-m", "x", "--parallel=many"], ["weft-worker", "--memory=24gigs"]):
            self.assertEqual(parsed(tuple(command))[0], 2, command)

    @per_pod
    def test_ports_are_those_of_the_flags(self, documents, pod, container, words):
        flag = {"worker": {"control": "--listen", "metrics": "--metrics-port"},
                "coordinator": {"api": "--port", "health": "--health-port"}}[container["name"]]
        ports = port_numbers(container)
        self.assertEqual(ports, {name: int(values(words, flag[name])[0].split(":")[-1]) for name in flag})
        for port in container["ports"]:
            self.assertEqual(port.get("hostPort", port["containerPort"]), port["containerPort"])
        for host in values(words, "--host") + values(words, "--metrics-host") + values(words, "--listen"):
            self.assertRegex(host, r"^0\.0\.0\.0(:|$)")
        for service in of_kind(documents, "Service"):
            if service["spec"]["selector"]["app.kubernetes.io/component"] == container["name"]:
                self.assertLessEqual({port["targetPort"] for port in service["spec"]["ports"]}, set(ports))

    @per_rendering
    def test_the_coordinator_asks_for_the_workers_by_the_name_of_their_service(self, documents):
        words = command_line(documents, pod_of(documents, "coordinator")[1])
        [name, port] = values(words, "--workers-dns")[0].split(":")
        [service] = [document for document in of_kind(documents, "Service") if document["metadata"]["name"] == name]
        self.assertEqual(service["spec"]["clusterIP"], "None")
        self.assertEqual(service["spec"]["selector"]["app.kubernetes.io/component"], "worker")
        self.assertIn((int(port), "control"), [(port["port"], port["targetPort"]) for port in service["spec"]["ports"]])
        for owner in of_kind(documents, "StatefulSet"):
            self.assertEqual(owner["spec"]["serviceName"], name)

    @per_rendering
    def test_selectors_find_their_pods(self, documents):
        labels = [template["metadata"]["labels"] for _, template in templates(documents)]
        for document in of_kind(documents, "Service", "PodDisruptionBudget", "NetworkPolicy", "StatefulSet", "Deployment"):
            spec = document["spec"]
            selector = spec.get("podSelector") or spec["selector"]
            selector = selector.get("matchLabels", selector)
            self.assertIn("app.kubernetes.io/component", selector, name_of(document))
            matched = [pod for pod in labels if selector.items() <= pod.items()]
            self.assertEqual(len(matched), 1, name_of(document))
        for document in documents:
            if document["kind"] != "Namespace":
                self.assertEqual(document["metadata"]["namespace"], "weft", name_of(document))

    @per_pod
    def test_every_volume_is_mounted_and_every_path_of_a_flag_is_on_one(self, documents, pod, container, words):
        claims = {template["metadata"]["name"] for owner in of_kind(documents, "StatefulSet")
                  for template in owner["spec"].get("volumeClaimTemplates", [])} if container["name"] == "worker" else set()
        # A LeaderWorkerSet has no such templates in the version that is supported here.
        volumes = {volume["name"] for volume in pod["volumes"]} | claims
        mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
        if not of_kind(documents, "LeaderWorkerSet"):
            self.assertEqual({mount["name"] for mount in mounts.values()}, volumes)
        self.assertEqual(len(mounts), len(container["volumeMounts"]))
        for word in words[1:]:
            flag, _, value = word.partition("=")
            if not value.startswith("/"):
                continue
            [mount] = [mount for path, mount in mounts.items() if value == path or value.startswith(path + "/")]
            self.assertEqual(bool(mount.get("readOnly")), flag != "--cache", word)
        for path in ("/tmp", "/dev/shm"):
            self.assertFalse(mounts[path].get("readOnly"))
        [shm] = [volume for volume in pod["volumes"] if volume["name"] == "shm"]
        self.assertEqual(shm["emptyDir"]["medium"], "Memory")

    @per_pod
    def test_secrets_are_those_of_the_flags(self, documents, pod, container, words):
        secrets = {volume["name"]: volume["secret"]["secretName"] for volume in pod["volumes"] if "secret" in volume}
        # One of the two: certificates, or an open door.
        self.assertEqual("tls" in secrets, values(words, "--tls") == ["/tls"])
        self.assertEqual("tls" in secrets, "--insecure" not in words)
        if "tls" in secrets:
            self.assertEqual(secrets["tls"], f"weft-{container['name']}-tls")
        for issued in of_kind(documents, "Certificate"):
            if issued["metadata"]["name"] == f"weft-{container['name']}":
                self.assertEqual(issued["spec"]["secretName"], secrets["tls"])
                self.assertEqual(issued["spec"]["uris"], [f"weft://{container['name']}"])

    @per_pod
    def test_probes_ask_what_the_programs_answer(self, documents, pod, container, words):
        port = {"worker": "metrics", "coordinator": "health"}[container["name"]]
        asked = {probe: container[probe]["httpGet"] for probe in PROBES}
        self.assertEqual(asked, {"startupProbe": {"path": "/livez", "port": port},
                                 "readinessProbe": {"path": "/readyz", "port": port},
                                 "livenessProbe": {"path": "/livez", "port": port}})
        startup = container["startupProbe"]
        self.assertGreaterEqual(startup["periodSeconds"] * startup["failureThreshold"],
                                1800 if container["name"] == "coordinator" else 300)

    @per_pod
    def test_there_is_time_to_drain(self, documents, pod, container, words):
        [drain] = values(words, "--drain-seconds")
        wait = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        self.assertGreater(pod["terminationGracePeriodSeconds"], float(drain) + wait)

    @per_pod
    def test_sizes_fit(self, documents, pod, container, words):
        limits = container["resources"]["limits"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        shm = bytes_of(volumes["shm"]["emptyDir"]["sizeLimit"])
        memory = bytes_of(limits["memory"])
        self.assertEqual(values(words, "--threads"), ["1"])  # from limits.cpu
        [threads] = [variable for variable in container["env"] if variable["name"] == "WEFT_THREADS"]
        self.assertEqual(threads["valueFrom"]["resourceFieldRef"], {"containerName": container["name"], "resource": "limits.cpu"})
        if container["name"] == "worker":
            self.assertLess(bytes_of(values(words, "--memory")[0]) + shm, memory)
            if "cache" in volumes:
                self.assertLess(bytes_of(values(words, "--cache-quota")[0]), bytes_of(volumes["cache"]["emptyDir"]["sizeLimit"]))
        else:
            self.assertLess(4 * shm, memory)

    @per_pod
    def test_pods_may_do_as_little_as_possible(self, documents, pod, container, words):
        context = pod["securityContext"]
        self.assertTrue(context["runAsNonRoot"] and context["runAsUser"] >= 10000)
        self.assertEqual(context["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual(container["securityContext"], {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                        "capabilities": {"drop": ["ALL"]}})
        self.assertIs(pod["automountServiceAccountToken"], False)
        [namespace] = of_kind(documents, "Namespace")
        open_to_node = bool(pod.get("hostNetwork")) or any("hostPath" in volume for volume in pod["volumes"])
        if open_to_node:
            self.assertEqual(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "privileged")

    @per_rendering
    def test_network_policies_let_in_who_has_to(self, documents):
        policies = {policy["metadata"]["name"]: policy["spec"] for policy in of_kind(documents, "NetworkPolicy")}
        container = pod_of(documents, "worker")[1]
        words = command_line(documents, container)
        between, monitoring = policies["weft-worker"]["ingress"]
        first, last = values(words, "--data-ports")[0].split("-")
        self.assertEqual(between["ports"], [{"port": "control"}, {"port": int(first), "endPort": int(last)}])
        self.assertEqual({tuple(sorted(peer)) for peer in between["from"]}, {("podSelector",)})
        self.assertEqual({peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in between["from"]},
                         {"worker", "coordinator"})
        self.assertEqual(monitoring["ports"], [{"port": "metrics"}])
        for component in ("worker", "coordinator"):
            names = set(port_numbers(pod_of(documents, component)[1]))
            used = {port["port"] for rule in policies[f"weft-{component}"]["ingress"] for port in rule.get("ports", [])
                    if isinstance(port["port"], str)}
            self.assertLessEqual(used, names)

    def test_monitors_scrape_ports_that_services_have(self):
        documents = render("cpu", "service-monitor")
        self.assertEqual(len(of_kind(documents, "ServiceMonitor")), 2)
        for component in ("worker", "coordinator"):
            template, container = pod_of(documents, component)
            self.assertEqual(values(command_line(documents, container), "--metrics-token-file"), ["/metrics-token/token"])
            self.assertIn("weft-metrics-token", [volume.get("secret", {}).get("secretName") for volume in template["spec"]["volumes"]])
        for monitor in of_kind(documents, "ServiceMonitor"):
            selector = monitor["spec"]["selector"]["matchLabels"]
            [service] = [service for service in of_kind(documents, "Service") if selector.items() <= service["metadata"]["labels"].items()]
            for endpoint in monitor["spec"]["endpoints"]:
                self.assertIn(endpoint["port"], [port["name"] for port in service["spec"]["ports"]])
                self.assertEqual(endpoint["path"], "/metrics")
                self.assertEqual(endpoint["authorization"]["credentials"], {"name": "weft-metrics-token", "key": "token"})

    def test_images_are_those_of_the_dockerfile(self):
        targets = set(re.findall(r"(?m)^# +docker build .* -t (\S+) \.$", (SOURCE / "deploy/docker/Dockerfile").read_text(encoding="utf-8")))
        used = {template["spec"]["containers"][0]["image"].split(":")[0] for overlay, variants in manifests.cases()
                for _, template in templates(render(overlay, *variants))}
        self.assertEqual(used, targets)

    def test_every_setting_is_used(self):
        for overlay in manifests.OVERLAYS:
            documents = render(overlay)
            [settings] = of_kind(documents, "ConfigMap")
            text = " ".join(word for _, template in templates(documents) for word in template["spec"]["containers"][0]["args"])
            unused = {name for name in settings["data"] if f"$({name})" not in text}
            self.assertLessEqual(unused, {"WEFT_CACHE_TOKENS", "WEFT_SPLIT_MODE"} if overlay == "dev" else set())


class Running(unittest.TestCase):
    """The command lines of the overlay dev, started here."""

    def probe(self, container, probe, port):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{container[probe]['httpGet']['path']}", timeout=10) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_probes(self):
        manifests.require_kubectl()
        documents = render("dev")
        serve = pod_of(documents, "coordinator")[1]
        container = pod_of(documents, "worker")[1]
        # Other ports than those of the manifest, which may be taken here.
        ours = ("--listen=", "--data-ports=", "--metrics-", "--cache", "--threads")
        words = [word for word in command_line(documents, container) if not word.startswith(ours)]
        with Worker("--metrics-port", "0", *words[1:]) as worker:
            port = await_value(lambda: re.search(r"metrics on http://127.0.0.1:(\d+)/", worker.text()), 20).group(1)
            self.assertEqual([self.probe(container, probe, port) for probe in PROBES], [200, 200, 200])
            ours = ("--model=", "--host=", "--port=", "--health-port=", "--threads=", "--workers-dns=")
            words = [word for word in command_line(documents, serve) if not word.startswith(ours)]
            server = Server(*words[2:], "--workers", worker.address, "--health-port", "0")
            try:
                self.assertEqual([self.probe(serve, probe, server.health_port) for probe in PROBES], [200, 200, 200])
            finally:
                self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    programs.main()
