"""While git does not answer about a repository, files that it ignores are neither added to an index nor served."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collectors.codeindex.conftest import built, git
from support.web_client import served_application
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, IndexFile
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, Excerpt, IndexAnswer
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.collectors.codeindex.tree.part import scan_part
from tsuzuki.collectors.codeindex.tree.scan import scan_tree
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tool import ServerState, ToolProgress
from tsuzuki.model.errors import TsuzukiError

SECRET = "secret.py"
WALKED = {"main.py", "shop/cart.py", "shop/sums.py"}


@pytest.fixture
def secret(repository: Path, tmp_path: Path) -> Path:
    """A repository with a file that only a rule file of git's configuration ignores."""
    (repository / SECRET).write_text("def hidden_function():\n    return 'needle'\n")
    (tmp_path / "rules").write_text(f"{SECRET}\n")
    git(repository, "config", "core.excludesFile", str(tmp_path / "rules"))
    return repository


@pytest.fixture
def silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Make git refuse from here on, as it does in a repository of another user."""

    def refuse() -> None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 128\n")
        (tmp_path / "bin" / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    return refuse


@pytest.fixture
def served(repository: Path, index_folder: Path) -> CodeAnswers:
    """As a server answers callers from outside."""
    return CodeAnswers(repository, cwd=repository, folder=index_folder, is_confined=True)


def paths(root: Path) -> set[str]:
    return {file.path for file in scan_tree(root).files}


def indexed(index_folder: Path, root: Path) -> set[str]:
    index = IndexFile.open_existing(root, folder=index_folder)
    assert index is not None
    with index, index.reading():
        return {*stored_files.known_files(index.connection)}


def shown_by(answers: CodeAnswers) -> set[str]:
    """Every path that any answer has."""
    found = {row["path"] for text in ("def", "needle") for row in lines(answers, text)}
    found |= {entry.symbol.path for entry in answers.outline("").value}
    names = ["main.py", SECRET, "new.py", "shop/cart.py"]
    read = answers.read_each(names, lines="1").value
    return found | {one.path for one in read if isinstance(one, Excerpt)}


def lines(answers: CodeAnswers, text: str) -> list[dict[str, str]]:
    return list(answers.search(text, names=False).value.rows())


def code_of(call: Callable[[], IndexAnswer[object]]) -> str:
    with pytest.raises(TsuzukiError) as told:
        call()
    return told.value.specific_code


def test_a_walk_obeys_the_excludes_of_a_repository_about_which_git_is_silent(
    repository: Path, silence: Callable[[], None]
) -> None:
    (repository / ".git" / "info" / "exclude").write_text("main.py\nsums.py\n/cart.py\n")
    (repository / "shop" / ".gitignore").write_text("!sums.py\n")
    expected = paths(repository)
    assert expected == {"shop/.gitignore", "shop/cart.py", "shop/sums.py"}
    silence()
    assert paths(repository) == expected
    assert scan_tree(repository).unlisted_folders == [""]


def test_a_walk_below_the_top_obeys_the_rules_above(
    repository: Path, silence: Callable[[], None]
) -> None:
    (repository / ".git" / "info" / "exclude").write_text("/shop/sums.py\n")
    (repository / ".gitignore").write_text("inner.py\n")
    (repository / "shop" / ".deep").mkdir()
    (repository / "shop" / ".deep" / "inner.py").touch()
    (repository / "shop" / ".deep" / "outer.py").touch()
    assert paths(repository / "shop") == {".deep/outer.py", "cart.py"}
    silence()
    assert paths(repository / "shop") == {".deep/outer.py", "cart.py"}
    assert paths(repository / "shop" / ".deep") == {"outer.py"}


def test_a_repository_in_which_everything_is_ignored_has_no_files(repository: Path) -> None:
    (repository / ".git" / "info" / "exclude").write_text("*\n")
    assert paths(repository) == set()


def test_a_part_of_a_silent_repository_is_not_scanned_alone(
    repository: Path, silence: Callable[[], None]
) -> None:
    silence()
    assert scan_part(repository, ["main.py"]) is None


def test_a_nested_repository_about_which_git_is_silent_is_noted(repository: Path) -> None:
    inner = repository / "vendored"
    inner.mkdir()
    git(inner, "init", "--quiet")
    git(inner, "config", "core.excludesFile", str(inner / ".git" / "rules"))
    (inner / ".git" / "rules").write_text(f"{SECRET}\n")
    (inner / SECRET).touch()
    (inner / "code.py").touch()
    assert paths(repository) == {*WALKED, "vendored/code.py"}
    (inner / ".git" / "index").write_text("broken")
    scan = scan_tree(repository)
    assert {file.path for file in scan.files} >= {*WALKED, "vendored/code.py"}
    assert scan.unlisted_folders == ["vendored"]


def test_a_server_shows_what_was_listed_before_while_git_is_silent(
    secret: Path, builds: Builds, served: CodeAnswers, silence: Callable[[], None]
) -> None:
    built(builds, secret)
    assert shown_by(served) == WALKED
    silence()
    (secret / "new.py").write_text("def new_function():\n    return 'needle'\n")
    (secret / "main.py").write_text("def changed():\n    return 'needle'\n")
    assert shown_by(served) == WALKED
    assert served.search("changed").index.unlisted_folders == (".",)
    assert [one["path"] for one in lines(served, "needle")] == ["main.py"]
    for name in ("hidden_function", "new_function"):
        found = served.search(name).value
        assert (list(found.rows()), found.did_you_mean) == ([], None)


def test_a_server_shows_nothing_of_a_tree_that_git_never_listed(
    secret: Path, builds: Builds, served: CodeAnswers, silence: Callable[[], None]
) -> None:
    silence()
    assert shown_by(served) == set()
    built(builds, secret)
    assert shown_by(served) == set()
    assert code_of(lambda: served.references("hidden_function")) == "index_unlisted"
    assert code_of(lambda: served.search("hidden", lines=False)) == "index_unlisted"
    assert code_of(lambda: served.read(["hidden_function"])) == "index_unlisted"


def test_an_index_that_was_built_while_git_was_silent_is_cleaned_when_it_answers(
    secret: Path,
    builds: Builds,
    served: CodeAnswers,
    index_folder: Path,
    silence: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = os.environ["PATH"]
    silence()
    built(builds, secret)
    assert not builds.status(secret).is_listed
    assert indexed(index_folder, secret) == {*WALKED, SECRET}
    monkeypatch.setenv("PATH", path)
    assert shown_by(served) == WALKED  # without the index
    assert code_of(lambda: served.references("Cart")) == "index_unlisted"
    built(builds, secret)
    assert builds.status(secret).is_listed
    assert indexed(index_folder, secret) == WALKED
    assert served.references("Cart").value.uses
    assert served.search("hidden_functio").value.did_you_mean is None


def test_a_build_adds_nothing_to_a_listed_index_while_git_is_silent(
    secret: Path, builds: Builds, index_folder: Path, silence: Callable[[], None]
) -> None:
    built(builds, secret)
    silence()
    (secret / "new.py").touch()
    (secret / "main.py").write_text("def changed():\n    pass\n")
    built(builds, secret)
    assert builds.status(secret).is_listed
    assert indexed(index_folder, secret) == WALKED
    environ = {FOLDER_VARIABLE: str(index_folder)}
    local = CodeAnswers.of(str(secret), cwd=secret, environ=environ)
    assert list(local.search("changed", lines=False).value.rows())
    assert local.read([SECRET]).value, "the user's own questions are answered from every file"
    assert local.outline(SECRET).index.unlisted_folders == (".",)
    assert indexed(index_folder, secret) == WALKED


def test_an_ignored_file_that_its_user_reads_is_not_added_to_the_index(
    secret: Path, builds: Builds, index_folder: Path
) -> None:
    built(builds, secret)
    local = CodeAnswers(secret, cwd=secret, folder=index_folder)
    assert local.outline(SECRET).value
    assert indexed(index_folder, secret) == WALKED


def test_a_server_does_not_show_what_is_ignored_since_the_last_build(
    secret: Path, builds: Builds, served: CodeAnswers
) -> None:
    built(builds, secret)
    assert list(served.search("Cart", lines=False).value.rows())
    (secret / ".git" / "info" / "exclude").write_text("cart.py\n")
    found = served.search("Cart", lines=False).value
    assert list(found.rows()) == []
    assert code_of(lambda: served.read(["Cart"])) == "no_such_symbol"


def test_an_unlisted_nested_repository_hides_only_its_own_files(
    repository: Path, builds: Builds, served: CodeAnswers
) -> None:
    inner = repository / "vendored"
    inner.mkdir()
    git(inner, "init", "--quiet")
    (inner / SECRET).write_text("def hidden_function():\n    return 'needle'\n")
    (inner / ".git" / "index").write_text("broken")
    built(builds, repository)
    assert not builds.status(repository).is_listed
    assert shown_by(served) == WALKED
    assert list(served.search("Cart", lines=False).value.rows())
    assert list(served.search("hidden_function").value.rows()) == []
    assert served.search("hidden_functio").value.did_you_mean is None
    assert served.search("Cart").index.unlisted_folders == ("vendored",)


def test_requests_are_answered_from_the_last_listing_while_git_is_silent(
    secret: Path,
    builds: Builds,
    index_folder: Path,
    tmp_path: Path,
    silence: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built(builds, secret)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "tsuzuki.yaml").write_text(
        f"jobs: {{code: {{type: codeindex, roots: ['{secret}']}}}}\n", encoding="utf-8"
    )
    with served_application(workspace) as application:
        monkeypatch.setenv(FOLDER_VARIABLE, str(index_folder))
        silence()
        found = application.client.get("code/search?text=needle").json
        assert (found["items"], found["index"]["unlisted_folders"]) == ([], ["."])
        assert application.client.get(f"code/read?name={SECRET}&lines=1").status == 404
        assert application.client.get("code/read?name=main.py").json["lines"]
        assert len(application.client.get("code/files").json["items"]) == len(WALKED)
        builds.remove(builds.entry(secret))
        built(builds, secret)
        assert application.client.get("code/files").status == 503
        assert application.client.get("code/status").json["is_listed"] is False


def test_agents_over_http_are_answered_from_the_last_listing_while_git_is_silent(
    secret: Path, builds: Builds, index_folder: Path, silence: Callable[[], None]
) -> None:
    built(builds, secret)
    silence()
    environ = {FOLDER_VARIABLE: str(index_folder)}
    state = ServerState(environ=environ, cwd=secret, root=str(secret), is_confined=True)

    def ask(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    try:
        found = ask("code_search", query="needle")
        assert SECRET not in str(found)
        assert found.structured["index"]["unlisted_folders"] == ["."]
        assert ask("code_read", symbols=[SECRET], lines="1").is_error
        assert not ask("code_read", symbols=["main.py"]).is_error
    finally:
        state.close()
