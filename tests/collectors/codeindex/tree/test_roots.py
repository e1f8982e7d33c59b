"""Which folder is meant, and which are refused with a way on."""

import os
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.tree.roots import find_root, usable_root
from tsuzuki.model.errors import NotFound, NotPermitted, TsuzukiError, UsageError


def test_an_argument_goes_before_the_variable_before_the_repository(repository: Path) -> None:
    inside = repository / "shop"
    variable = {"TSUZUKI_CODEINDEX_ROOT": str(inside)}
    assert find_root(".", cwd=inside, environ=variable) == inside
    assert find_root(None, cwd=repository, environ=variable) == inside
    assert find_root(None, cwd=inside, environ={}) == repository


def test_outside_of_a_repository_it_is_the_current_folder(tree: Path) -> None:
    assert find_root(None, cwd=tree / "shop", environ={}) == tree / "shop"


@pytest.mark.parametrize("where", ["home", "above home", "top", "link to home"])
def test_home_and_what_is_above_it_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    home = tmp_path / "people" / "ann"
    home.mkdir(parents=True)
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    folder = {
        "home": home,
        "above home": tmp_path / "people",
        "top": Path("/"),
        "link to home": tmp_path / "link",
    }[where]
    with pytest.raises(UsageError) as told:
        usable_root(folder)
    assert told.value.specific_code == "root_refused"
    (home / "project").mkdir()
    assert usable_root(home / "project") == home / "project"


def test_what_is_wrong_with_a_root_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(folder: Path, kind: type[TsuzukiError]) -> TsuzukiError:
        with pytest.raises(kind) as raised:
            usable_root(folder)
        return raised.value

    missing = told(tree / "shopp", NotFound)
    assert (missing.specific_code, missing.hint) == ("root_missing", 'Did you mean "shop"?')
    assert told(tree / "main.py", UsageError).specific_code == "root_not_folder"
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    assert told(tree / "a", TsuzukiError).specific_code in ("root_not_folder", "root_missing")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert told(tree / "shop", NotPermitted).specific_code == "root_unreadable"
