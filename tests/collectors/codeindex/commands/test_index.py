"""`tsuzuki index` needs no workspace, and says what is wrong with a tree."""

import shlex
import sys
from pathlib import Path

import pytest

from support.workspace import Ended, Workspace


@pytest.fixture
def tree(empty: Workspace) -> Workspace:
    """Two Python files, and a folder for index files."""
    (empty.folder / "tree" / "deep").mkdir(parents=True)
    (empty.folder / "tree" / "one.py").write_text("def one():\n    pass\n")
    (empty.folder / "tree" / "deep" / "two.py").write_text("class Two:\n    pass\n")
    return empty


def index(workspace: Workspace, *words: str, root: str | None = "tree") -> Ended:
    folder = str(workspace.folder / "indexes")
    place = [root] if root else []
    return workspace.run("index", *words, *place, TSUZUKI_CODEINDEX_FOLDER=folder)


def test_build_then_status_then_ls_then_rm(tree: Workspace) -> None:
    assert index(tree, "status", "-o", "json").data["state"] == "missing"
    built = index(tree, "build", "-o", "json")
    assert built.code == 0
    assert built.data["job"]["result"]["updatedFiles"] == 2
    assert built.data["job"]["result"]["totalIndexedSymbols"] == 2
    status = index(tree, "status", "-o", "json").data
    assert (status["state"], status["stats"]["total"]) == ("ready", 2)
    assert status["languages"] == {"python": 2}
    assert status["job"] == built.data["job"]
    job = index(tree, "status", "--job", built.data["job"]["id"], "-o", "json").data
    assert job == built.data["job"]
    (entry,) = index(tree, "ls", "-o", "json", root=None).data
    assert (entry["root"], entry["files"]) == (str(tree.folder / "tree"), 2)
    assert index(tree, "rm", "-o", "json").error["code"] == "not_confirmed"
    assert index(tree, "rm", "--yes").code == 0
    assert index(tree, "ls", "-o", "json", root=None).data == []
    assert [*(tree.folder / "indexes").iterdir()] == []


def test_people_get_a_table_and_machines_the_contract(tree: Workspace) -> None:
    built = index(tree, "build")
    assert built.out.splitlines()[0].split() == ["BUILD", "FILES", "UPDATED", "REMOVED", "SYMBOLS"]
    assert "STATE       ready" in index(tree, "status").out
    assert "There is no index yet" in tree.run("index", "ls", TSUZUKI_CODEINDEX_FOLDER="none").err


def test_an_index_whose_root_is_gone_can_be_removed(tree: Workspace) -> None:
    index(tree, "build")
    (tree.folder / "tree").rename(tree.folder / "moved")
    (entry,) = index(tree, "ls", "-o", "json", root=None).data
    assert entry["state"] == "root gone"
    assert index(tree, "rm", "--gone", "--yes", root=None).code == 0
    assert index(tree, "ls", "-o", "json", root=None).data == []


@pytest.mark.parametrize("output", ["table", "json"])
def test_the_exit_code_of_a_failed_build_is_the_same_in_every_format(
    tree: Workspace, output: str
) -> None:
    assert index(tree, "build", "--lsp", "python=no-such-server").code == 1
    failed = index(tree, "status", "-o", "json").data["job"]
    assert failed["status"] == "failed"
    assert index(tree, "status", "--job", failed["id"], "-o", output).code == 1


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (["build", "treee"], 4, "root_missing"),
        (["build", "tree/one.py"], 2, "root_not_folder"),
        (["build", "/"], 2, "root_refused"),
        (["build", "tree", "--lsp", "pyhton=x"], 2, "unknown_language"),
        (["build", "tree", "--lsp", "python"], 2, "bad_lsp"),
        (["build", "tree", "--lsp", "python=no-such-server"], 1, "build_failed"),
        (["status", "tree", "--job", "build-1-aaaaaa"], 4, "build_unknown"),
        (["rm", "tree", "--yes"], 4, "no_index"),
        (["watch", "tree"], 2, "endless_output"),
        (["rm"], 2, "usage"),
        (["rm", "tree", "--gone"], 2, "usage"),
    ],
)
def test_bad_input_is_told_with_a_code(
    tree: Workspace, words: list[str], exit_code: int, code: str
) -> None:
    ended = index(tree, *words, "-o", "json", root=None)
    assert (ended.code, ended.error["code"]) == (exit_code, code)


def test_home_is_refused(tree: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tree.folder / "tree"))
    assert index(tree, "build", "-o", "json").error["code"] == "root_refused"


def test_a_corrupt_index_is_told_and_built_anew(tree: Workspace) -> None:
    index(tree, "build")
    (file,) = Path(tree.folder / "indexes").glob("*.sqlite")
    file.write_bytes(b"no database" * 1000)
    assert index(tree, "status", "-o", "json").error["code"] == "index_corrupt"
    again = index(tree, "build")
    assert again.code == 0
    assert "warning: the index was corrupt; it was kept as" in again.err


def test_a_build_in_the_background_gives_its_id(tree: Workspace) -> None:
    started = index(tree, "build", "--background", "-o", "json").data
    assert started["is_new"]
    followed = index(tree, "build", "-o", "json").data
    assert followed["job"]["status"] == "completed"


@pytest.mark.parametrize("words", [[], ["--background"]])
def test_a_language_server_gives_the_symbols(tree: Workspace, words: list[str]) -> None:
    script = Path(__file__).parents[1] / "lsp_server.py"
    command = shlex.join([sys.executable, "-I", str(script), "good"])
    assert index(tree, "build", "--lsp", f"python={command}", *words).code == 0
    if words:  # follow it
        index(tree, "build", "--lsp", f"python={command}")
    status = index(tree, "status", "-o", "json").data
    assert status["extractors"] == {f"lsp: {command}": 2}
    assert status["stats"]["total"] == 3  # a field of the class Two, too
    assert index(tree, "build", "--lsp", "python=none", "-o", "json").data["problems"] == []
    assert index(tree, "status", "-o", "json").data["extractors"] == {"tree-sitter": 2}
