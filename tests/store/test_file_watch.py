"""Being told that a file was written to, without looking at it."""

import os
from pathlib import Path

from tsuzuki.store.file_watch import watch

LONG_SECONDS = 30.0


def test_a_write_is_told_once_and_silence_is_not(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    ear = watch([path])
    assert ear is not None
    assert not ear.wait(0)
    with path.open("ab") as stream:
        os.pwrite(stream.fileno(), b"one", 0)
    assert ear.wait(LONG_SECONDS)
    assert not ear.wait(0)
    ear.close()
    ear.close()


def test_many_writes_are_one_change(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    ear = watch([path, tmp_path / "not there"])
    assert ear is not None
    for number in range(100):
        path.write_bytes(b"x" * number)
    assert ear.wait(LONG_SECONDS)
    assert not ear.wait(0)
    ear.close()


def test_where_there_is_nothing_to_watch_one_has_to_look(tmp_path: Path) -> None:
    assert watch([tmp_path / "not there"]) is None
