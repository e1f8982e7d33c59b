"""A build stores what changed, removes what is gone, and makes every trouble of a file that file's outcome."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from collectors.codeindex.conftest import Build, built
from tsuzuki.collectors.codeindex.builds import builder as build_module
from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.collectors.codeindex.extract import ExtractionFailed
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.parsing import parse as parse_module
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tree.files import open_below
from tsuzuki.collectors.codeindex.tree.scan import Scan, scan_tree

OLD_NS = 1_600_000_000_000_000_000


def rows(index_folder: Path, root: Path, sql: str) -> list[tuple[object, ...]]:
    index = IndexFile.open_existing(root, folder=index_folder)
    assert index is not None
    with index:
        return index.connection.execute(sql).fetchall()


def symbols(index_folder: Path, root: Path) -> set[tuple[object, ...]]:
    return set(
        rows(
            index_folder,
            root,
            "SELECT path, name, line FROM symbols JOIN files ON files.id = file_id",
        )
    )


def outcome(index_folder: Path, root: Path, path: str) -> tuple[object, ...]:
    found = rows(index_folder, root, f"SELECT outcome, error FROM files WHERE path = '{path}'")
    assert len(found) == 1
    return found[0]


def make_old(root: Path) -> None:
    """As if all files had been written long before the build."""
    for path in root.rglob("*.*"):
        os.utime(path, ns=(OLD_NS, OLD_NS))


def test_a_build_finds_definitions_and_references(
    build: Build, builds: Builds, tree: Path, index_folder: Path
) -> None:
    job = build()
    assert job.result is not None
    assert (job.result.updated_files, job.result.removed_files) == (3, 0)
    assert (job.progress.processed, job.progress.total) == (3, 3)
    found = symbols(index_folder, tree)
    assert {
        ("shop/cart.py", "Cart", 1),
        ("shop/cart.py", "add", 2),
        ("main.py", "main", 3),
    } <= found
    stats = builds.status(tree).stats
    assert stats is not None
    assert stats.total == job.result.total_indexed_symbols == len(found)
    assert stats.last_indexed_at == job.result.last_indexed_at
    uses = rows(
        index_folder,
        tree,
        "SELECT path, uses FROM mentions JOIN names ON names.id = name_id"
        " JOIN files ON files.id = file_id WHERE name = 'total' ORDER BY path",
    )
    assert uses == [("shop/cart.py", 1), ("shop/sums.py", 1)]


def test_only_what_changed_is_stored_again(build: Build, tree: Path, index_folder: Path) -> None:
    make_old(tree)
    build()
    again = build()
    assert again.result is not None
    assert again.result.updated_files == 0
    (tree / "main.py").write_text("def start():\n    pass\n")
    (tree / "shop" / "sums.py").touch()  # the same content
    last = build()
    assert last.result is not None
    assert last.result.updated_files == 1
    assert ("main.py", "start", 1) in symbols(index_folder, tree)
    assert ("main.py", "main", 3) not in symbols(index_folder, tree)


def test_a_change_within_one_tick_of_the_file_clock_is_seen(
    build: Build, tree: Path, index_folder: Path
) -> None:
    build()
    before = (tree / "main.py").stat()
    text = (tree / "main.py").read_text().replace("main", "niam")
    (tree / "main.py").write_text(text)
    os.utime(tree / "main.py", ns=(before.st_mtime_ns, before.st_mtime_ns))
    build()
    assert ("main.py", "niam", 3) in symbols(index_folder, tree)


def test_removed_files_are_removed_with_what_they_defined(
    build: Build, tree: Path, index_folder: Path
) -> None:
    build()
    (tree / "shop" / "sums.py").unlink()
    job = build()
    assert job.result is not None
    assert job.result.removed_files == 1
    assert {path for path, *_ in symbols(index_folder, tree)} == {"main.py", "shop/cart.py"}
    assert (
        rows(index_folder, tree, "SELECT file_id FROM mentions EXCEPT SELECT id FROM files") == []
    )


@pytest.mark.parametrize("is_removed", [False, True], ids=["saved", "removed"])
def test_a_build_of_a_part_counts_every_file_of_the_tree(
    build: Build, builds: Builds, tree: Path, is_removed: bool
) -> None:
    build()
    if is_removed:
        (tree / "main.py").unlink()
    else:
        (tree / "main.py").write_text("def other():\n    pass\n")
        (tree / "new.py").write_text("def new():\n    pass\n")
    started = builds.start(tree, paths=["main.py", "new.py"])
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.result is not None
    total = 2 if is_removed else 4
    assert (job.progress.processed, job.progress.total) == (total, total)
    assert job.result.updated_files == (0 if is_removed else 2)


def test_the_total_is_known_before_the_tree_is_scanned_again(
    build: Build, builds: Builds, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def scan_later(root: Path, **_options: object) -> Scan:
        go_on.wait(120)
        return scan_tree(root)

    build()
    monkeypatch.setattr(build_module, "scan_tree", scan_later)
    started = builds.start(tree)
    running = [builds.jobs.get(started.id), builds.status(tree).job]
    go_on.set()
    assert builds.jobs.wait(started.id, 60)
    assert [
        one and (one.status, one.progress.processed, one.progress.total) for one in running
    ] == [
        ("running", 0, 3),
        ("running", 0, 3),
    ]


def test_an_empty_tree_completes(builds: Builds, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    job = built(builds, tmp_path / "empty")
    assert job.result is not None
    assert (job.progress.total, job.result.total_indexed_symbols) == (0, 0)


def test_files_that_cannot_be_parsed_say_why(build: Build, tree: Path, index_folder: Path) -> None:
    (tree / "nul.py").write_bytes(b"x = 1\n" * 2000 + b"\0")
    (tree / "image.png").write_bytes(b"\x89PNG\0")
    (tree / "huge.py").write_bytes(b"x = 1\n" * 1_000_000)
    (tree / "line.py").write_bytes(b"x = '" + b"a" * 60_000 + b"'\n")
    (tree / "broken.py").write_bytes(b"def ok():\n    pass\ndef (((\n")
    (tree / "sjis.py").write_bytes("def 合計():\n    pass\n".encode("shift_jis"))
    (tree / "notes.unknown").write_text("words")
    (tree / "empty.py").write_text("")
    job = build()
    assert job.status == "completed"
    found = {
        path: outcome(index_folder, tree, path)[0]
        for path in "nul.py image.png huge.py line.py broken.py notes.unknown empty.py".split()
    }
    assert found == {
        "nul.py": "binary",
        "image.png": "binary",
        "huge.py": "too_large",
        "line.py": "long_line",
        "broken.py": "syntax_errors",
        "notes.unknown": "no_grammar",
        "empty.py": "indexed",
    }
    assert ("broken.py", "ok", 1) in symbols(index_folder, tree)
    again = build()
    assert again.result is not None
    assert again.result.updated_files == 0


def test_a_line_of_fifty_megabytes_harms_nothing(
    build: Build, tree: Path, index_folder: Path
) -> None:
    with (tree / "long.py").open("wb") as file:
        for _ in range(50):
            file.write(b"a" * 1_000_000)
    assert build().status == "completed"
    assert outcome(index_folder, tree, "long.py")[0] == "too_large"


def test_a_file_that_grew_too_large_loses_its_symbols(
    build: Build, tree: Path, index_folder: Path
) -> None:
    build()
    (tree / "main.py").write_bytes(b"x = 1\n" * 1_000_000)
    build()
    assert {path for path, *_ in symbols(index_folder, tree)} == {"shop/cart.py", "shop/sums.py"}


@pytest.mark.parametrize(
    "error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")]
)
def test_an_unreadable_file_keeps_its_old_symbols_and_is_tried_again(
    build: Build,
    tree: Path,
    index_folder: Path,
    builds: Builds,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
) -> None:
    build()
    (tree / "main.py").write_text("def changed():\n    pass\n")

    def refuse(root: str, path: str) -> int:
        if path == "main.py":
            raise error
        return open_below(root, path)

    with monkeypatch.context() as patch:
        patch.setattr(parse_module, "open_below", refuse)
        job = build()
    assert job.status == "completed"
    assert outcome(index_folder, tree, "main.py") == ("unreadable", error.strerror)
    assert builds.status(tree).problems == (
        {"path": "main.py", "outcome": "unreadable", "error": error.strerror},
    )
    assert ("main.py", "main", 3) in symbols(index_folder, tree)
    build()
    assert outcome(index_folder, tree, "main.py") == ("indexed", None)
    assert ("main.py", "changed", 1) in symbols(index_folder, tree)


@pytest.mark.parametrize("bug", [ExtractionFailed("timeout", "took too long"), IndexError("oops")])
def test_a_file_that_the_extractor_fails_on_keeps_its_old_symbols(
    build: Build,
    tree: Path,
    index_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    bug: Exception,
) -> None:
    build()
    (tree / "main.py").write_text("def changed():\n    pass\n")

    def fail(*_arguments: object, **_options: object) -> None:
        raise bug

    with monkeypatch.context() as patch:
        patch.setattr(parse_module, "extract", fail)
        assert build().status == "completed"
    assert outcome(index_folder, tree, "main.py")[0] == "failed"
    assert ("main.py", "main", 3) in symbols(index_folder, tree)


def test_a_file_that_vanishes_or_changes_after_the_scan(
    build: Build, tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()

    def scan_then_change(root: Path, **options: object) -> Scan:
        (tree / "late.py").write_text("def late():\n    pass\n")
        (tree / "linked.py").write_text("def linked():\n    pass\n")
        (tree / "fifo.py").write_text("def piped():\n    pass\n")
        found = scan_tree(root)
        (tree / "late.py").unlink()
        (tree / "linked.py").unlink()
        (tree / "linked.py").symlink_to("main.py")
        (tree / "fifo.py").unlink()
        os.mkfifo(tree / "fifo.py")
        (tree / "main.py").write_text("def changed():\n    pass\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "scan_tree", scan_then_change)
        job = build()
    assert job.status == "completed"
    found = {path for path, *_ in symbols(index_folder, tree)}
    assert found == {"main.py", "shop/cart.py", "shop/sums.py"}
    build()
    assert {(path, name) for path, name, _ in symbols(index_folder, tree)} == {
        ("main.py", "changed"),
        ("shop/cart.py", "Cart"),
        ("shop/cart.py", "add"),
        ("shop/sums.py", "total"),
        ("shop/sums.py", "tax"),
    }


def test_a_file_that_vanished_for_a_moment_keeps_its_symbols(
    build: Build, tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build()
    real_complete = build_module.Builder._complete

    def scan_then_remove(root: Path, **_options: object) -> Scan:
        found = scan_tree(root)
        (tree / "main.py").unlink()
        return found

    def complete_later(builder: build_module.Builder, *sets: set[str]) -> BuildJob:
        (tree / "main.py").write_text("def written_again():\n    pass\n")
        return real_complete(builder, *sets)

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "scan_tree", scan_then_remove)
        patch.setattr(build_module.Builder, "_complete", complete_later)
        build()
    assert ("main.py", "main", 3) in symbols(index_folder, tree)
    build()
    assert ("main.py", "written_again", 1) in symbols(index_folder, tree)


@pytest.mark.parametrize("refused", ["shop", "tree"])
def test_files_of_a_folder_that_cannot_be_read_now_stay(
    build: Build, tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    build()
    real_scan = os.scandir

    def refuse(folder: Path) -> object:
        if str(folder).endswith(refused):
            raise PermissionError(13, "Permission denied")
        return real_scan(folder)

    monkeypatch.setattr("tsuzuki.collectors.codeindex.tree.walk.os.scandir", refuse)
    job = build()
    assert job.result is not None
    assert job.result.removed_files == 0
    assert ("shop/cart.py", "Cart", 1) in symbols(index_folder, tree)


def test_a_newer_extractor_parses_everything_again(
    build: Build, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(tree)
    build()
    monkeypatch.setattr(build_module, "EXTRACTOR_VERSION", 999)
    monkeypatch.setattr(parse_module, "EXTRACTOR_VERSION", 999)
    job = build()
    assert job.result is not None
    assert job.result.updated_files == 3


def test_a_cancelled_build_has_failed_and_the_next_does_the_rest(
    builds: Builds, build: Build, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan_and_cancel(root: Path, **options: object) -> Scan:
        found = scan_tree(root)
        (job_id,) = builds.jobs._entries
        builds.jobs.cancel(job_id)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(build_module, "scan_tree", scan_and_cancel)
        job = build()
    assert (job.status, job.error, job.completed_at) == ("failed", "cancelled", None)
    assert job.failed_at is not None
    status = builds.status(tree)
    assert status.job == job
    assert status.stats is None
    assert build().status == "completed"


def test_a_failure_is_told_to_other_processes_too(
    builds: Builds, build: Build, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> Scan:
        raise RuntimeError("no scan today")

    monkeypatch.setattr(build_module, "scan_tree", fail)
    job = build()
    assert (job.status, job.error) == ("failed", "RuntimeError: no scan today")
    assert builds.status(tree).job == job


def test_names_are_found_by_substring_and_by_part(
    build: Build, tree: Path, index_folder: Path
) -> None:
    (tree / "long.py").write_text("class HTTPServerPool:\n    def send_all_pages(self): ...\n")
    build()
    assert rows(
        index_folder, tree, "SELECT name FROM symbol_names WHERE name MATCH '\"verPo\"'"
    ) == [("HTTPServerPool",)]
    parts = "SELECT name FROM name_parts JOIN names ON names.id = name_id WHERE part = '{}'"
    assert rows(index_folder, tree, parts.format("server")) == [("HTTPServerPool",)]
    assert rows(index_folder, tree, parts.format("pages")) == [("send_all_pages",)]


def test_the_file_passes_the_checks_of_sqlite(build: Build, tree: Path, index_folder: Path) -> None:
    build()
    (tree / "shop" / "sums.py").unlink()
    build()
    assert rows(index_folder, tree, "PRAGMA integrity_check") == [("ok",)]
    assert rows(index_folder, tree, "PRAGMA foreign_key_check") == []
    with pytest.raises(sqlite3.OperationalError):
        rows(index_folder, tree, "SELECT nothing FROM files")
