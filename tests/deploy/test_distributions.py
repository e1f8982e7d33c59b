"""What `make dist` builds: the wheel has what the program reads, nothing else, and starts the demo without a clone."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import requests

import tsuzuki
from support.archives import extract
from support.deploy_tools import INSTALL_SECONDS, ROOT, UV

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
NOT_PACKAGED = {"src/tsuzuki/cli/ruff.toml"}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build(ROOT, folder)
    return folder


def build(source: Path, folder: Path) -> None:
    """What `make dist` does, into another folder."""
    hatchling = Path(sys.executable).with_name("hatchling")
    command = [hatchling, "build", "--directory", folder]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


def wheel_in(folder: Path) -> Path:
    return folder / f"tsuzuki-{VERSION}-py3-none-any.whl"


def files_in(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def test_the_wheel_has_every_file_of_the_package_and_no_other(dist: Path) -> None:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "src/tsuzuki"]
    ours = set(subprocess.check_output(listed, cwd=ROOT, text=True).split()) - NOT_PACKAGED
    packed = {name for name in files_in(wheel_in(dist)) if ".dist-info/" not in name}
    assert {f"src/{name}" for name in packed} == {name for name in ours if (ROOT / name).exists()}


def test_the_source_distribution_builds_the_same_wheel(dist: Path, tmp_path: Path) -> None:
    with tarfile.open(dist / f"tsuzuki-{VERSION}.tar.gz") as packed:
        extract(packed, tmp_path)
    source = tmp_path / f"tsuzuki-{VERSION}"
    assert not (source / "tests").exists()
    build(source, tmp_path / "again")
    assert files_in(wheel_in(tmp_path / "again")) == files_in(wheel_in(dist))


def test_the_version_is_the_same_everywhere() -> None:
    assert tsuzuki.__version__ == VERSION
    for document in ("docs/quickstart.md", "CHANGELOG.md"):
        assert VERSION in (ROOT / document).read_text(encoding="utf-8")


@pytest.mark.full
@pytest.mark.timeout(INSTALL_SECONDS)
def test_uvx_starts_the_demo_from_the_wheel_alone(dist: Path, tmp_path: Path) -> None:
    """Without git. The cache of the machine stands for most of the registry."""
    programs = tmp_path / "bin"
    programs.mkdir()
    python = Path(sys.base_prefix) / "bin" / "python3"
    tools = [str(shutil.which(name)) for name in ("sh", "sleep", "dirname", "realpath")]
    for program in map(Path, (UV, python, *tools)):
        (programs / program.name).symlink_to(program)
    kept = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
    cache = subprocess.check_output([UV, "cache", "dir"], text=True).strip()
    requirement = f"tsuzuki[all] @ file://{wheel_in(dist)}"
    with subprocess.Popen(
        ["uv", "tool", "run", "--from", requirement, "tsuzuki", "demo", "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        env={**kept, "PATH": str(programs), "HOME": str(tmp_path), "UV_CACHE_DIR": cache},
        executable=UV,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        found = (re.search(r"http://\S+", line) for line in process.stdout)
        url = next(address[0] for address in found if address)
        try:
            page = requests.get(url, timeout=30)
            assert (page.status_code, "<h1" in page.text) == (200, True)
            jobs = requests.get(f"{url}/api/v1/jobs", timeout=30).json()["items"]
            assert {"new-books", "news-bot", "code-index"} < {job["name"] for job in jobs}
        finally:
            os.killpg(process.pid, signal.SIGINT)
