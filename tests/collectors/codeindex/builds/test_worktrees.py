"""A new worktree starts from what another worktree of its repository has in its index."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collectors.codeindex.conftest import built, git
from tsuzuki.collectors.codeindex.builds.worktrees import copy_from_worktree, other_indexes
from tsuzuki.collectors.codeindex.index_file import IndexFile, index_path
from tsuzuki.collectors.codeindex.parsing import parse
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, ParsedFile
from tsuzuki.collectors.codeindex.queries import builds as queried_builds
from tsuzuki.collectors.codeindex.queries import files, lookups, meta
from tsuzuki.collectors.codeindex.queries.names import NameIds
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tree.scan import Scan
from tsuzuki.model.errors import Fenced

Rows = list[tuple[object, ...]]


@pytest.fixture
def committed(repository: Path) -> Path:
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "first")
    return repository


@pytest.fixture
def worktree(committed: Path, tmp_path: Path) -> Path:
    place = tmp_path / "second"
    git(committed, "worktree", "add", "--quiet", str(place), "-b", "side")
    return place


@pytest.fixture
def parsed_texts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """What is extracted in this process from now on."""
    texts: list[bytes] = []
    extract = parse.extract

    def recorded(language: str, source: bytes, *, seconds_max: float) -> object:
        texts.append(source)
        return extract(language, source, seconds_max=seconds_max)

    monkeypatch.setattr(parse, "extract", recorded)
    return texts


def everything(root: Path, folder: Path) -> dict[str, Rows]:
    """What the index says of each file, however it was numbered."""
    with closing(sqlite3.connect(index_path(root, folder))) as connection:
        symbols = connection.execute(
            "SELECT path, name, kind, container, line, end_line, col, signature, doc"
            " FROM symbols JOIN files ON files.id = file_id ORDER BY path, line, col"
        ).fetchall()
        mentions = connection.execute(
            "SELECT path, name, uses FROM mentions"
            " JOIN files ON files.id = file_id JOIN names ON names.id = name_id ORDER BY 1, 2"
        ).fetchall()
        found = connection.execute(
            "SELECT path, size, hash, language, outcome FROM files ORDER BY path"
        ).fetchall()
    return {"files": found, "symbols": symbols, "mentions": mentions}


def test_a_second_worktree_has_the_same_answers_and_nothing_is_parsed_again(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path, parsed_texts: list[bytes]
) -> None:
    first = built(builds, committed)
    parsed_texts.clear()
    second = built(builds, worktree)
    assert parsed_texts == []
    assert everything(worktree, index_folder) == everything(committed, index_folder)
    assert second.result is not None
    assert first.result is not None
    assert second.result.updated_files == first.result.updated_files == 3
    assert second.result.total_indexed_symbols == first.result.total_indexed_symbols
    with IndexFile.open(worktree, folder=index_folder) as index:
        assert lookups.names_with_substring(index.connection, "ota", limit=9) == ["total"]
        assert lookups.names_with_part(index.connection, "tax", limit=9) == ["tax"]


def test_other_content_of_the_same_size_and_mtime_is_parsed(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    built(builds, committed)
    changed = worktree / "shop" / "sums.py"
    changed.write_text(changed.read_text().replace("total", "whole"))
    known = (committed / "shop" / "sums.py").stat()
    os.utime(changed, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert changed.stat().st_size == known.st_size
    built(builds, worktree)
    names = {row[1] for row in everything(worktree, index_folder)["symbols"]}
    assert "whole" in names
    assert "total" not in names


def test_files_of_the_other_worktree_alone_are_not_in_the_index(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    (committed / "extra.py").write_text("def extra():\n    pass\n")
    built(builds, committed)
    job = built(builds, worktree)
    assert job.result is not None
    assert job.result.removed_files == 0
    assert [row[0] for row in everything(worktree, index_folder)["files"]] == [
        "main.py",
        "shop/cart.py",
        "shop/sums.py",
    ]


def test_stale_symbols_of_a_file_that_failed_are_not_taken_over(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    built(builds, committed)
    with closing(sqlite3.connect(index_path(committed, index_folder))) as connection, connection:
        connection.execute("UPDATE symbols SET name = 'old' WHERE name = 'total'")
        connection.execute("UPDATE files SET outcome = 'failed' WHERE path = 'shop/sums.py'")
    built(builds, worktree)
    found = everything(worktree, index_folder)
    assert "old" not in {row[1] for row in found["symbols"]}
    assert {row[4] for row in found["files"]} == {"indexed"}


def test_a_damaged_index_of_the_other_worktree_is_passed_over_and_left_alone(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path, parsed_texts: list[bytes]
) -> None:
    built(builds, committed)
    expected = everything(committed, index_folder)
    other = index_path(committed, index_folder)
    with closing(sqlite3.connect(other)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'mentions'"
        ).fetchone()
    content = bytearray(other.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    other.write_bytes(content)
    parsed_texts.clear()
    assert built(builds, worktree).status == "completed"
    assert len(parsed_texts) == 3
    assert everything(worktree, index_folder) == expected
    assert other.read_bytes() == bytes(content)


def test_a_folder_below_the_top_starts_from_the_same_folder_elsewhere(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path, parsed_texts: list[bytes]
) -> None:
    built(builds, committed / "shop")
    parsed_texts.clear()
    built(builds, worktree / "shop")
    assert parsed_texts == []
    assert len(everything(worktree / "shop", index_folder)["files"]) == 2


def test_the_writer_of_the_other_index_neither_waits_nor_is_waited_for(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path, parsed_texts: list[bytes]
) -> None:
    built(builds, committed)
    parsed_texts.clear()
    with IndexFile.open(committed, folder=index_folder) as other:
        with other.transaction(lambda _: True) as connection:
            connection.execute("DELETE FROM symbols")
            built(builds, worktree)
        assert parsed_texts == []
        assert files.symbol_count(other.connection) == 0
    assert len(everything(worktree, index_folder)["symbols"]) == 5


def test_a_build_that_lost_its_token_copies_nothing(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    built(builds, committed)
    others = other_indexes(worktree, index_folder)
    with IndexFile.open(worktree, folder=index_folder) as index:
        with pytest.raises(Fenced):
            copy_from_worktree(index, others, lambda _: False)
        assert files.known_files(index.connection) == {}
        assert copy_from_worktree(index, others, lambda _: True)
        assert not copy_from_worktree(index, others, lambda _: True), "it is not empty any more"


def test_a_copy_keeps_the_facts_and_the_build_of_the_own_index(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    built(builds, committed)
    others = other_indexes(worktree, index_folder)
    with IndexFile.open(worktree, folder=index_folder) as index:
        own = index.connection
        assert copy_from_worktree(index, others, lambda _: True)
        assert meta.get(own, "root") == str(worktree)
        assert meta.index_stats(own) is None
        assert queried_builds.read(own) is None
        assert own.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert {file.mtime_ns for file in files.known_files(own).values()} == {-1}


def test_the_next_build_after_a_copy_alone_compares_every_file(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    """As after a kill between the copy and the first file."""
    built(builds, committed)
    (worktree / "main.py").write_text("def other():\n    pass\n")
    (worktree / "shop" / "cart.py").unlink()
    others = other_indexes(worktree, index_folder)
    with IndexFile.open(worktree, folder=index_folder) as index:
        assert copy_from_worktree(index, others, lambda _: True)
    job = built(builds, worktree)
    assert job.result is not None
    assert job.result.updated_files == 1
    names = [row[1] for row in everything(worktree, index_folder)["symbols"]]
    assert names == ["other", "total", "tax"]


def test_what_was_copied_for_a_file_that_cannot_be_read_is_dropped(
    builds: Builds, committed: Path, worktree: Path, index_folder: Path
) -> None:
    built(builds, committed)
    unreadable = ParsedFile(
        path="shop/sums.py", size=0, mtime_ns=0, outcome=FileOutcome.UNREADABLE, error="denied"
    )
    others = other_indexes(worktree, index_folder)
    with IndexFile.open(worktree, folder=index_folder) as index:
        assert copy_from_worktree(index, others, lambda _: True)
        with index.transaction(lambda _: True) as connection:
            files.put_files(connection, [unreadable], names=NameIds(), now_ns=1)
    found = everything(worktree, index_folder)
    assert "shop/sums.py" not in {row[0] for row in found["symbols"] + found["mentions"]}
    assert "shop/cart.py" in {row[0] for row in found["symbols"]}


def test_what_was_copied_below_a_folder_that_cannot_be_listed_is_dropped(
    builds: Builds,
    committed: Path,
    worktree: Path,
    index_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built(builds, committed)
    shutil.rmtree(worktree / "shop")
    monkeypatch.setattr(Scan, "may_have", lambda _scan, _path: True)
    built(builds, worktree)
    assert [row[0] for row in everything(worktree, index_folder)["files"]] == ["main.py"]
