"""Which tree is asked about: the argument, what the program was told, the environment, the current folder."""

from pathlib import Path

import pytest

from collectors.codeindex.conftest import Build, git
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.service.trees import Tree, Trees
from tsuzuki.model.errors import NotFound, UsageError


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another repository."""
    root = tmp_path / "other"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "a.py").write_text("a = 1\n")
    git(root, "init", "--quiet")
    return root


def trees(index_folder: Path, cwd: Path, root: str | None = None, **environ: str) -> Trees:
    return Trees(root=root, cwd=cwd, environ={FOLDER_VARIABLE: str(index_folder), **environ})


def test_the_repository_around_the_current_folder_is_the_last_resort(
    repository: Path, index_folder: Path
) -> None:
    assert trees(index_folder, repository / "shop").find(None) == Tree(root=repository)


def test_the_environment_beats_the_current_folder_and_an_option_beats_both(
    repository: Path, other: Path, tmp_path: Path, index_folder: Path
) -> None:
    third = tmp_path / "third"
    third.mkdir()
    environ = {"CLAUDE_PROJECT_DIR": str(other)}
    assert trees(index_folder, repository, **environ).find(None).root == other
    ours = {**environ, "TSUZUKI_CODEINDEX_ROOT": str(third)}
    assert trees(index_folder, repository, **ours).find(None).root == third
    assert trees(index_folder, third, str(repository), **ours).find(None).root == repository


def test_a_path_beats_them_all(repository: Path, other: Path, index_folder: Path) -> None:
    found = trees(index_folder, repository, str(repository))
    assert found.find(str(other)) == Tree(root=other)
    assert found.find(str(other / "lib")) == Tree(root=other, scope="lib")
    assert found.find(str(other / "lib" / "a.py")) == Tree(root=other, scope="lib/a.py")


def test_a_relative_path_starts_at_the_root(
    repository: Path, other: Path, index_folder: Path
) -> None:
    assert trees(index_folder, other, str(repository)).find("shop") == Tree(
        root=repository, scope="shop"
    )


def test_a_folder_inside_an_indexed_tree_is_a_part_of_it(
    tree: Path, index_folder: Path, build: Build
) -> None:
    build()
    whole = Tree(root=tree, scope="shop")
    assert trees(index_folder, tree.parent, str(tree / "shop")).find(None) == whole
    assert trees(index_folder, tree.parent).find(str(tree / "shop")) == whole


def test_a_confined_program_shows_nothing_around_its_root(
    tree: Path, index_folder: Path, build: Build
) -> None:
    build()
    environ = {FOLDER_VARIABLE: str(index_folder)}
    confined = Trees(root=str(tree / "shop"), cwd=tree, environ=environ, is_confined=True)
    assert confined.find(None) == Tree(root=tree / "shop")


def test_a_repository_inside_an_indexed_tree_is_not_a_part_of_it(
    tree: Path, index_folder: Path, build: Build
) -> None:
    build()
    git(tree / "shop", "init", "--quiet")
    assert trees(index_folder, tree, str(tree / "shop")).find(None) == Tree(root=tree / "shop")


def test_a_repository_inside_the_tree_is_a_tree_of_its_own(
    repository: Path, index_folder: Path
) -> None:
    inner = repository / "worktrees" / "inner"
    inner.mkdir(parents=True)
    git(inner, "init", "--quiet")
    assert trees(index_folder, repository).find("worktrees/inner") == Tree(root=inner)


@pytest.mark.parametrize("path", ["/", "~"])
def test_home_and_the_root_of_all_are_refused(
    path: str, repository: Path, index_folder: Path
) -> None:
    with pytest.raises(UsageError, match="is not indexed"):
        trees(index_folder, repository).find(path)
    with pytest.raises(UsageError, match="is not indexed"):
        trees(index_folder, repository, path).find(None)


def test_a_path_that_is_not_there_is_answered_with_a_guess(
    repository: Path, index_folder: Path
) -> None:
    with pytest.raises(NotFound) as caught:
        trees(index_folder, repository).find("shopp")
    assert caught.value.hint == 'Did you mean "shop"?'


def test_answers_are_about_the_part_that_is_meant(
    tree: Path, index_folder: Path, build: Build
) -> None:
    build()
    found = trees(index_folder, tree)
    shop = found.answers(Tree(root=tree, scope="shop"))
    assert {one.path for one in shop.references("total").value.uses} == {
        "shop/cart.py",
        "shop/sums.py",
    }
    top = found.answers(Tree(root=tree, scope="main.py"))
    assert top.references("total").value.uses == []
    assert [one.symbol.name for one in top.outline().value] == ["main"]
    assert {one.path for one in shop.map().value} == {"shop/cart.py", "shop/sums.py"}
    elsewhere = top.search("total").value
    assert elsewhere.names
    assert (elsewhere.names.found, elsewhere.lines) == ([], [])


def test_a_home_folder_in_git_is_not_the_tree_of_a_folder_in_it(
    tmp_path: Path, repository: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "notes").mkdir(parents=True)
    git(home, "init", "--quiet")
    monkeypatch.setenv("HOME", str(home))
    found = trees(index_folder, repository).find(str(home / "notes"))
    assert found == Tree(root=home / "notes")
