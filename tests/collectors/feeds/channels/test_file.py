"""A file gets each post as one line, once, whatever is torn."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.moving_clock import NOON
from tsuzuki.collectors.feeds.channels.file import FileChannel
from tsuzuki.collectors.feeds.channels.protocol import AccountStopped, Outgoing
from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.outward.errors import SourceUnavailable
from tsuzuki.outward.outbox import OutboxState

from .posting_fixture import PostingFixture, body_of


def outgoing(number: int) -> Outgoing:
    return Outgoing(kind=PostKind.POST, key=f"{number:040x}", body=body_of(number), created_at=NOON)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_post_is_a_line_in_the_workspace_and_a_crash_makes_no_second(
    news: PostingFixture,
) -> None:
    news.accounts["file"] = {"type": "file", "path": "posts.jsonl"}
    assert news.start().post(1, account="file") is OutboxState.SENT
    dead = news.start()
    dead.posting.channel("file").send(dead.intend(2, account="file").outgoing)
    dead.intend(3, account="file")
    dead.end()
    run = news.start()
    settled = run.settle()
    assert (len(settled.sent), len(settled.released)) == (1, 1)
    assert run.post(3, account="file") is OutboxState.SENT
    found = lines(news.folder / "posts.jsonl")
    assert [line["text"] for line in found] == [body_of(number).text for number in (1, 2, 3)]
    assert found[0]["kind"] == "post"


@pytest.mark.parametrize("cut", [1, 5, 20, 100])
def test_a_line_that_was_torn_is_taken_away(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "posts.jsonl"
    channel = FileChannel(path)
    channel.send(outgoing(1))
    channel.send(outgoing(2))
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    path.write_bytes(whole[: first + cut])
    assert channel.look_up(outgoing(2), others=()) is None
    channel.send(outgoing(2))
    assert path.read_bytes() == whole


def test_a_line_that_lacks_only_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    channel = FileChannel(path)
    channel.send(outgoing(1))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert channel.look_up(outgoing(1), others=()) is not None
    assert path.read_bytes() == whole


def test_what_another_program_wrote_stays(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text('{"note": "mine"}\nhalf a li', encoding="utf-8")
    FileChannel(path).send(outgoing(1))
    text = path.read_text(encoding="utf-8")
    assert text.startswith('{"note": "mine"}\nhalf a li\n{"id":')


def test_the_same_key_is_written_once_and_a_key_inside_a_text_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    channel = FileChannel(path)
    for _ in range(3):
        channel.send(outgoing(1))
    assert len(lines(path)) == 1
    path.write_text('{"id":"x","text":"{\\"id\\":\\"' + f"{2:040x}" + '\\""}\n', encoding="utf-8")
    assert channel.look_up(outgoing(2), others=()) is None


def test_a_file_longer_than_a_chunk_is_looked_through(tmp_path: Path) -> None:
    channel = FileChannel(tmp_path / "posts.jsonl")
    for number in range(400):
        channel.send(outgoing(number))
    assert (tmp_path / "posts.jsonl").stat().st_size > 64 * 1024
    assert all(channel.look_up(outgoing(number), others=()) for number in range(0, 400, 37))
    assert channel.look_up(outgoing(401), others=()) is None


def test_what_cannot_be_written_whole_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "posts.jsonl"
    channel = FileChannel(path)
    channel.send(outgoing(1))
    whole = path.read_bytes()

    def full(_number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SourceUnavailable, match="No space left"):
        channel.send(outgoing(2))
    assert path.read_bytes() == whole


def test_a_folder_that_is_not_there_stops_the_account(tmp_path: Path) -> None:
    with pytest.raises(AccountStopped, match="No such file"):
        FileChannel(tmp_path / "none" / "posts.jsonl").send(outgoing(1))
