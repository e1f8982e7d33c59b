"""A tree that came from a stranger starts nothing, holds nothing up, and shows only what is in it."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.answers.git_state import head_commit
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.trees import Trees
from tsuzuki.collectors.codeindex.tree.files import open_below
from tsuzuki.collectors.codeindex.tree.git import git_ignores, git_top, git_worktrees
from tsuzuki.collectors.codeindex.tree.git_folder import git_folder_of
from tsuzuki.collectors.codeindex.tree.part import scan_part
from tsuzuki.collectors.codeindex.tree.roots import find_root
from tsuzuki.collectors.codeindex.tree.scan import scan_tree
from tsuzuki.model.errors import TsuzukiError

from .conftest import Build, built, git
from .hostile_trees import (
    COMMANDS,
    ENDLESS,
    IMPOSSIBLE_PATHS,
    MARK,
    OUTSIDE,
    borrowed_objects,
    git_output,
    impossible_links,
    linked_folder,
    linked_folder_in_a_nested_repository,
    other_work_tree,
    slow_git,
)

COMMIT = "0123456789" * 4


@pytest.fixture
def answers(tree: Path, index_folder: Path) -> CodeAnswers:
    return CodeAnswers.of(str(tree), cwd=tree, environ={FOLDER_VARIABLE: str(index_folder)})


@pytest.fixture
def quick_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """A git that hangs is recognized after a moment."""
    monkeypatch.setattr("tsuzuki.collectors.codeindex.tree.git.HANG_CHECK_SECONDS", 0.1)


@pytest.mark.parametrize("hostile", COMMANDS, ids=lambda hostile: hostile.__name__)
def test_nothing_that_reads_a_tree_starts_a_command_of_it(
    tree: Path,
    tmp_path: Path,
    builds: Builds,
    answers: CodeAnswers,
    hostile: Callable[[Path, Path], None],
) -> None:
    mark = tmp_path / MARK
    hostile(tree, mark)
    assert not mark.exists()
    for folder in (tree, tree / "vendored"):
        if folder.is_dir():
            assert git_top(folder) in (folder, None)
            git_worktrees(folder)
            git_ignores(folder)
            scan_part(folder, ["main.py"])
    assert built(builds, tree).status == "completed"
    lines = answers.search("Cart().add", names=False).value.lines
    assert lines or hostile.__name__ == "filters", "nothing was searched"
    answers.search("ne+dle", regex=True)
    answers.read(["main"])
    answers.references("main")
    assert not mark.exists()


def test_the_lazy_fetch_of_a_hostile_tree_would_start_its_command(
    tree: Path, tmp_path: Path
) -> None:
    """Else the test above proves nothing."""
    mark = tmp_path / MARK
    COMMANDS[0](tree, mark)
    git(tree, "ls-files", "-co", "--exclude-standard")
    assert mark.exists()


def test_what_lies_behind_a_linked_folder_is_neither_indexed_nor_shown(
    tree: Path, builds: Builds, answers: CodeAnswers
) -> None:
    linked_folder(tree)
    built(builds, tree)
    assert "sub/secret.py" not in {file.path for file in scan_tree(tree).files}
    part = scan_part(tree, ["sub/secret.py", "main.py"])
    assert part is not None
    assert [file.path for file in part.scan.files] == ["main.py"]
    for text in (OUTSIDE, "needle"):
        found = answers.search(text).value
        assert (list(found.rows()), found.has_more_lines) == ([], False)
    for text in (OUTSIDE, "sub/secret.py"):
        with pytest.raises(TsuzukiError):
            answers.read([text])


def test_a_link_in_a_nested_repository_leads_nowhere(
    tree: Path, builds: Builds, answers: CodeAnswers
) -> None:
    linked_folder_in_a_nested_repository(tree)
    built(builds, tree)
    assert {file.path for file in scan_tree(tree).files}.isdisjoint({"vendored/sub/secret.py"})
    assert list(answers.search(OUTSIDE).value.rows()) == []
    with pytest.raises(TsuzukiError):
        answers.read(["vendored/sub/secret.py"])


def test_nothing_is_shown_of_a_repository_whose_objects_are_borrowed(
    tree: Path, builds: Builds, answers: CodeAnswers
) -> None:
    borrowed_objects(tree)
    assert git_output(tree, "grep", "-h", OUTSIDE), "git itself must reach the other repository"
    built(builds, tree)
    assert "secret.py" not in {file.path for file in scan_tree(tree).files}
    for text in (OUTSIDE, "needle"):
        found = answers.search(text).value
        assert (list(found.rows()), found.did_you_mean) == ([], None)
    for text in (OUTSIDE, "secret.py"):
        with pytest.raises(TsuzukiError):
            answers.read([text])


def test_a_work_tree_that_the_configuration_names_is_not_the_tree(
    tree: Path, index_folder: Path
) -> None:
    outside = other_work_tree(tree)
    assert git_top(tree) is None
    environ = {FOLDER_VARIABLE: str(index_folder)}
    assert find_root(None, cwd=tree, environ=environ) == tree
    assert Trees(environ=environ, cwd=tree, root=None).default().root == tree
    assert {file.path for file in scan_tree(tree).files}.isdisjoint({"secret.py", str(outside)})


def test_a_work_tree_of_another_repository_is_not_listed(tree: Path, tmp_path: Path) -> None:
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    for folder in (tree, stranger):
        git(folder, "init", "--quiet")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    git(tree, "worktree", "add", "--quiet", str(tmp_path / "ours"))
    assert git_worktrees(tree) == [tree, tmp_path / "ours"]
    (tree / ".git" / "worktrees" / "ours" / "gitdir").write_text(f"{stranger}/.git\n")
    assert git_worktrees(tree) == [tree]


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("quick_check")
@pytest.mark.parametrize("hostile", ENDLESS, ids=lambda hostile: hostile.__name__)
def test_a_file_without_end_that_git_waits_for_holds_nothing_up_for_long(
    tree: Path, answers: CodeAnswers, hostile: Callable[[Path], None]
) -> None:
    hostile(tree)
    assert "main.py" in {file.path for file in scan_tree(tree).files}
    assert list(answers.search("Cart").value.rows())
    git_worktrees(tree)


@pytest.mark.timeout(20)
@pytest.mark.usefixtures("quick_check")
@pytest.mark.parametrize("name", [".gitignore", ".gitattributes"])
def test_an_endless_rule_file_above_the_root_holds_nothing_up_for_long(
    repository: Path, index_folder: Path, name: str
) -> None:
    os.mkfifo(repository / name)
    root = repository / "shop"
    environ = {FOLDER_VARIABLE: str(index_folder)}
    assert [file.path for file in scan_tree(root).files] == ["cart.py", "sums.py"]
    assert list(CodeAnswers.of(str(root), cwd=root, environ=environ).search("Cart").value.rows())


@pytest.mark.usefixtures("quick_check")
def test_a_slow_git_whose_configuration_names_plain_files_is_waited_for(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rules").write_text("main.py\n")
    (tmp_path / "more").write_text(f"[core]\n\texcludesFile = {tmp_path / 'rules'}\n")
    git(repository, "config", "include.path", str(tmp_path / "more"))
    monkeypatch.setenv("PATH", slow_git(tmp_path / "bin", 0.5))
    assert {file.path for file in scan_tree(repository).files} == {"shop/cart.py", "shop/sums.py"}


def test_a_folder_that_becomes_a_link_after_the_scan_is_not_read(tree: Path) -> None:
    (tree.parent / "elsewhere").mkdir()
    (tree.parent / "elsewhere" / "cart.py").write_text("secret = 1\n")
    descriptor = open_below(tree, "shop/cart.py")
    os.close(descriptor)
    (tree / "shop").rename(tree / "moved")
    (tree / "shop").symlink_to(tree.parent / "elsewhere")
    with pytest.raises(NotADirectoryError):
        open_below(tree, "shop/cart.py")
    for path in ("../elsewhere/cart.py", "/etc/passwd", "shop//cart.py", "", "moved/.."):
        with pytest.raises(FileNotFoundError):
            open_below(tree, path)


@pytest.mark.parametrize("named", IMPOSSIBLE_PATHS.values(), ids=IMPOSSIBLE_PATHS)
def test_a_path_that_cannot_exist_is_no_git_folder(
    tree: Path, builds: Builds, index_folder: Path, named: bytes
) -> None:
    impossible_links(tree, named)
    for root in (tree, tree / "linked", tree / "shared"):
        assert built(builds, root).status == "completed"
        answers = CodeAnswers.of(str(root), cwd=root, environ={FOLDER_VARIABLE: str(index_folder)})
        assert list(answers.search("def").value.rows())
        assert head_commit(root) is None
    found = {file.path for file in scan_tree(tree).files}
    assert {"main.py", "linked/main.py", "shared/main.py"} <= found


@pytest.mark.timeout(60)
def test_a_fifo_holds_nothing_up(tree: Path, build: Build) -> None:
    os.mkfifo(tree / ".gitignore")
    (tree / "inner").mkdir()
    os.mkfifo(tree / "inner" / ".git")
    assert build().status == "completed"


@pytest.mark.timeout(60)
def test_a_fifo_in_place_of_the_head_is_no_head(repository: Path, answers: CodeAnswers) -> None:
    head = repository / ".git" / "HEAD"
    head.unlink()
    os.mkfifo(head)
    assert head_commit(repository) is None
    assert list(answers.search("Cart").value.rows())


@pytest.mark.parametrize(
    "head",
    [
        "ref: /dev/zero",
        "ref: {outside}",
        "ref: refs/../../../outside/password",
        "ref: refs/heads/linked",
        "password=1",
        COMMIT + " password",
    ],
)
def test_a_head_shows_nothing_but_a_commit(repository: Path, tmp_path: Path, head: str) -> None:
    outside = tmp_path / "outside" / "password"
    outside.parent.mkdir()
    outside.write_text(COMMIT)  # as a token may look
    (repository / ".git" / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (repository / ".git" / "refs" / "heads" / "linked").symlink_to(outside)
    (repository / ".git" / "HEAD").write_text(head.format(outside=outside))
    assert head_commit(repository) is None


def test_a_branch_is_found_as_a_file_and_packed(repository: Path) -> None:
    (repository / ".git" / "HEAD").write_text("ref: refs/heads/a/b\n")
    (repository / ".git" / "packed-refs").write_text(f"# pack-refs\n{COMMIT} refs/heads/a/b\n")
    assert head_commit(repository) == COMMIT[:12]


def test_a_git_folder_of_another_user_above_the_tree_does_not_count(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tree.parent / ".git"
    folder.mkdir()
    assert git_folder_of(tree) == folder
    real_stat = Path.stat

    def of_a_stranger(path: Path, **options: bool) -> os.stat_result:
        found = list(real_stat(path, **options))
        found[stat.ST_UID] += path == folder
        return os.stat_result(found)

    monkeypatch.setattr(Path, "stat", of_a_stranger)
    assert git_folder_of(tree) is None
