"""An archive in a folder: what was written is read back, or an error says why it cannot be."""

import gzip
import os
import stat
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from support.log_archiving import AT, files_in, line, numbered
from tsuzuki.engine.archive.format import DamagedLog
from tsuzuki.engine.archive.log_archive import FolderArchive
from tsuzuki.model.errors import ConfigurationError, NotFound, Unreachable
from tsuzuki.store.logs import LogLine

FINISHED = datetime(2026, 11, 15, 20, 33, tzinfo=UTC)
LINES = numbered(["hello", "world"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def archive(folder: Path) -> FolderArchive:
    return FolderArchive(folder)


def path_of(folder: Path, ref: str) -> Path:
    return folder / ref.removeprefix("folder:")


def test_a_log_is_one_file_in_the_folder_of_the_day_its_run_finished(
    archive: FolderArchive, folder: Path
) -> None:
    ref = archive.write(123, FINISHED, LINES)

    assert ref.startswith("folder:2026/11/15/run-123-")
    assert ref.endswith(".jsonl.gz")
    assert files_in(folder) == [path_of(folder, ref)]


def test_only_their_owner_may_read_logs(archive: FolderArchive, folder: Path) -> None:
    path = path_of(folder, archive.write(1, FINISHED, LINES))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_day_is_that_of_utc(archive: FolderArchive) -> None:
    in_tokyo = FINISHED.astimezone(timezone(timedelta(hours=9)))

    assert archive.write(1, in_tokyo, LINES).startswith("folder:2026/11/15/")


def test_what_was_written_is_read_back(archive: FolderArchive) -> None:
    lines = [*LINES, line(7, "after a gap", "stderr"), line(8, "", "log")]
    ref = archive.write(1, FINISHED, lines)

    assert list(archive.read(ref)) == lines
    assert list(archive.read(ref, after_seq=2)) == lines[2:]
    assert list(archive.read(ref, after_seq=8)) == []


def test_writing_the_same_lines_twice_gives_the_same_ref_and_the_same_bytes(
    archive: FolderArchive, folder: Path
) -> None:
    first = archive.write(1, FINISHED, LINES)
    content = path_of(folder, first).read_bytes()

    assert archive.write(1, FINISHED, iter(LINES)) == first
    assert [path.read_bytes() for path in files_in(folder)] == [content]


def test_other_lines_of_the_same_run_replace_nothing(archive: FolderArchive) -> None:
    whole = archive.write(1, FINISHED, LINES)
    part = archive.write(1, FINISHED, LINES[1:])

    assert whole != part
    assert list(archive.read(whole)) == LINES


def test_a_writer_that_fails_half_way_leaves_nothing(archive: FolderArchive, folder: Path) -> None:
    def breaking() -> Iterator[LogLine]:
        yield LINES[0]
        raise Unreachable("the database went away")

    with pytest.raises(Unreachable, match="went away"):
        archive.write(1, FINISHED, breaking())

    assert files_in(folder) == []


def test_what_a_killed_writer_left_is_removed_when_its_run_is_written_again(
    archive: FolderArchive, folder: Path
) -> None:
    archive.write(2, FINISHED, LINES)
    of_this_run = folder / archive.INCOMING / "run-1-000000000000"
    of_another = folder / archive.INCOMING / "run-11-000000000000"
    for leftover in (of_this_run, of_another):
        leftover.write_bytes(b"half")

    archive.write(1, FINISHED, LINES)

    assert not of_this_run.exists()
    assert of_another.exists()


def test_a_deleted_log_is_not_there_and_may_be_deleted_again(
    archive: FolderArchive, folder: Path
) -> None:
    ref = archive.write(1, FINISHED, LINES)

    archive.delete(ref)
    archive.delete(ref)

    assert files_in(folder) == []
    with pytest.raises(NotFound, match="is missing"):
        list(archive.read(ref))


@pytest.mark.parametrize(
    "ref",
    [
        "folder:../secret",
        "folder:../../etc/passwd",
        "folder:/etc/passwd",
        "folder:2026/11/15/../../../../secret",
        "folder:2026/11/15/run-1-0123456789abcdef.jsonl.gz/../../../../../secret",
        "folder:2026/11/15/run-1-0123456789abcdef.jsonl.gz\n",
        "folder:2026/11/15/run-\u0661-0123456789abcdef.jsonl.gz",
        "folder:.incoming/run-1-000000000000",
        "folder:",
        "secret",
        "pruned:folder:2026/11/15/run-1-0123456789abcdef.jsonl.gz",
    ],
)
def test_a_ref_that_no_archive_made_is_refused(
    archive: FolderArchive, tmp_path: Path, ref: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for you")

    with pytest.raises(NotFound, match="does not name an archived log"):
        list(archive.read(ref))
    with pytest.raises(NotFound, match="does not name an archived log"):
        archive.delete(ref)

    assert secret.exists()


def test_a_ref_of_another_archive_says_that_the_archive_was_changed(archive: FolderArchive) -> None:
    ref = "object:2026/11/15/run-1-0123456789abcdef.jsonl.gz"

    with pytest.raises(ConfigurationError, match="another archive") as caught:
        list(archive.read(ref))

    assert caught.value.specific_code == "log_archive_changed"


def test_whichever_byte_is_flipped_the_damage_is_seen_or_does_not_matter(
    archive: FolderArchive, folder: Path
) -> None:
    ref = archive.write(1, FINISHED, LINES)
    path = path_of(folder, ref)
    whole = path.read_bytes()
    seen = 0
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            assert list(archive.read(ref)) == LINES
        except DamagedLog:
            seen += 1

    assert seen > len(whole) * 0.8


def test_wherever_a_file_is_cut_the_damage_is_seen(archive: FolderArchive, folder: Path) -> None:
    ref = archive.write(1, FINISHED, LINES)
    path = path_of(folder, ref)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedLog, match="is damaged"):
            list(archive.read(ref))


@pytest.mark.parametrize(
    "content",
    [
        b'{"seq":1,"at":"2026-03-01T11:59:59.123456Z","stream":"stdout","body":"forged"}\n',
        b"not json\n",
        b"\xff\xfe\n",
        b"[]\n",
        b'{"seq":1}\n',
        b'{"seq":"1","at":"2026-03-01T11:59:59.123456Z","stream":"stdout","body":""}\n',
        b"[" * 100_000 + b"\n",
    ],
)
def test_a_whole_file_with_other_content_is_damage_too(
    archive: FolderArchive, folder: Path, content: bytes
) -> None:
    ref = archive.write(1, FINISHED, LINES)
    path_of(folder, ref).write_bytes(gzip.compress(content))

    with pytest.raises(DamagedLog):
        list(archive.read(ref))


def test_writing_again_mends_a_damaged_log(archive: FolderArchive, folder: Path) -> None:
    ref = archive.write(1, FINISHED, LINES)
    path_of(folder, ref).write_bytes(b"")

    assert archive.write(1, FINISHED, LINES) == ref
    assert list(archive.read(ref)) == LINES


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    in_the_way = tmp_path / "logs"
    in_the_way.write_text("a file where the folder should be")

    with pytest.raises(Unreachable, match="cannot write") as caught:
        FolderArchive(in_the_way).write(1, FINISHED, LINES)

    assert str(in_the_way) in caught.value.message


def test_a_file_that_cannot_be_read_is_named(archive: FolderArchive, folder: Path) -> None:
    ref = archive.write(1, FINISHED, LINES)
    path_of(folder, ref).unlink()
    path_of(folder, ref).mkdir()

    with pytest.raises(Unreachable, match="cannot read") as caught:
        list(archive.read(ref))

    assert ref in caught.value.message


def test_nothing_is_published_before_it_is_safe_on_the_disk(
    archive: FolderArchive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        published = [path for path in files_in(folder) if archive.INCOMING not in path.parts]
        synced.append(f"{Path(f'/proc/self/fd/{descriptor}').resolve().name}:{len(published)}")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    archive.write(1, FINISHED, LINES)

    content = next(name for name in synced if name.startswith("run-1-"))
    assert content.endswith(":0")
    assert synced[-1] == "15:1"


def test_a_huge_log_is_written_and_read_in_little_memory(archive: FolderArchive) -> None:
    count = 6_000

    def flood() -> Iterator[LogLine]:
        return (line(seq, f"{seq} " + "x" * 1_000) for seq in range(1, count + 1))

    tracemalloc.start()
    try:
        ref = archive.write(1, AT, flood())
        read = sum(1 for _ in archive.read(ref))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert read == count
    assert peak < 2_000_000
