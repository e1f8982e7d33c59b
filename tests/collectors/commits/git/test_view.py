"""A commit has the same counts whatever git is configured to do: in a folder, a mirror and a GitLab."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from support import git_oracle
from support.git_histories import wayward
from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.git.view import ObjectStore, bare_view, remove_left_views
from tsuzuki.collectors.commits.sandbox.gitlab.repository import Repository
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.source import Range
from tsuzuki.model.clock import SystemClock

ODD = {
    "core.attributesFile": "{place}/attributes",
    "core.bigFileThreshold": "10",
    "diff.algorithm": "patience",
    "diff.dirstat": "lines,0",
    "diff.external": "false",
    "diff.ignoreSubmodules": "all",
    "diff.orderFile": "{place}/missing",
    "diff.renameLimit": "1",
    "diff.renames": "false",
    "diff.statGraphWidth": "1",
    "diff.statNameWidth": "1",
    "diff.submodule": "log",
    "diff.wordRegex": ".",
    "diff.wsErrorHighlight": "all",
    "diff.context": "0",
    "diff.interHunkContext": "9",
    "diff.colorMoved": "zebra",
    "diff.colorMovedWS": "ignore-all-space",
    "diff.relative": "true",
    "log.date": "relative",
    "log.decorate": "full",
    "log.diffMerges": "off",
    "log.excludeDecoration": "x",
    "log.showRoot": "false",
    "format.pretty": "oneline",
    "format.notes": "true",
    "i18n.logOutputEncoding": "UTF-16",
    "color.ui": "always",
}
NOT_VALUES = ("diff.<driver>.", "diff.tool", "diff.guitool")


def odd_settings(place: Path) -> dict[str, str]:
    """Every option of this git that begins with `diff.` or `log.`, and what else changes a log."""
    listed = git_oracle.git(place, "help", "--config").decode().split()
    options = [name for name in listed if name.lower().startswith(("diff.", "log."))]
    plain = [name for name in options if "<" not in name and "*" not in name]
    known = {name.lower(): value for name, value in ODD.items()}
    chosen = {name: known.get(name.lower(), "true") for name in [*plain, *ODD]}
    return {
        name: value.format(place=place)
        for name, value in chosen.items()
        if not name.startswith(NOT_VALUES)
    }


def counted(folder: Path, home: Path) -> set[git_oracle.Row]:
    git = Git(clock=SystemClock(), silence_seconds=60.0, environ={**os.environ, "HOME": str(home)})
    source = GitSource(folder=folder, git=git, page_commits_max=100)
    wanted = Range(old=None, new=git_oracle.head(folder))
    return {git_oracle.Row(*commit[:6]) for page in source.pages(wanted) for commit in page.commits}


@pytest.mark.parametrize("where", ["of the repository", "of the user"])
def test_no_setting_changes_what_is_counted(
    crooked_history: Path, tmp_path: Path, where: str
) -> None:
    expected = git_oracle.rows(crooked_history, "main")
    folder = tmp_path / "odd.git"
    shutil.copytree(crooked_history, folder)
    (tmp_path / "attributes").write_text("* -diff\n")
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "attributes").write_text("* -diff\n")
    config = folder / "config" if where == "of the repository" else tmp_path / ".gitconfig"
    for name, value in odd_settings(tmp_path).items():
        git_oracle.git(tmp_path, "config", "--file", str(config), name, value)
    assert counted(folder, tmp_path) == expected
    shas = [row.sha for row in expected]
    served = Repository(folder).commits(shas, stats=True)
    assert {(c.sha, c.additions, c.deletions) for c in served} == {
        (row.sha, row.additions, row.deletions) for row in expected
    }


def test_attributes_of_a_work_tree_do_not_change_what_is_counted(tmp_path: Path) -> None:
    bare, tree = tmp_path / "bare.git", tmp_path / "tree"
    make = wayward(bare)
    make.commit("main", {".gitattributes": b"*.txt -diff\n"}, at=1_400_000_000)
    make.write()
    git_oracle.git(tmp_path, "clone", "-q", str(bare), str(tree))
    expected = git_oracle.rows(bare, "main")
    assert counted(tree, tmp_path) == counted(bare, tmp_path) == expected
    served = Repository(tree).commits([row.sha for row in expected], stats=True)
    assert {(c.sha, c.additions, c.deletions) for c in served} == {
        (row.sha, row.additions, row.deletions) for row in expected
    }


def test_a_linked_work_tree_and_borrowed_objects_are_read(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    wayward(bare)
    git_oracle.git(tmp_path, "clone", "-q", "--shared", str(bare), str(tmp_path / "borrowing"))
    git_oracle.git(
        tmp_path / "borrowing", "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "side"
    )
    assert counted(tmp_path / "linked", tmp_path) == git_oracle.rows(bare, "main")


def test_objects_named_by_sha256_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "sha256"
    git_oracle.git(
        tmp_path, "init", "-q", "--object-format=sha256", "--initial-branch=main", str(folder)
    )
    who = ("-c", "user.name=A", "-c", "user.email=a@x.org")
    git_oracle.git(folder, *who, "commit", "-q", "--allow-empty", "-m", "One")
    assert counted(folder, tmp_path) == git_oracle.rows(folder, "main")


def killed_in_a_view() -> None:
    """A process of its own makes a view and is killed in it."""
    child = os.fork()
    if child == 0:
        try:
            with bare_view(ObjectStore(folder="/", object_format="sha1")):
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)


def test_a_view_that_a_killed_process_left_is_removed_and_one_in_use_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed_in_a_view()
    (tmp_path / "tsuzuki-view-unlocked").mkdir()
    (tmp_path / "another-folder").mkdir()
    with bare_view(ObjectStore(folder="/", object_format="sha1")) as (view, _environment):
        killed_in_a_view()
        assert len(list(tmp_path.iterdir())) == 4
        remove_left_views.cache_clear()
        remove_left_views(str(tmp_path))
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {view.name, "tsuzuki-view-unlocked", "another-folder"}
    assert not view.exists()
