"""What git writes about commits is read as it is meant, whatever stands in a path."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support import git_oracle
from support.commit_collection import Collecting
from support.git_histories import straight
from tsuzuki.collectors.commits.git.log import PATH_CHARACTERS_MAX, parse_commits, read_commits
from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.sources import git as source_git
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.errors import SourceFailed

FILES = 25_000
SHA = b"a" * 40


def record(changes: bytes = b"", sha: bytes = SHA) -> bytes:
    return b"\0" + sha + b"\n\n2024-01-01T00:00:00Z\n1704067200\nAnn\nann@x\0" + changes


def history_of(folder: Path, paths: list[bytes]) -> Path:
    """A repository with one commit that adds these files, one line each."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    names = [b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"' for path in paths]
    commit = b"commit refs/heads/main\ncommitter A <a@x> 1 +0000\ndata 0\n"
    files = b"".join(b"M 644 inline %s\ndata 2\nx\n\n" % name for name in names)
    subprocess.run(
        ["git", "-C", str(folder), "fast-import", "--quiet"], input=commit + files, check=True
    )
    return folder


def test_tabs_newlines_renames_and_binary_files_are_told_apart() -> None:
    changes = b"\n1\t2\ta\tb\nc\0-\t-\tbinary\x000\t3\t\0old\0new\0"
    (commit,) = parse_commits(record(changes), {})
    assert commit.paths == (("a\tb\nc", 1, 2), ("binary", 0, 0), ("new", 0, 3))
    assert (commit.additions, commit.deletions) == (1, 5)


@pytest.mark.parametrize("size", range(1, 40))
def test_records_are_whole_wherever_the_stream_is_cut(size: int) -> None:
    stream = record(b"\n1\t2\ta\0") + record(sha=b"b" * 40) + record(b"\n0\t3\t\0x\0y\0", b"c" * 40)
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    read = [commit for batch in read_commits(pieces, {}) for commit in batch]
    assert read == parse_commits(stream, {})
    assert [commit.sha[0] for commit in read] == ["a", "b", "c"]


def test_paths_that_are_not_text_or_very_long_are_stored_and_add_up(
    collecting: Collecting, tmp_path: Path
) -> None:
    long = b"d/" * 700 + b"end.txt"
    paths = [b"caf\xe9.txt", b"caf\xe8.txt", b"\xed\xa0\x80", b"a\tb\nc", long, b"x" + long]
    folder = history_of(tmp_path / "odd.git", paths)
    collecting.repository(folder, "main")
    collecting.collect()
    found = {path: additions for _sha, path, additions, _deletions in collecting.path_counts()}
    assert found.pop("caf\ufffd.txt") == 2
    assert found.pop("a\tb\nc") == found.pop("\ufffd\ufffd\ufffd") == 1
    assert len(found) == 2
    assert all(len(path) <= PATH_CHARACTERS_MAX and path.endswith("d/end.txt") for path in found)
    assert {path[:3] for path in found} == {"d/d", "xd/"}
    collecting.check()


def test_a_commit_of_very_many_files_is_stored(collecting: Collecting, tmp_path: Path) -> None:
    folder = history_of(tmp_path / "many.git", [b"f/%d" % number for number in range(FILES)])
    collecting.repository(folder, "main")
    collecting.collect()
    assert len(collecting.path_counts()) == FILES
    collecting.check()


def test_a_page_ends_at_so_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_git, "PAGE_PATHS_MAX", 2)
    folder = tmp_path / "pages.git"
    straight(folder, 7)
    source = GitSource(
        folder=folder, git=Git(clock=SystemClock(), silence_seconds=60), page_commits_max=5
    )
    pages = list(source.pages(Range(old=None, new=git_oracle.head(folder))))
    assert [len(page.commits) for page in pages] == [2, 2, 2, 1]


def test_a_commit_that_git_did_not_finish_writing_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git writes a commit and half of the counts of the next one, and dies."""
    monkeypatch.setattr(source_git, "PAGE_SECONDS_MAX", 0.0)
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    (tmp_path / "written").write_bytes(record() + record(b"\n1\t2\ta\0", b"b" * 40))
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *numstat*) cat {tmp_path}/written; exit 9;; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    folder = tmp_path / "dies.git"
    straight(folder, 3)
    environ = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    git = Git(clock=SystemClock(), silence_seconds=60, environ=environ)
    source = GitSource(folder=folder, git=git, page_commits_max=5)
    taken: list[str] = []
    pages = source.pages(Range(old=None, new=git_oracle.head(folder)))
    with pytest.raises(SourceFailed):
        taken.extend(commit.sha for page in pages for commit in page.commits)
    assert taken == [SHA.decode()]
