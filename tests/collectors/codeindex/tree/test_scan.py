"""The scan finds the files that count, from git or by a walk, and follows no link."""

import os
from pathlib import Path

import pytest

from collectors.codeindex.conftest import git
from tsuzuki.collectors.codeindex.tree.scan import scan_tree
from tsuzuki.model.errors import UsageError


def paths(root: Path) -> list[str]:
    return sorted(file.path for file in scan_tree(root).files)


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x = 1\n")


PLAIN = ["main.py", "shop/cart.py", "shop/sums.py"]


@pytest.mark.parametrize("kind", ["git", "walk"])
def test_ignore_files_are_obeyed(tree: Path, kind: str) -> None:
    if kind == "git":
        git(tree, "init", "--quiet")
    write(tree, "a.log", "keep.log", "build/out.py", "shop/local.py", "shop/build.py")
    (tree / ".gitignore").write_text("*.log\n!keep.log\n/build/\n\n# words\n")
    (tree / "shop" / ".gitignore").write_text("local.py\n!*.log\n")
    write(tree, "shop/seen.log")
    expected = [".gitignore", *PLAIN, "keep.log", "shop/.gitignore", "shop/build.py"]
    assert paths(tree) == sorted([*expected, "shop/seen.log"])


def test_a_pattern_that_is_none_is_passed_over(tree: Path) -> None:
    (tree / ".gitignore").write_text("!\nmain.py\n")
    assert paths(tree) == [".gitignore", "shop/cart.py", "shop/sums.py"]


@pytest.mark.parametrize("kind", ["git", "walk"])
def test_links_and_what_is_no_file_are_left_out(tree: Path, tmp_path: Path, kind: str) -> None:
    if kind == "git":
        git(tree, "init", "--quiet")
    write(tmp_path / "outside", "secret.py")
    (tree / "loop").symlink_to(".")
    (tree / "shop" / "up").symlink_to("..")
    (tree / "linked.py").symlink_to(tmp_path / "outside" / "secret.py")
    (tree / "folder").symlink_to(tmp_path / "outside")
    (tree / "dangling.py").symlink_to("nothing")
    os.mkfifo(tree / "fifo.py")
    assert paths(tree) == PLAIN


def test_a_walk_enters_no_caches_and_no_installed_packages(tree: Path) -> None:
    write(tree, "node_modules/x.js", "shop/__pycache__/c.py", ".venv/lib/y.py")
    assert paths(tree) == PLAIN


def test_a_folder_that_git_ignores_as_a_whole_is_walked(repository: Path) -> None:
    (repository / ".gitignore").write_text("/generated/\n")
    write(repository, "generated/code.py")
    assert paths(repository / "generated") == ["code.py"]


def test_a_part_of_a_repository_is_scanned_alone(repository: Path) -> None:
    assert paths(repository / "shop") == ["cart.py", "sums.py"]


def test_deleted_and_conflicting_files_are_right(repository: Path) -> None:
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    (repository / "main.py").unlink()
    git(repository, "mv", "shop/sums.py", "shop/totals.py")
    assert paths(repository) == ["shop/cart.py", "shop/totals.py"]


def test_a_worktree_in_the_tree_is_left_out_and_a_repository_is_not(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    git(repository, "worktree", "add", "--quiet", "inner", "-b", "side")
    (repository / "other").mkdir()
    git(repository / "other", "init", "--quiet")
    write(repository, "other/deep/file.py")
    assert paths(repository) == sorted([*PLAIN, "other/deep/file.py"])
    assert paths(repository / "inner") == PLAIN


def test_a_submodule_is_part_of_the_tree(repository: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    write(library, "lib.py")
    git(library, "init", "--quiet")
    git(library, "add", ".")
    git(library, "commit", "--quiet", "-m", "one")
    allow = ["-c", "protocol.file.allow=always"]
    git(repository, *allow, "submodule", "--quiet", "add", str(library), "vendor/library")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "two")
    assert paths(repository) == sorted([".gitmodules", *PLAIN, "vendor/library/lib.py"])
    git(repository, "submodule", "--quiet", "deinit", "--all", "--force")
    assert paths(repository) == sorted([".gitmodules", *PLAIN])


def test_odd_names_are_kept_and_one_that_is_not_utf8_says_so(repository: Path) -> None:
    write(repository, "with space.py", "new\nline.py", "日本.py", "-dash.py")
    with open(os.fsencode(repository) + b"/\xff.py", "wb") as file:  # noqa: PTH123 -- a name in bytes
        file.write(b"x = 1\n")
    found = {file.path: file.problem for file in scan_tree(repository).files}
    assert found == {
        **dict.fromkeys([*PLAIN, "with space.py", "new\nline.py", "日本.py", "-dash.py"]),
        "\\xff.py": "its name is not UTF-8",
    }


def test_a_tree_with_too_many_files_is_refused(tree: Path) -> None:
    with pytest.raises(UsageError, match="more than 2 files") as told:
        scan_tree(tree, files_max=2)
    assert told.value.specific_code == "tree_too_large"


def test_git_variables_of_the_caller_do_not_lead_it_astray(
    tree: Path, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert paths(repository) == PLAIN
