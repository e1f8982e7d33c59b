"""The image, really built and started: on a Debian with buildah, debootstrap and root.

No registry of images is asked. The base is a Debian of this machine's package sources with its own Python.
"""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.daemons import eventually
from support.deploy_tools import ROOT
from support.redis_server import free_port

MISSING = [
    *(name for name in ("buildah", "debootstrap", "apt-get") if shutil.which(name) is None),
    *(["root"] if os.geteuid() != 0 else []),
]
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}"),
]

BASE = "localhost/base"
IMAGE = "localhost/tsuzuki"
MACHINE_SETTINGS = (Path("/etc/pip.conf"), Path("/etc/ssl/certs"))
"""By which pip finds its registry on this machine."""

STOP_SECONDS = 60


class Builder:
    """buildah with a storage of its own."""

    def __init__(self, folder: Path) -> None:
        self._command = ["buildah", "--storage-driver=vfs", f"--root={folder}/storage"]
        self._command += [f"--runroot={folder}/runs"]

    def start(self, *words: str, **options: Any) -> "subprocess.Popen[str]":
        environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        return subprocess.Popen([*self._command, *words], env=environ, text=True, **options)

    def do(self, *words: str) -> str:
        process = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stdout + stderr
        return stdout.strip()


def make_base(builder: Builder, folder: Path) -> None:
    """An image of the smallest Debian that has a `python`."""
    source = "$(REPO_URI) $(RELEASE)"
    command = ["apt-get", "indextargets", "--format", source, "Created-By: Packages"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    mirror, release = found.stdout.splitlines()[0].split()
    packages = "--include=python3,python3-venv,ca-certificates"
    words = ["debootstrap", "--variant=minbase", packages, release, str(folder), mirror]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    (folder / "usr" / "bin" / "python").symlink_to("python3")
    container = builder.do("from", "scratch")
    builder.do("add", container, str(folder), "/")
    builder.do("commit", "--rm", container, BASE)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    """With the built image in it."""
    folder = tmp_path_factory.mktemp("image")
    builder = Builder(folder)
    make_base(builder, folder / "base")
    volumes = [f"--volume={path}:{path}:ro" for path in MACHINE_SETTINGS if path.exists()]
    options = ["--pull-never", "--format=docker", f"--build-arg=BASE={BASE}", *volumes]
    builder.do("build", *options, f"--file={ROOT}/deploy/Dockerfile", f"--tag={IMAGE}", str(ROOT))
    yield builder
    builder.do("rm", "--all")
    shutil.rmtree(folder)


@pytest.fixture
def container(builder: Builder) -> str:
    return builder.do("from", "--pull-never", IMAGE)


def settings(builder: Builder) -> dict[str, Any]:
    found = json.loads(builder.do("inspect", "--type=image", IMAGE))
    config: dict[str, Any] = found["Docker"]["config"]
    return config


def test_the_image_works_as_its_user_and_writes_only_to_its_workspace(
    builder: Builder, container: str
) -> None:
    assert settings(builder)["User"] == "10001"
    builder.do("run", container, "--", "tsuzuki", "init")
    builder.do("run", container, "--", "tsuzuki", "job", "run", "hello")
    ended = builder.do("run", container, "--", "tsuzuki", "run-due", "-o", "plain")
    assert "SUCCEEDED" in ended
    script = "id -u; touch /opt/file 2>/dev/null || echo refused"
    assert builder.do("run", container, "--", "sh", "-c", script).split() == ["10001", "refused"]


def test_its_server_is_healthy_and_ends_by_sigterm(builder: Builder, container: str) -> None:
    config = settings(builder)
    builder.do("run", container, "--", "tsuzuki", "init")
    address = f"127.0.0.1:{free_port()}"
    health = ["run", f"--env=HEALTH_URL=http://{address}/livez", container, "--"]
    health += config["Healthcheck"]["Test"][1:]
    command = [*config["Entrypoint"], *config["Cmd"], "--listen", address]
    with builder.start("run", container, "--", *command) as process:
        try:
            eventually(
                lambda: builder.start(*health, stderr=subprocess.DEVNULL).wait() == 0,
                what="the health check",
            )
            inner = psutil.Process(process.pid).children(recursive=True)
            (init,) = [one for one in inner if one.name() == config["Entrypoint"][0]]
            init.send_signal(signal.SIGTERM)
            assert process.wait(STOP_SECONDS) == 0
        finally:
            process.kill()
