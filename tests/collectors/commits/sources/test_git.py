"""The git program as a source: what it gives, and every way a repository can be wrong."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support import git_oracle
from support.daemons import eventually, is_alive
from support.git_histories import AWKWARD_BRANCH, odd_commits, straight, with_raw_commit
from tsuzuki.collectors.commits.git.errors import refusal
from tsuzuki.collectors.commits.git.log import parse_commits
from tsuzuki.collectors.commits.git.program import Git, GitOutput
from tsuzuki.collectors.commits.sandbox.gitlab.repository import Repository
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.source import Absence, Head, Lineage, Range
from tsuzuki.engine.run_context import RunStopped
from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.errors import (
    RateLimited,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)

ABSENT = "0123456789" * 4


def source_of(folder: Path, *, page_commits_max: int = 5, **changes: object) -> GitSource:
    git = Git(**{"clock": SystemClock(), "silence_seconds": 60.0, **changes})
    return GitSource(folder=folder, git=git, page_commits_max=page_commits_max)


@pytest.fixture
def long(tmp_path: Path) -> Path:
    folder = tmp_path / "long.git"
    straight(folder, 23)
    return folder


def unpack(folder: Path) -> None:
    """Keep every object in a file of its own."""
    git_oracle.git(folder, "repack", "-adfq")
    for pack in list((folder / "objects" / "pack").glob("*.pack")):
        moved = pack.rename(folder / pack.name)
        pack.with_suffix(".idx").unlink()
        with moved.open("rb") as stream:
            command = ["git", "-C", str(folder), "unpack-objects", "-q"]
            subprocess.run(command, stdin=stream, check=True)


def everything(folder: Path) -> Range:
    return Range(old=None, new=git_oracle.head(folder))


def error_of(source: GitSource, wanted: Range | None = None) -> SourceFailed:
    with pytest.raises(SourceFailed) as raised:
        list(source.pages(wanted or Range(old=None, new=ABSENT)))
    return raised.value


# --- what it gives --------------------------------------------------------------------------------


def test_pages_are_of_the_size_that_is_asked_for_and_the_last_says_so(long: Path) -> None:
    pages = list(source_of(long).pages(everything(long)))
    assert [len(page.commits) for page in pages] == [5, 5, 5, 5, 3]
    assert [page.is_last for page in pages] == [False] * 4 + [True]


def test_a_range_without_commits_still_has_its_last_page(long: Path) -> None:
    head = git_oracle.head(long)
    (page,) = source_of(long).pages(Range(old=head, new=head))
    assert (list(page.commits), page.is_last) == ([], True)


def test_behind_every_mark_come_exactly_the_pages_that_are_left(long: Path) -> None:
    source = source_of(long)
    pages = list(source.pages(everything(long)))
    for number, page in enumerate(pages[:-1], start=1):
        rest = list(source.pages(everything(long), mark=page.mark))
        assert [p.commits for p in rest] == [p.commits for p in pages[number:]]


def test_a_large_history_read_in_small_pieces_is_the_same(
    long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [c for page in source_of(long).pages(everything(long)) for c in page.commits]
    read = os.read
    monkeypatch.setattr(os, "read", lambda number, _size: read(number, 7))
    pieces = [c for page in source_of(long).pages(everything(long)) for c in page.commits]
    assert pieces == whole


def test_heads_are_found_whatever_is_in_the_name(crooked_history: Path) -> None:
    source = source_of(crooked_history)
    for branch in ("main", "arm/1", AWKWARD_BRANCH):
        expected = Head(sha=git_oracle.head(crooked_history, branch), is_default=branch == "main")
        assert source.head(branch) == expected
    assert source.head("arm") is Absence.NO_BRANCH
    assert source.default_branch() == "main"


@pytest.mark.parametrize("name", ["a\u0085b", "a\u2028b", "end\u2028"])
def test_line_ends_of_unicode_are_part_of_a_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "named.git"
    straight(folder, 2, branch=name)
    source = source_of(folder)
    assert source.head(name) == Head(sha=git_oracle.head(folder, name), is_default=True)
    assert source.default_branch() == name
    assert list(source.branches()) == [name]
    assert [found.name for found in Repository(folder).branches()] == [name]
    assert Repository(folder).default_branch() == name


def test_the_default_of_a_clone_is_where_origin_leads_whatever_is_checked_out(
    long: Path, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    git_oracle.git(tmp_path, "clone", "-q", str(long), str(tree))
    git_oracle.git(tree, "checkout", "-q", "-b", "feature")
    source = source_of(tree)
    assert (source.default_branch(), source.why_default()) == ("main", "target of origin/HEAD")
    for branch in ("main", "feature"):
        expected = Head(sha=git_oracle.head(tree, branch), is_default=branch == "main")
        assert source.head(branch) == expected
    git_oracle.git(tree, "remote", "set-head", "origin", "--delete")
    assert source.default_branch() == "feature"
    assert "checked out" in source.why_default()
    assert source.head("main") == Head(sha=git_oracle.head(tree, "main"), is_default=None)


def test_a_reset_is_told_from_a_force_push(long: Path) -> None:
    head, earlier = (git_oracle.ids(long, "main")[place] for place in (0, 4))
    assert source_of(long).lineage(head, earlier) is Lineage.RESET


def test_a_former_head_is_an_ancestor_rewritten_or_unknown(crooked_history: Path) -> None:
    source, main = source_of(crooked_history), git_oracle.head(crooked_history)
    assert source.lineage(git_oracle.ids(crooked_history, "main")[3], main) is Lineage.ANCESTOR
    side = git_oracle.head(crooked_history, AWKWARD_BRANCH)
    assert source.lineage(side, main) is Lineage.REWRITTEN
    assert source.lineage(ABSENT, main) is Lineage.UNKNOWN


def test_settings_of_the_user_do_not_change_what_is_counted(
    crooked_history: Path, tmp_path: Path
) -> None:
    (tmp_path / ".gitconfig").write_text(
        "[diff]\nalgorithm = patience\nrenames = false\nignoreSubmodules = all\nnoprefix = true\n"
        "[log]\nshowSignature = true\ndate = relative\nmailmap = true\n[color]\nui = always\n"
        "[format]\npretty = oneline\n"
    )
    source = source_of(crooked_history, environ={**os.environ, "HOME": str(tmp_path)})
    pages = source.pages(everything(crooked_history))
    rows = {git_oracle.Row(*commit[:6]) for page in pages for commit in page.commits}
    assert rows == git_oracle.rows(crooked_history, "main")


def test_variables_of_the_environment_do_not_lead_git_elsewhere(
    long: Path, crooked_history: Path
) -> None:
    astray = {"GIT_DIR": str(crooked_history), "GIT_CONFIG_COUNT": "x", "GIT_TRACE": "1"}
    source = source_of(long, environ={**os.environ, **astray})
    assert source.head("main") == Head(sha=git_oracle.head(long), is_default=True)


# --- what can be wrong ----------------------------------------------------------------------------


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "not" / "one"
    inside.mkdir(parents=True)
    straight(tmp_path / "not" / ".git", 2)
    with pytest.raises(SourceRefused, match="not a git repository"):
        source_of(inside).head("main")


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="does not exist"):
        source_of(tmp_path / "nowhere").head("main")


def test_an_empty_repository_is_told_from_a_missing_branch(tmp_path: Path) -> None:
    git_oracle.git(tmp_path, "init", "-q", "--bare", "empty.git")
    assert source_of(tmp_path / "empty.git").head("main") is Absence.EMPTY_REPOSITORY


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_repository_of_another_user_is_refused_with_the_way_out(long: Path) -> None:
    for path in [long, *long.rglob("*")]:
        os.chown(path, 12345, 12345)
    with pytest.raises(SourceRefused, match="dubious ownership") as raised:
        source_of(long).head("main")
    assert "safe.directory" in str(raised.value.hint)


def test_a_shallow_clone_is_refused_before_anything_is_read(long: Path, tmp_path: Path) -> None:
    shallow = tmp_path / "shallow.git"
    git_oracle.git(
        tmp_path, "clone", "-q", "--bare", "--depth", "3", f"file://{long}", str(shallow)
    )
    error = error_of(source_of(shallow), everything(shallow))
    assert isinstance(error, SourceRefused)
    assert "--unshallow" in str(error.hint)


def test_commits_that_no_git_would_write_are_read_as_git_reads_them(long: Path) -> None:
    odd_commits(long)
    pages = source_of(long).pages(everything(long))
    commits = [commit for page in pages for commit in page.commits]
    assert {git_oracle.Row(*commit[:6]) for commit in commits} == git_oracle.rows(long, "main")
    assert {(one.sha, one.parents) for one in commits} == git_oracle.parents(long, "main")


@pytest.mark.parametrize(
    ("committed", "stored", "is_noted"),
    [
        ("0 +0000", "1970-01-01T00:00:00Z", False),
        ("-1 +0000", "1970-01-01T00:00:00Z", True),
        ("253402300799 +0000", "9999-12-31T23:59:59Z", False),
        ("253402300800 +0000", "9999-12-31T23:59:59Z", True),
        ("9223372036854775807 +0000", "9999-12-31T23:59:59Z", True),
        ("18446744073709551616 +0000", "9999-12-31T23:59:59Z", True),
    ],
)
def test_a_date_that_is_too_late_for_git_to_write_is_not_taken_for_1970(
    long: Path, committed: str, stored: str, is_noted: bool
) -> None:
    odd = with_raw_commit(long, committed=committed)
    page = next(iter(source_of(long, page_commits_max=1).pages(everything(long))))
    (commit,) = page.commits
    assert (commit.sha, commit.committed_date_utc) == (odd, stored)
    assert (odd in page.date_notes) is is_noted


@pytest.mark.parametrize("left_out", ["blob:none", "tree:0"])
def test_a_partial_clone_is_refused_with_the_command_that_completes_it(
    long: Path, tmp_path: Path, left_out: str
) -> None:
    partial = tmp_path / "partial.git"
    git_oracle.git(long, "config", "uploadpack.allowFilter", "true")
    git_oracle.git(
        tmp_path, "clone", "-q", "--bare", f"--filter={left_out}", f"file://{long}", str(partial)
    )
    error = error_of(source_of(partial), everything(partial))
    assert (type(error), error.specific_code) == (SourceRefused, "partial_clone")
    command = str(error.hint).partition(": git ")[2].split()
    git_oracle.git(partial, *command)
    pages = source_of(partial).pages(everything(partial))
    rows = {git_oracle.Row(*commit[:6]) for page in pages for commit in page.commits}
    assert rows == git_oracle.rows(long, "main")


def test_a_corrupt_repository_gives_what_it_has_and_then_fails(long: Path) -> None:
    unpack(long)
    broken = git_oracle.ids(long, "main")[12]
    loose = long / "objects" / broken[:2] / broken[2:]
    loose.chmod(0o644)
    loose.write_bytes(b"")
    pages = source_of(long).pages(everything(long))
    assert len(next(pages).commits) == 5
    with pytest.raises(SourceRefused, match="git cannot read the repository"):
        list(pages)


def test_what_is_not_a_commit_is_refused() -> None:
    with pytest.raises(SourceRefused, match="not a commit"):
        parse_commits(b"\0" + b"z" * 40 + b"\n", {})


def fake_git(folder: Path, script: str) -> dict[str, str]:
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_git_that_hangs_is_ended_with_all_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    environ = fake_git(tmp_path, f"sleep 600 & echo $! $$ > {pids}; wait")
    source = source_of(tmp_path, environ=environ, silence_seconds=0.5)
    with pytest.raises(SourceUnavailable, match="produced no output for"):
        source.head("main")
    for pid in pids.read_text().split():
        eventually(lambda pid=pid: not is_alive(int(pid)), what="its processes to be gone")


def test_a_run_that_is_asked_to_stop_does_not_wait_for_git(tmp_path: Path) -> None:
    environ = fake_git(tmp_path, "sleep 600")
    with pytest.raises(RunStopped):
        source_of(tmp_path, environ=environ, stopping=lambda: True).head("main")


def test_git_is_asked_nothing_it_could_ask_a_person(tmp_path: Path) -> None:
    environ = fake_git(tmp_path, "env; cat")
    git = Git(clock=SystemClock(), silence_seconds=60.0, environ=environ)
    assert "GIT_ALLOW_PROTOCOL=none" in git.ask(tmp_path, "log").output.decode()
    said = git.ask(tmp_path, "fetch").output.decode()
    assert "GIT_TERMINAL_PROMPT=0" in said
    assert "GIT_ALLOW_PROTOCOL=file:http:https:ssh" in said
    assert "BatchMode=yes" in said


def test_without_git_the_message_says_so(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="git is not installed"):
        source_of(tmp_path, environ={"PATH": str(tmp_path)}).head("main")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("fatal: unable to access 'https://x@h/': Could not resolve host: h", SourceUnavailable),
        ("fatal: Authentication failed for 'https://h/'", SourceRefused),
        ("error: RPC failed; curl 18 transfer closed", SourceUnavailable),
        ("fatal: unable to access: The requested URL returned error: 503", SourceUnavailable),
        ("fatal: unable to access: The requested URL returned error: 403", SourceRefused),
        ("fatal: unable to access: The requested URL returned error: 429", RateLimited),
        ("fatal: transport 'ext' not allowed", SourceRefused),
        ("fatal: something else", SourceRefused),
    ],
)
def test_what_git_complains_of_is_told_apart(said: str, kind: type[SourceFailed]) -> None:
    assert type(refusal(GitOutput(code=128, output=b"", stderr=said))) is kind


def test_a_copy_of_the_repository_elsewhere_is_read_alike(long: Path, tmp_path: Path) -> None:
    work_tree = tmp_path / "tree"
    git_oracle.git(tmp_path, "clone", "-q", str(long), str(work_tree))
    shutil.rmtree(long)
    pages = source_of(work_tree).pages(everything(work_tree))
    rows = {git_oracle.Row(*commit[:6]) for page in pages for commit in page.commits}
    assert rows == git_oracle.rows(work_tree, "main")


def test_a_command_that_reads_reaches_no_other_repository(long: Path, tmp_path: Path) -> None:
    """Not even a git that does not know how to leave out the fetch of a missing object."""
    mark = tmp_path / "started-by-the-repository"
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", str(long)),
        ("remote.evil.uploadpack", f"touch '{mark}'; false"),
    ):
        git_oracle.git(long, "config", name, value)
    git = Git(clock=SystemClock(), silence_seconds=60.0)
    command = ("cat-file", "-e", ABSENT)
    with git.started(long, command, environment={"GIT_NO_LAZY_FETCH": "0"}) as process:
        list(process.pieces())
        assert process.end() != 0
    assert not mark.exists()
    subprocess.run(["git", "-C", str(long), *command], capture_output=True, check=False)
    assert mark.exists(), (
        "the repository proves nothing: it starts no command for other programs either"
    )
