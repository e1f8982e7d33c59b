"""Verification of code indexes: files and hashes that do not agree are named, in both directions."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from support.verifying import faults, verified
from tsuzuki.collectors.codeindex import verify as verify_module
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, index_path
from tsuzuki.collectors.codeindex.verify import verify
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.job import JobSpec
from tsuzuki.model.verification import Verified
from tsuzuki.wiring.collector import CollectorContext

from .conftest import Build, git


@pytest.fixture
def context(
    tmp_path: Path, index_folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> CollectorContext:
    monkeypatch.setenv(FOLDER_VARIABLE, str(index_folder))
    database = cast("Any", SimpleNamespace(clock=clock))  # the index is a file of its own
    return CollectorContext(database=database, workspace=tmp_path, read_section=lambda: None)


def found(context: CollectorContext, *roots: str, **more: Any) -> list[Verified]:
    options = {"roots": [*roots] or ["tree"]}
    jobs = [JobSpec(name="code", handler="codeindex", options=options)]
    return verified(verify, context, jobs=jobs, **more)


def change(tree: Path, index_folder: Path, statement: str) -> None:
    with closing(sqlite3.connect(index_path(tree, index_folder))) as connection, connection:
        connection.execute(statement)


def test_an_index_of_an_unchanged_tree_is_whole(
    context: CollectorContext, build: Build, tree: Path
) -> None:
    build()
    compared: list[int] = []
    (one,) = found(context, advance=compared.append)
    assert (one.subject, one.is_ok, one.compared) == (str(tree), True, 3)
    assert sum(compared) == 3


def test_every_difference_between_index_and_tree_is_named(
    context: CollectorContext, build: Build, tree: Path, index_folder: Path
) -> None:
    (tree / "kept.py").write_text("KEPT = 1\n")
    build()
    (tree / "main.py").write_text("def other():\n    pass\n")
    (tree / "shop" / "sums.py").unlink()
    (tree / "later.py").write_text("LATER = 1\n")
    change(tree, index_folder, "UPDATE files SET hash = x'00' WHERE path = 'shop/cart.py'")
    (one,) = found(context)
    assert faults([one]) == [
        ("changed", "the index of main.py is outdated"),
        ("changed", "the index of shop/cart.py is outdated"),
        ("unknown", "shop/sums.py is indexed but not in the tree"),
        ("missing", "later.py is not indexed"),
    ]
    assert (one.compared, one.faults) == (5, 4)


def test_a_change_that_left_size_and_time_as_they_were_is_found(
    context: CollectorContext, build: Build, tree: Path
) -> None:
    build()
    file = tree / "main.py"
    status = file.stat()
    file.write_bytes(file.read_bytes().replace(b"main", b"niam"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert faults(found(context)) == [("changed", "the index of main.py is outdated")]


def test_a_file_that_the_index_dropped_is_named(
    context: CollectorContext, build: Build, tree: Path, index_folder: Path
) -> None:
    build()
    change(tree, index_folder, "DELETE FROM files WHERE path = 'main.py'")
    assert faults(found(context)) == [("missing", "main.py is not indexed")]


def test_files_that_git_ignores_are_not_missing(
    context: CollectorContext, build: Build, repository: Path
) -> None:
    (repository / ".gitignore").write_text("secret.py\n")
    (repository / "secret.py").write_text("SECRET = 1\n")
    git(repository, "add", ".")
    build()
    (one,) = found(context)
    assert one.is_ok


def test_a_tree_that_was_not_indexed_or_is_gone_is_no_proof(
    context: CollectorContext, build: Build, tree: Path
) -> None:
    build()
    (tree.parent / "other").mkdir()
    whole, other, gone = found(context, "tree", "other", "nowhere")
    assert whole.is_ok
    assert other.problem == "not indexed yet"
    assert "does not exist" in str(gone.problem)
    assert not other.is_ok
    assert not gone.is_ok


def test_a_tree_of_two_jobs_is_compared_once(
    context: CollectorContext, build: Build, tree: Path
) -> None:
    build()
    assert len(found(context, "tree", str(tree))) == 1


def test_without_a_job_there_is_nothing_to_verify(context: CollectorContext) -> None:
    assert verified(verify, context) == []


def test_files_are_read_page_by_page(
    context: CollectorContext, build: Build, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (tree / f"one{number}.py").write_text(f"ONE = {number}\n")
    build()
    for number in range(30):
        (tree / f"one{number}.py").write_text(f"TWO = {number}\n")
        (tree / f"two{number}.py").write_text(f"TWO = {number}\n")
    monkeypatch.setattr(verify_module, "PAGE", 7)
    (one,) = found(context)
    assert (one.compared, one.faults, len(one.named)) == (63, 60, 20)
