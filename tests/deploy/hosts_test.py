#!/usr/bin/env python3
"""Units of systemd and the compose file: their command lines fit the programs, their times and sizes each other.

usage: hosts_test.py [--nightly] [unittest arguments]
"""
import pathlib
import re
import shutil
import tempfile
import unittest

import manifests
import programs
from manifests import yaml
from programs import DEPLOY, SOURCE, check_arguments, run, values

SYSTEMD = DEPLOY / "systemd"
COMPOSE = DEPLOY / "compose"
# The largest exposure by `systemd-analyze security`, of 10.
MOST_EXPOSED = 2.0
# Keys of a compose file that are used here; another one is misspelt, or has to be looked up and listed.
SERVICE_KEYS = {"read_only", "cap_drop", "security_opt", "restart", "image", "build", "command", "cpus", "mem_limit", "shm_size",
                "stop_grace_period", "networks", "volumes", "tmpfs", "hostname", "depends_on", "ports", "user"}


def unit(name):
    """{key: [values]} of a unit, all sections together."""
    found = {}
    for line in (SYSTEMD / name).read_text(encoding="utf-8").splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def command_of(name):
    """The words that a unit starts, with the flags of its settings file."""
    found = unit(name)
    [settings] = found["EnvironmentFile"]
    text = (SYSTEMD / pathlib.PurePath(settings).name).read_text(encoding="utf-8")
    variables = dict(re.findall(r"(?m)^(\w+)=(.*)$", text))
    [start] = found["ExecStart"]
    return re.sub(r"\$(\w+)", lambda match: variables[match.group(1)], start).split()


class Systemd(unittest.TestCase):
    units = ("weft-worker.service", "weft-serve.service")

    def test_command_lines(self):
        for name in self.units:
            words = command_of(name)
            self.assertEqual(check_arguments(words), [], name)
            [drain] = values(words, "--drain-seconds")
            self.assertGreater(int(unit(name)["TimeoutStopSec"][0]), int(drain) + 10)
            self.assertTrue(values(words, "--tls"), name)

    def test_only_the_cache_can_be_written(self):
        found = unit("weft-worker.service")
        self.assertEqual(values(command_of("weft-worker.service"), "--cache"), ["/var/cache/" + found["CacheDirectory"][0]])
        for name in self.units:
            self.assertEqual(unit(name)["ProtectSystem"], ["strict"])
            self.assertNotIn("ReadWritePaths", unit(name))
            self.assertIn(f"u {unit(name)['User'][0]} ", (SYSTEMD / "weft.sysusers").read_text(encoding="utf-8"))

    def test_files_that_the_units_name_are_here(self):
        for name in self.units:
            text = (SYSTEMD / name).read_text(encoding="utf-8")
            for file in re.findall(r"[\w-]+\.(?:env|service|sysusers)", text):
                self.assertTrue((SYSTEMD / file).exists(), f"{name} names {file}")

    def test_systemd_takes_them(self):
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            programs.missing("DeployHosts.Systemd", "there is no systemd-analyze on this machine", strict=False)
        with tempfile.TemporaryDirectory() as folder:
            for name in self.units:
                copy = pathlib.Path(folder, name)
                text = (SYSTEMD / name).read_text(encoding="utf-8")
                copy.write_text(text.replace("/usr/bin/", f"{programs.BIN}/"), encoding="utf-8")
                done = run(analyze, "verify", "--man=no", copy)
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)
                exposure = run(analyze, "security", "--offline=yes", "--no-pager", copy).stdout
                level = float(re.search(r"Overall exposure level for \S+: ([\d.]+)", exposure).group(1))
                self.assertLessEqual(level, MOST_EXPOSED, exposure)
                # A misspelt key is only warned of: that the check above sees it.
                copy.write_text(text.replace("ProtectHome=", "ProtectHomes="), encoding="utf-8")
                self.assertIn("ProtectHomes", run(analyze, "verify", "--man=no", copy).stderr)


class Compose(unittest.TestCase):
    def setUp(self):
        self.files = [yaml.safe_load((COMPOSE / name).read_text(encoding="utf-8")) for name in ("compose.yaml", "tls.yaml")]
        self.services = self.files[0]["services"]

    def test_command_lines(self):
        for file in self.files:
            for name, service in file["services"].items():
                words = ["weft" if name == "weft" else "weft-worker"]
                words += [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", word) for word in service["command"]]
                self.assertEqual(check_arguments(words), [], name)
                grace = int(self.services[name]["stop_grace_period"].removesuffix("s"))
                self.assertGreater(grace, int(values(words, "--drain-seconds")[0]))
                if name == "weft":
                    self.assertEqual({worker.split(":")[0] for worker in values(words, "--workers")[0].split(",")},
                                     set(self.services) - {"weft"})
                    self.assertTrue((SOURCE / values(words, "--model")[0].removeprefix("/")).exists())
                else:
                    self.assertLessEqual(float(values(words, "--threads")[0]), self.services[name]["cpus"])
                    self.assertLess(manifests.bytes_of(values(words, "--memory")[0]) + (256 << 20), 3 << 30)

    def test_images_have_targets(self):
        dockerfile = (DEPLOY / "docker/Dockerfile").read_text(encoding="utf-8")
        for name, service in self.services.items():
            build = service["build"]
            self.assertTrue((COMPOSE / build["context"] / build["dockerfile"]).samefile(DEPLOY / "docker/Dockerfile"))
            self.assertIn(f"docker build -f deploy/docker/Dockerfile --target {build['target']} ", re.sub(" +", " ", dockerfile))
            # `service_healthy` asks the image's own check, which the command must leave where it is.
            check = re.search(rf"(?s)AS {build['target']}\n.*?HEALTHCHECK.*?127\.0\.0\.1:(\d+)/", dockerfile).group(1)
            port = [value.partition("=")[2] for value in service["command"] if value.startswith(("--metrics-port=", "--port="))]
            self.assertEqual(int(check), int(port[0]) + (1 if name == "weft" else 0))

    def test_keys_and_names(self):
        for file in self.files:
            for name, service in file["services"].items():
                self.assertEqual(set(service) - SERVICE_KEYS, set(), name)
                self.assertIn(name, self.services)
        for name, service in self.services.items():
            self.assertTrue(service["read_only"] and service["cap_drop"] == ["ALL"], name)
            self.assertLessEqual(set(service["networks"]), set(self.files[0]["networks"]))
            if name != "weft":
                self.assertEqual((service["networks"], service["hostname"]), (["fleet"], name))
        self.assertIs(self.files[0]["networks"]["fleet"]["internal"], True)
        self.assertTrue(all(port.startswith("127.0.0.1:") for port in self.services["weft"]["ports"]))


if __name__ == "__main__":
    programs.main()
