"""The repository of a folder is found without trusting what its files say."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.git_oracle import git
from tsuzuki.collectors.commits.git.repository_folder import common_folder, top_of


def fifo(place: Path) -> None:
    os.mkfifo(place)


def device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def circle(place: Path) -> None:
    place.symlink_to(place.name)


def text(content: bytes) -> Callable[[Path], None]:
    def write(place: Path) -> None:
        place.write_bytes(content)

    return write


IMPOSSIBLE = {
    "a FIFO": fifo,
    "a device": device,
    "a link in a circle": circle,
    "a NUL": text(b"gitdir: x\0y\n"),
    "a long name": text(b"gitdir: " + b"x" * 300),
    "a long path": text(b"x/" * 4_000),
    "endless": text(b"x" * 100_000),
    "a folder that is not there": text(b"gitdir: ../nothing\n"),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", IMPOSSIBLE.values(), ids=IMPOSSIBLE)
@pytest.mark.parametrize("file", [".git", ".git/commondir"])
def test_a_file_of_git_that_leads_nowhere_holds_nothing_up(
    tmp_path: Path, make: Callable[[Path], None], file: str
) -> None:
    folder = tmp_path / "repository"
    folder.mkdir()
    if file != ".git":
        git(folder, "init", "--quiet")
    make(folder / file)
    assert top_of(folder) == folder
    common_folder(folder)
