"""The code index over HTTP: only the trees of jobs, built by another process, then searched, read and referred to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from support.waiting import wait_until
from support.web_client import Client, Served, served_application
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE

FILE = "jobs: {code: {type: codeindex, roots: [tree]}}\n"
SUMS = "def total():\n    return 0\n\ndef tax():\n    return total()\n"


def make_workspace(folder: Path) -> Path:
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    (folder / "private.py").write_text("PRIVATE = 1\n", encoding="utf-8")
    root = folder / "tree"
    root.mkdir()
    (root / "sums.py").write_text(SUMS, encoding="utf-8")
    (root / ".gitignore").write_text(".env\nhidden.py\n", encoding="utf-8")
    (root / "hidden.py").write_text("PRIVATE = 1\ndef private(): ...\n", encoding="utf-8")
    (root / ".env").write_text("KEY=PRIVATE\n", encoding="utf-8")
    (root / os.fsdecode(b"na\xefve.py")).write_text("def odd(): ...\n", encoding="utf-8")
    return folder


@contextmanager
def serving(workspace: Path) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch, served_application(workspace) as served:
        patch.setenv(FOLDER_VARIABLE, str(workspace / "indexes"))
        yield served


def build(client: Client, workspace: Path) -> str:
    """The id of a build that has completed."""
    assert client.get("code/status").json["state"] == "missing"
    assert client.get("code/references?name=total").code == "index_missing"
    started = client.post("code/builds", {"tree": str(workspace / "tree")})
    assert (started.status, started.json["is_new"]) == (202, True), started.body
    place = started.headers["location"]
    wait_until(lambda: client.get(place).json["status"] != "running", "the build has ended")
    build = client.get(place).json
    assert (build["status"], build["result"]["updatedFiles"]) == ("completed", 2), build
    return str(build["id"])


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_workspace(tmp_path_factory.mktemp("workspace"))


@pytest.fixture(scope="module")
def served(workspace: Path) -> Iterator[Served]:
    with serving(workspace) as served:
        yield served


@pytest.fixture(scope="module")
def built(served: Served, workspace: Path) -> str:
    return build(served.client, workspace)


def test_the_status_tells_of_the_build(client: Client, built: str, workspace: Path) -> None:
    status = client.get("code/status").json
    assert (status["state"], status["symbols"], status["build"]["id"]) == ("ready", 2, built)
    (tree,) = client.get("code/trees").json["items"]
    about = (tree["tree"], tree["job"], tree["is_indexed"], tree["state"], tree["symbols"])
    assert about == (str(workspace / "tree"), "code", True, "ready", 2)
    assert client.get("code/builds/build-1-aaaaaa").code == "build_unknown"


@pytest.mark.usefixtures("built")
def test_code_is_searched_read_and_referred_to(client: Client) -> None:
    found = client.get("code/search?text=tot").json
    assert found["items"][0]["name_path"] == "total"
    assert found["index"]["state"] == "ready"
    lines = client.get("code/search?text=return&where=text&limit=1").json
    assert (lines["items"][0]["kind"], lines["has_more_lines"]) == ("text", True)
    read = client.get("code/read?name=sums.py:tax").json
    assert [line["text"] for line in read["lines"]] == SUMS.splitlines()[3:]
    assert client.get("code/read?name=sums.py&lines=1-1").json["lines"][0]["line"] == 1
    uses = client.get("code/references?name=total&exact=true").json
    assert (uses["total"], uses["exact"], uses["items"][0]["place"]) == (1, 1, "sums.py:5")


@pytest.mark.usefixtures("built")
def test_a_file_whose_name_is_no_text_is_told_as_a_problem(client: Client) -> None:
    (problem,) = client.get("code/status").json["problems"]
    assert problem["path"] == r"na\xefve.py"


@pytest.mark.usefixtures("built")
def test_lines_are_found_by_an_expression(client: Client) -> None:
    found = client.get(f"code/search?text={quote('^def t.x')}&regex=true").json
    assert [item["place"] for item in found["items"]] == ["sums.py:4"]


@pytest.mark.usefixtures("built")
def test_a_file_is_outlined_and_the_tree_mapped(client: Client) -> None:
    outlined = client.get("code/outline?path=sums.py&limit=1").json
    assert ([one["name"] for one in outlined["items"]], outlined["has_more"]) == (["total"], True)
    assert [one["path"] for one in client.get("code/map?focus=tax").json["items"]] == ["sums.py"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("path", ["../private.py", "hidden.py", ".git"])
def test_no_ignored_file_is_outlined(client: Client, path: str) -> None:
    answer = client.get(f"code/outline?path={quote(path)}")
    assert (answer.status, answer.code) == (404, "no_such_file")
    assert b"PRIVATE" not in answer.body


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "name", ["../private.py", "private.py:1", "~no-user/x", "/etc/passwd", ".env", ".env:1-1"]
)
def test_nothing_outside_of_the_tree_and_no_ignored_file_is_read(
    client: Client, workspace: Path, name: str
) -> None:
    given = str(workspace / name) if name == "private.py:1" else name
    answer = client.get(f"code/read?name={quote(given)}")
    assert answer.status == 404, answer.body
    assert b"PRIVATE" not in answer.body


@pytest.mark.parametrize(
    "path",
    ["status?", "search?text=x&", "read?name=x&", "references?name=x&", "outline?", "map?"],
)
def test_a_tree_that_no_job_names_is_refused(client: Client, workspace: Path, path: str) -> None:
    for tree in (workspace, workspace / "tree" / "..", Path("/")):
        answer = client.get(f"code/{path}tree={quote(str(tree))}")
        assert (answer.status, answer.code) == (404, "tree_unknown")


def test_a_build_of_another_folder_is_refused(client: Client, workspace: Path) -> None:
    answer = client.post("code/builds", {"tree": str(workspace)})
    assert (answer.status, answer.code) == (404, "tree_unknown")
    assert str(workspace / "tree") in answer.json["hint"]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("search?text=x&kind=clas", "unknown_kind"),
        ("search?text=(x&regex=true", "bad_regex"),
        ("read?name=sums.py&lines=9-1", "bad_lines"),
        ("references?name=sums.py", "bad_symbol"),
    ],
)
def test_a_wrong_question_is_told(client: Client, path: str, code: str) -> None:
    answer = client.get(f"code/{path}")
    assert (answer.status, answer.code) == (422, code), answer.body


def test_an_index_is_built_anew_and_removed(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    with serving(workspace) as served:
        build_anew_and_remove(served, workspace)


def build_anew_and_remove(served: Served, workspace: Path) -> None:
    client = served.client
    built = build(client, workspace)
    outside = client.post("code/builds", {"paths": ["../private.py"]})
    assert (outside.status, outside.code) == (422, "path_outside")
    place = client.post("code/builds", {"force": True}).headers["location"]
    wait_until(lambda: client.get(place).json["status"] != "running", "the build has ended")
    assert client.get(place).json["result"]["updatedFiles"] == 2
    assert not place.endswith(built)
    tree = quote(str(workspace / "tree"))
    assert client.as_("viewer").delete(f"code/indexes?tree={tree}").status == 403
    assert client.delete(f"code/indexes?tree={tree}").status == 204
    assert client.get("code/trees").json["items"][0]["state"] is None
    assert client.delete(f"code/indexes?tree={tree}").code == "no_index"
    entry, *_ = served.application.audit.find(object_type="tree")
    assert (entry.action, entry.actor) == ("codeindex.remove", "user:admin")
