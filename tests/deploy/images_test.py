#!/usr/bin/env python3
"""Container images without a container engine: what their files are, and that the programs run in a root that holds nothing
else, read-only, as the images' user.

usage: images_test.py [--nightly] [unittest arguments]
"""
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "integration"))
import namespaces  # pylint: disable=wrong-import-position
import programs
from programs import BIN, DEPLOY, SOURCE, run

MODEL = SOURCE / "models" / "shakespeare-q8_0.gguf"
IMAGES = ("coordinator", "worker", "worker-cuda")
LARGEST_BYTES = 64 << 20
STAGE = tempfile.TemporaryDirectory(prefix="weft-images-")
# Mounts what a container has and runs the rest as the image's user.
IN_ROOT = """
set -e
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/var/cache/weft"
chown "$user" "$root/tmp" "$root/var/cache/weft"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --bind /dev "$root/dev"
mount -t tmpfs -o size=64m tmpfs "$root/dev/shm"
exec chroot --userspec="$user" "$root" "$@"
"""


def read_dockerfile():
    """{target: {instruction: text}} of the last stages; continued lines joined, the later instruction wins."""
    text = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    targets, current = {}, None
    for line in text.splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            current = targets.setdefault(rest.split()[-1], {"base": rest.split()[0]})
        elif current is not None and word.isupper():
            current[word] = rest.strip()
    return targets


DOCKERFILE = read_dockerfile()


def listed(text):
    """A JSON array of an instruction, whatever stands before it."""
    return json.loads(text[text.index("["):])


def command_of(image):
    return listed(DOCKERFILE[image]["ENTRYPOINT"]) + listed(DOCKERFILE[image]["CMD"])


def contents(image):
    """{path: bytes} by list_contents.sh."""
    done = run(DEPLOY / "docker" / "list_contents.sh", image, BIN)
    assert done.returncode == 0, done.stderr
    rows = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert rows.pop()[1] == f"in {len(rows)} files", done.stdout
    return {path: int(size) for size, path in rows}


def may_unshare():
    return os.geteuid() == 0 and run("unshare", "--mount", "--pid", "--fork", "true").returncode == 0


@functools.cache
def staged(image):
    """The folder that stage.sh lays out; it stays until the tests end."""
    path = STAGE.name + "/" + image
    arguments = ["--onto-base"] if image == "worker-cuda" else []
    done = run(DEPLOY / "docker" / "stage.sh", *arguments, BIN, path, "weft" if image == "coordinator" else "weft-worker")
    assert done.returncode == 0, done.stderr
    return path


class Root:
    """The files of an image, to run programs in."""

    def __init__(self, image):
        self.image, self.folder = image, tempfile.mkdtemp(prefix="weft-image-")
        self.path = self.folder + "/root"
        shutil.copytree(staged(image), self.path, symlinks=True)
        self.environment = dict(re.findall(r"(\w+)=(\S+)", DOCKERFILE[image]["ENV"]))
        if image == "worker-cuda":
            self._lay_base()

    def _lay_base(self):
        """What the image takes from its base: glibc and libstdc++ here stand for those there."""
        with Root("worker") as whole:
            for name in ("lib64", "usr/lib"):
                for folder, _, files in os.walk(f"{whole.path}/{name}"):
                    for file in files:
                        if re.match(r"(ld-linux.*|lib(c|m|gcc_s|stdc\+\+))\.so", file):
                            target = folder.replace(whole.path, self.path)
                            os.makedirs(target, exist_ok=True)
                            shutil.copy2(f"{folder}/{file}", target, follow_symlinks=False)

    def start(self, *command, prefix=(), **options):
        user = DOCKERFILE[self.image]["USER"]
        return subprocess.Popen([*prefix, "unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                                 "bash", "-c", IN_ROOT, "root", self.path, user, *command],
                                env={"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", **self.environment}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def run(self, *command, **options):
        """Exit code and the two outputs."""
        with self.start(*command, **options) as process:
            out, error = process.communicate(timeout=120)
            return process.returncode, out, error

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)


def end(process):
    """Ends the program that Root.start started and waits for it; its exit code."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
    for child in children:
        os.kill(int(child), signal.SIGTERM)
    try:
        return process.wait(60)
    finally:
        for child in children if process.poll() is None else ():
            os.kill(int(child), signal.SIGKILL)


def mount_certificates(folder, root):
    """Puts what `weft certs` made where --tls looks for it, owned as a Secret is that is mounted for the pod's group."""
    group = int(DOCKERFILE[root.image]["USER"].split(":")[1])
    for path in pathlib.Path(folder).iterdir():
        target = shutil.copy2(path, root.path + "/tls/")
        os.chown(target, 0, group)
        os.chmod(target, 0o440)


class Contents(unittest.TestCase):
    def test_an_image_holds_its_program_and_no_shell(self):
        for image in IMAGES:
            with self.subTest(image=image):
                files = contents(image)
                programs_there = {path for path in files if re.match(r"/(usr/)?s?bin/", path)}
                self.assertEqual(programs_there, {listed(DOCKERFILE[image]["ENTRYPOINT"])[0],
                                                  listed(DOCKERFILE[image]["HEALTHCHECK"])[0]})
                self.assertLess(sum(files.values()), LARGEST_BYTES)
                self.assertGreater(sum("/libucp.so" in path for path in files), 0)
                self.assertEqual([path for path in files if not re.match(r"/(usr/bin|usr/lib|lib64|etc)/", path)], [])

    def test_only_the_owner_may_write(self):
        for image in IMAGES:
            with self.subTest(image=image), Root(image) as root:
                done = run("find", root.path, "!", "-type", "l", "-perm", "/022", "!", "-path", "*/tmp")
                self.assertEqual(done.stdout, "")

    def test_a_library_is_there_once(self):
        """Two files of one library would be loaded twice."""
        with Root("worker") as root:
            sums = run("bash", "-c", f"find {root.path}/usr/lib -type f -name '*.so*' ! -name 'ld-linux*' -exec sha256sum {{}} +").stdout
            digests = [line.split()[0] for line in sums.splitlines()]
            self.assertGreater(len(digests), 50)
            self.assertEqual(len(digests), len(set(digests)), sums)


class Dockerfile(unittest.TestCase):
    def test_users_are_numbers_and_not_root(self):
        for image in IMAGES:
            self.assertRegex(DOCKERFILE[image]["USER"], r"^[1-9]\d+:[1-9]\d+$", image)

    def test_command_lines_have_flags_that_exist(self):
        for image in IMAGES:
            self.assertEqual(programs.check_arguments(command_of(image)), [], image)

    def test_health_checks_ask_the_port_that_the_command_opens(self):
        for image in ("worker", "worker-cuda"):
            ports = programs.values(command_of(image), "--metrics-port")
            self.assertIn(f":{ports[0]}/livez", listed(DOCKERFILE[image]["HEALTHCHECK"])[-1])
            control = programs.values(command_of(image), "--listen")[0].split(":")[-1]
            exposed = DOCKERFILE[image]["EXPOSE"].split()
            self.assertEqual(exposed, [control, *programs.values(command_of(image), "--data-ports"), ports[0]])
        api, health = DOCKERFILE["coordinator"]["EXPOSE"].split()
        self.assertEqual(int(api), int(re.search(r"--port INT=(\d+)", programs.says("weft", "serve", "--help")).group(1)))
        self.assertEqual(int(health), int(api) + 1)  # --health-port: the next one
        self.assertIn(f":{health}/livez", listed(DOCKERFILE["coordinator"]["HEALTHCHECK"])[-1])

    def test_the_build_context_is_enough_to_configure(self):
        ignore = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            for name in re.findall(r"(?m)^!(\S+)$", ignore):
                (shutil.copytree if (SOURCE / name).is_dir() else shutil.copy2)(SOURCE / name, f"{folder}/{name}")
            done = run("cmake", "--preset", "release", "-DWEFT_TESTS=OFF", cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            for script in ("stage.sh", "../install_packages.sh"):
                self.assertTrue(os.access(f"{folder}/deploy/docker/{script}", os.X_OK), script)


class Running(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not may_unshare():
            programs.missing("DeployImages.Running", "making mount namespaces is not permitted here")

    def test_help(self):
        for image in IMAGES:
            with self.subTest(image=image), Root(image) as root:
                code, out, error = root.run(listed(DOCKERFILE[image]["ENTRYPOINT"])[0], "--help")
                self.assertEqual((code, error), (0, ""))
                self.assertIn("Usage: weft", out)

    def test_the_root_is_read_only_and_the_user_is_none_of_the_machine(self):
        with Root("worker") as root:
            code, _, error = root.run("/usr/bin/weft-worker", "--cache", "/models/cache", "--listen", "127.0.0.1:0")
            self.assertEqual(code, 1, error)
            self.assertIn("Read-only file system", error)

    def test_a_model_runs(self):
        expected = programs.says("weft", "run", "-m", MODEL, "-p", "ROMEO:", "-n", "16", "--temp", "0")
        with Root("coordinator") as root:
            shutil.copy2(MODEL, root.path + "/models/model.gguf")
            code, out, error = root.run("/usr/bin/weft", "run", "-m", "/models/model.gguf", "-p", "ROMEO:", "-n", "16", "--temp", "0")
            self.assertEqual((code, out), (0, expected), error)

    def await_health(self, root, worker, prefix):
        """The image's own health check says yes."""
        check, deadline = listed(DOCKERFILE[root.image]["HEALTHCHECK"]), time.monotonic() + 60
        while True:
            code, _, error = root.run(*check, prefix=prefix)
            if code == 0:
                return
            self.assertIsNone(worker.poll(), "the worker ended")
            self.assertLess(time.monotonic(), deadline, error)

    def test_two_hosts(self):
        """Each in a network of its own, started as the image starts it; UCX finds its transports in the image."""
        expected = programs.says("weft", "run", "-m", MODEL, "-p", "ROMEO:", "-n", "16", "--temp", "0")
        try:
            machines = namespaces.Machines(2)
        except namespaces.NotPermitted as error:
            programs.missing("DeployImages.TwoHosts", f"making network namespaces is not permitted here: {error}")
        secure = ["--tls", "/tls"]
        certificates = tempfile.TemporaryDirectory()
        programs.says("weft", "certs", "init", certificates.name)
        programs.says("weft", "certs", "worker", "worker", certificates.name, "--host", machines.addresses[1])
        with machines, certificates, Root("coordinator") as coordinator:
            mount_certificates(certificates.name + "/coordinator", coordinator)
            shutil.copy2(MODEL, coordinator.path + "/models/model.gguf")
            for image in ("worker", "worker-cuda"):
                with self.subTest(image=image), Root(image) as root:
                    mount_certificates(certificates.name + "/worker", root)
                    command = [*command_of(image), *secure, "--cache", "/var/cache/weft", "--transport", "ucx"]
                    with root.start(*command, prefix=machines.prefix(1)) as worker:
                        try:
                            self.await_health(root, worker, machines.prefix(1))
                            code, out, error = coordinator.run(
                                "/usr/bin/weft", "run", "-m", "/models/model.gguf", "-p", "ROMEO:", "-n", "16", "--temp", "0",
                                "--workers", machines.addresses[1], "--transport", "ucx", *secure, prefix=machines.prefix(0))
                            self.assertEqual((code, out), (0, expected), error)
                        finally:
                            self.assertEqual(end(worker), 0)


if __name__ == "__main__":
    programs.main()
