"""An archive in an object store keeps the same promises as one in a folder."""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.log_archiving import files_in, line, numbered
from tsuzuki.engine.archive.format import DamagedLog
from tsuzuki.engine.archive.log_archive import FolderArchive, LogArchive, open_archive
from tsuzuki.engine.archive.object_store import ObjectArchive
from tsuzuki.model.errors import ConfigurationError, NotFound, Unreachable
from tsuzuki.store.logs import LogLine

FINISHED = datetime(2026, 11, 15, 20, 33, tzinfo=UTC)
LINES = numbered(["hello", "world"])


@pytest.fixture(params=["memory", "file"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> LogArchive:
    location = "memory:///" if request.param == "memory" else f"file://{tmp_path}/made/here"
    return open_archive(location)


def test_what_was_written_is_read_back(archive: LogArchive) -> None:
    ref = archive.write(123, FINISHED, LINES)

    assert ref.startswith("object:2026/11/15/run-123-")
    assert list(archive.read(ref)) == LINES
    assert list(archive.read(ref, after_seq=1)) == LINES[1:]


def test_writing_the_same_lines_twice_gives_the_same_ref(archive: LogArchive) -> None:
    first = archive.write(1, FINISHED, LINES)

    assert archive.write(1, FINISHED, iter(LINES)) == first
    assert list(archive.read(first)) == LINES


def test_a_folder_and_an_object_store_name_the_same_log_alike(
    archive: LogArchive, tmp_path: Path
) -> None:
    in_folder = FolderArchive(tmp_path / "folder").write(1, FINISHED, LINES)

    assert archive.write(1, FINISHED, LINES) == in_folder.replace("folder:", "object:")


def test_a_deleted_log_is_not_there_and_may_be_deleted_again(archive: LogArchive) -> None:
    ref = archive.write(1, FINISHED, LINES)

    archive.delete(ref)
    archive.delete(ref)

    with pytest.raises(NotFound, match="is missing"):
        list(archive.read(ref))


@pytest.mark.parametrize("ref", ["object:../secret", "object:", "secret"])
def test_a_ref_that_no_archive_made_is_refused(archive: LogArchive, ref: str) -> None:
    with pytest.raises(NotFound, match="does not name an archived log"):
        list(archive.read(ref))


def test_a_ref_of_a_folder_says_that_the_archive_was_changed(archive: LogArchive) -> None:
    with pytest.raises(ConfigurationError, match="another archive"):
        list(archive.read("folder:2026/11/15/run-1-0123456789abcdef.jsonl.gz"))


def test_a_writer_that_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def breaking() -> Iterator[LogLine]:
        yield LINES[0]
        raise Unreachable("the database went away")

    with pytest.raises(Unreachable, match="went away"):
        open_archive(f"file://{tmp_path}").write(1, FINISHED, breaking())

    assert files_in(tmp_path) == []


def test_a_log_larger_than_what_is_held_in_memory_arrives_whole(
    archive: LogArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tsuzuki.engine.archive.object_store.SPOOLED_BYTES_MAX", 100)
    monkeypatch.setattr("tsuzuki.engine.archive.object_store.CHUNK_BYTES", 64)
    lines = numbered(f"{number * 7919 % 10_007}" for number in range(5_000))

    assert list(archive.read(archive.write(1, FINISHED, lines))) == lines


def test_damage_is_seen(tmp_path: Path) -> None:
    archive = open_archive(f"file://{tmp_path}")
    ref = archive.write(1, FINISHED, LINES)
    (path,) = files_in(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])

    with pytest.raises(DamagedLog):
        list(archive.read(ref))


def test_a_store_that_does_not_answer_is_unreachable_and_no_secret_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "tsuzuki.engine.archive.object_store.TIMEOUTS",
        {"retry_config": {"max_retries": 0}},
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "access-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    archive = open_archive("s3://bucket/logs")

    with pytest.raises(
        Unreachable, match="cannot write the log archive s3://bucket/logs"
    ) as writing:
        archive.write(1, FINISHED, LINES)
    with pytest.raises(Unreachable, match="cannot read") as reading:
        list(archive.read("object:2026/11/15/run-1-0123456789abcdef.jsonl.gz"))
    with pytest.raises(Unreachable, match="cannot write"):
        archive.delete("object:2026/11/15/run-1-0123456789abcdef.jsonl.gz")

    for caught in (writing, reading):
        assert "\n" not in caught.value.message
        assert "hunter2" not in caught.value.message


@pytest.mark.parametrize("url", ["ftp://me:hunter2@host/path", "s3://", "memory://x/y?key=hunter2"])
def test_a_url_that_is_no_object_store_is_refused_without_telling_its_secrets(url: str) -> None:
    with pytest.raises(ConfigurationError, match="as an object store") as caught:
        open_archive(url)

    assert "hunter2" not in str(caught.value.as_dict())


def test_without_the_extra_a_url_is_refused_and_the_remedy_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("obstore", "obstore.exceptions", "obstore.store"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "tsuzuki.engine.archive.object_store")

    with pytest.raises(ConfigurationError, match="not installed") as caught:
        open_archive("s3://bucket/logs")

    assert "pip install 'tsuzuki[s3]'" in str(caught.value.hint)


def test_a_path_is_a_folder(tmp_path: Path) -> None:
    assert isinstance(open_archive(str(tmp_path)), FolderArchive)


@given(
    bodies=st.lists(st.text(st.characters(exclude_categories=["Cs"]))),
    after_seq=st.integers(min_value=0, max_value=10),
)
def test_any_text_comes_back_as_it_was(bodies: list[str], after_seq: int) -> None:
    archive = ObjectArchive("memory:///")
    lines = [line(seq, body) for seq, body in enumerate(bodies, start=1)]
    ref = archive.write(1, FINISHED, lines)

    assert list(archive.read(ref, after_seq=after_seq)) == lines[after_seq:]
