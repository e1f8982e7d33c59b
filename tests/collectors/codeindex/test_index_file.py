"""An index file that is corrupt is renamed and made anew; one of a newer version is left alone."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.index_file import (
    IndexCorrupt,
    IndexFile,
    index_folder,
    index_path,
)
from tsuzuki.collectors.codeindex.queries import meta
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.model.errors import Unreachable

from .conftest import Build, built


def test_the_place_follows_the_real_path_of_the_root(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "link").symlink_to("tree")
    (tmp_path / "other").mkdir()
    folder = tmp_path / "indexes"
    assert index_path(tmp_path / "link", folder) == index_path(tmp_path / "tree", folder)
    assert index_path(tmp_path / "other", folder) != index_path(tmp_path / "tree", folder)
    assert index_folder({"TSUZUKI_CODEINDEX_FOLDER": "/x/y"}) == Path("/x/y")
    assert index_folder({}).parts[-2:] == ("tsuzuki", "codeindex")


def damage(path: Path, how: str) -> None:
    if how == "no database":
        path.write_bytes(b"these are words, and no database at all" * 100)
    elif how == "damaged page":
        content = bytearray(path.read_bytes())
        content[100:4096] = b"\xff" * 3996
        path.write_bytes(content)
    elif how == "of another application":
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE theirs (x)")
        connection.close()
    elif how == "without tables":
        with sqlite3.connect(path, isolation_level=None) as connection:
            connection.execute("DROP TABLE builds")
        connection.close()


@pytest.mark.parametrize(
    "how", ["no database", "damaged page", "of another application", "without tables"]
)
def test_a_corrupt_index_is_kept_aside_and_built_anew(
    build: Build, builds: Builds, tree: Path, index_folder: Path, how: str
) -> None:
    build()
    path = index_path(tree, index_folder)
    damage(path, how)
    with pytest.raises(IndexCorrupt, match="corrupt"):
        builds.status(tree)
    assert [entry.state for entry in builds.entries()] == ["corrupt"]
    started = builds.start(tree)
    assert "corrupt" in started.notes[0]
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.result is not None
    assert job.result.updated_files == 3
    assert len([*index_folder.glob("*.corrupt-*")]) >= 1


def test_an_index_found_corrupt_in_the_middle_is_built_anew(
    build: Build, builds: Builds, tree: Path, index_folder: Path
) -> None:
    for number in range(300):
        (tree / f"m{number}.py").write_text(f"def function_{number}(): ...\n" * 20)
    build()
    path = index_path(tree, index_folder)
    with sqlite3.connect(path) as connection:
        page = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'files'"
        ).fetchone()[0]
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(content)
    job = built(builds, tree)
    assert job.status == "completed"
    assert job.result is not None
    assert job.result.updated_files == 303
    assert [*index_folder.glob("*.corrupt-*")] != []


def test_an_index_of_a_newer_version_is_left_alone(
    build: Build, builds: Builds, tree: Path, index_folder: Path
) -> None:
    build()
    path = index_path(tree, index_folder)
    with sqlite3.connect(path, isolation_level=None) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    started = builds.start(tree)
    assert "newer version" in started.notes[0]
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.status == "completed"
    assert path.read_bytes() == before
    assert builds.status(tree).state == "ready"
    assert sorted(entry.state for entry in builds.entries()) == ["newer", "ready"]


def test_several_threads_make_the_file_at_once(tree: Path, index_folder: Path) -> None:
    def make(folder: Path) -> str | None:
        with IndexFile.open(tree, folder=folder) as index:
            return meta.get(index.connection, "root")

    for attempt in range(150):
        folder = index_folder / str(attempt)
        # Started one by one: the first closes while the last opens.
        with ThreadPoolExecutor(8) as threads:
            assert set(threads.map(make, [folder] * 8)) == {str(tree)}
        # The log and its index stay if the last two connections close at once: each takes the other for open.
        made = {one.suffix for one in folder.iterdir()}
        assert ".sqlite" in made
        assert made <= {".sqlite", ".sqlite-shm", ".sqlite-wal"}


def test_a_folder_that_cannot_be_made_is_told(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unreachable, match="cannot use") as told:
        IndexFile.open(tree, folder=tmp_path / "file" / "indexes")
    assert told.value.specific_code == "index_unwritable"
    assert "TSUZUKI_CODEINDEX_FOLDER" in str(told.value.hint)


def test_looking_makes_nothing(tree: Path, index_folder: Path, builds: Builds) -> None:
    assert IndexFile.open_existing(tree, folder=index_folder) is None
    assert builds.status(tree).state == "missing"
    assert builds.entries() == []
    assert not index_folder.exists()
