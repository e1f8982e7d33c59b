"""The indexes behind the tools: built with the first question, caught up with at the start, told of at once."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_session import FOLDER_VARIABLE, make_tree
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.builds.builder import Builder
from tsuzuki.collectors.codeindex.tools import indexes
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.collectors.codeindex.tools.indexes import catch_up
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tool import ServerState, ToolProgress


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_tree(tmp_path / "tree")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "indexes"


@pytest.fixture
def new_state(root: Path, folder: Path) -> Iterator[Callable[[], ServerState]]:
    """What a server that starts has."""
    made = []

    def make() -> ServerState:
        made.append(ServerState(environ={FOLDER_VARIABLE: str(folder)}, cwd=root))
        return made[-1]

    yield make
    for state in made:
        state.close()


@pytest.fixture
def held_build(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Builds do not end before the event is set, or they are cancelled."""
    release = threading.Event()
    complete = Builder._complete

    def complete_later(self: Builder, gone: set[str], copied: set[str]) -> object:
        while not release.wait(0.01):
            self._tick()
        return complete(self, gone, copied)

    monkeypatch.setattr(Builder, "_complete", complete_later)
    yield release
    release.set()


def ask(state: ServerState, name: str, /, **arguments: Any) -> ToolAnswer:
    return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())


def status(state: ServerState) -> Any:
    return ask(state, "code_index_status").structured


def test_a_status_starts_nothing(new_state: Callable[[], ServerState], folder: Path) -> None:
    assert status(new_state())["state"] == "missing"
    assert not folder.exists()


def test_the_first_question_starts_a_build_and_a_partial_answer_says_how_far_it_is(
    new_state: Callable[[], ServerState],
    held_build: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(indexes, "FIRST_BUILD_SECONDS", 0.1)
    state = new_state()
    answer = ask(state, "code_references", name="total")
    assert not answer.is_error
    assert answer.structured["index"]["state"] == "building"
    assert f"building {answer.structured['index']['percent']} %" in answer.header
    unknown = ask(state, "code_read", symbols=["not_there_yet"])
    assert not unknown.is_error
    assert "no_such_symbol" in unknown.text


def test_a_build_and_its_status_are_told_at_once(
    new_state: Callable[[], ServerState], held_build: threading.Event
) -> None:
    state = new_state()
    started = ask(state, "code_index_build").structured
    assert (started["status"], started["already_running"]) == ("running", False)
    assert status(state)["job"]["id"] == started["id"]
    again = ask(state, "code_index_build").structured
    assert (again["id"], again["already_running"]) == (started["id"], True)
    held_build.set()
    ended = ask(state, "code_index_build", wait_seconds=30).structured
    assert ended["status"] == "completed"


def test_a_tree_that_was_asked_about_is_watched_until_the_server_ends(
    new_state: Callable[[], ServerState], root: Path
) -> None:
    others = {*threading.enumerate()}
    state = new_state()
    ask(state, "code_index_update")
    ask(state, "code_references", name="total")
    assert "watch" in [thread.name for thread in {*threading.enumerate()} - others]
    before = status(state)["stats"]["total"]
    (root / "later.py").write_text("def later(): pass\n")
    wait_until(lambda: status(state)["stats"]["total"] > before, "it is indexed unasked")
    state.close()
    assert "watch" not in [thread.name for thread in {*threading.enumerate()} - others]


def test_an_indexed_tree_is_caught_up_with_when_a_server_starts(
    new_state: Callable[[], ServerState], root: Path
) -> None:
    former = new_state()
    ask(former, "code_index_update")
    before = status(former)["stats"]["total"]
    former.close()  # its watcher would index the new file first
    (root / "later.py").write_text("def later(): pass\n")
    state = new_state()
    catch_up(state)
    wait_until(lambda: status(state)["stats"]["total"] > before, "the new file is indexed unasked")


def test_a_tree_that_was_never_asked_about_is_not_indexed_when_a_server_starts(
    new_state: Callable[[], ServerState], folder: Path
) -> None:
    catch_up(new_state())
    assert not folder.exists()


def test_a_server_that_ends_cancels_its_build(
    new_state: Callable[[], ServerState], held_build: threading.Event
) -> None:
    state = new_state()
    ask(state, "code_index_build")
    state.close()
    job = status(new_state())["job"]
    assert (job["status"], job["error"]) == ("failed", "cancelled")


def test_a_corrupt_index_is_built_anew(new_state: Callable[[], ServerState], folder: Path) -> None:
    ask(new_state(), "code_index_update")
    (file,) = folder.glob("*.sqlite")
    for part in folder.iterdir():
        part.unlink()
    file.write_bytes(b"not a database " * 100)
    answer = ask(new_state(), "code_references", name="tax")
    assert not answer.is_error, answer.text
    assert len([*folder.glob("*.corrupt-*")]) == 1
