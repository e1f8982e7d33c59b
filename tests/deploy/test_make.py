"""`make run` installs what running needs, `make setup` everything; neither is stopped by what the other one left."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests

from support.deploy_tools import INSTALL_SECONDS, ROOT

LOCKS = ROOT / "requirements"
FILES = ("Makefile", "pyproject.toml", "README.md", "LICENSE")
MEBIBYTE = 1024 * 1024
OF_MAKE = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}


def pinned(*packages: str) -> str:
    """The lines of the lock for these packages."""
    lock = (LOCKS / "dev.txt").read_text(encoding="utf-8")
    found = re.findall(r"^(\S+)(==.*\n(?:    .*\n)*)", lock, re.MULTILINE)
    return "".join(name + rest for name, rest in found if name in packages)


class Checkout:
    """The Makefile in a folder of its own, with locks of few packages and the uv of this checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / ".venv" / "bin" / "python"
        for name in FILES:
            shutil.copy2(ROOT / name, folder)
        (folder / "requirements").mkdir()
        for name in ("uv.txt", "build.txt"):
            shutil.copy2(LOCKS / name, folder / "requirements")
        (folder / ".tools").symlink_to(ROOT / ".tools")
        self.lock("runtime", pinned("click"))
        self.lock("dev", pinned("click", "iniconfig") + (LOCKS / "build.txt").read_text())
        (folder / "src" / "tsuzuki").mkdir(parents=True)
        (folder / "src" / "tsuzuki" / "__init__.py").touch()

    def lock(self, name: str, text: str) -> None:
        (self.folder / "requirements" / f"{name}.txt").write_text(text, encoding="utf-8")

    def make(self, target: str) -> str:
        """Its output. The variables of a `make` that runs the tests would add lines to it."""
        command = ["make", target, f"PYTHON={sys.executable}"]
        env = {name: value for name, value in os.environ.items() if name not in OF_MAKE}
        return subprocess.run(
            command, cwd=self.folder, check=True, capture_output=True, text=True, env=env
        ).stdout

    def can_import(self, module: str) -> bool:
        command = [self.python, "-c", f"import {module}"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, check=False)
        return done.returncode == 0


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_running_installs_no_tools_for_developing_and_tells_each_step(checkout: Checkout) -> None:
    told = checkout.make("runtime").splitlines()
    assert [line.split()[0] for line in told] == ["Installing", "Linking"]
    assert checkout.can_import("click, tsuzuki")
    assert not checkout.can_import("iniconfig")


def test_nothing_is_installed_twice(checkout: Checkout) -> None:
    checkout.make("runtime")
    assert "Installing" not in checkout.make("runtime")
    checkout.make("setup")
    assert "Installing" not in checkout.make("setup")


def test_an_environment_for_running_becomes_one_for_developing_and_stays_one(
    checkout: Checkout,
) -> None:
    checkout.make("runtime")
    demo_uses_this = checkout.python.lstat().st_ino
    checkout.make("setup")
    checkout.make("runtime")
    assert checkout.can_import("click, iniconfig, tsuzuki")
    assert checkout.python.lstat().st_ino == demo_uses_this


def test_what_a_changed_lock_no_longer_names_is_removed(checkout: Checkout) -> None:
    checkout.lock("runtime", pinned("click", "iniconfig"))
    checkout.make("runtime")
    assert checkout.can_import("iniconfig")
    checkout.lock("runtime", pinned("click"))
    checkout.make("runtime")
    assert not checkout.can_import("iniconfig")
    assert checkout.can_import("click, tsuzuki")


@pytest.mark.parametrize("target", ["runtime", "setup"])
def test_an_installation_that_was_interrupted_begins_anew(checkout: Checkout, target: str) -> None:
    checkout.make("runtime")
    (checkout.folder / ".venv" / ".runtime").unlink()
    (half,) = checkout.folder.glob(".venv/lib/python*/site-packages/click/core.py")
    half.unlink()
    checkout.make(target)
    assert checkout.can_import("click, tsuzuki")


def test_a_lock_that_cannot_be_installed_leaves_no_stamp(checkout: Checkout) -> None:
    checkout.make("runtime")
    checkout.lock("runtime", pinned("click").replace("sha256:", "sha256:0"))
    with pytest.raises(subprocess.CalledProcessError):
        checkout.make("runtime")
    checkout.lock("runtime", pinned("click"))
    checkout.make("runtime")
    assert checkout.can_import("click, tsuzuki")


def test_the_lock_for_developing_has_what_running_needs_at_the_same_versions() -> None:
    runtime, dev = (
        set(re.findall(r"^\S+==\S+", (LOCKS / f"{name}.txt").read_text(), re.MULTILINE))
        for name in ("runtime", "dev")
    )
    assert runtime < dev


@pytest.mark.full
@pytest.mark.timeout(INSTALL_SECONDS)
def test_a_fresh_clone_shows_the_page_of_the_demo(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    with subprocess.Popen(
        ["make", "run", f"PYTHON={sys.executable}"],
        cwd=clone,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        url = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        try:
            assert requests.get(url, timeout=30).ok
        finally:
            os.killpg(process.pid, signal.SIGINT)
    installed = {path.name for path in clone.glob(".venv/lib/python*/site-packages/*")}
    assert not installed & {"pytest", "playwright", "mypy", "clangd"}
    files = [file for name in (".venv", ".tools") for file in (clone / name).rglob("*")]
    assert sum(file.lstat().st_size for file in files) <= 350 * MEBIBYTE
