"""An answer counts when the tree kept still while it was made; otherwise it is made again from another snapshot."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

import pytest

from collectors.codeindex.answers.indexed_tree import IndexedTree
from tsuzuki.collectors.codeindex.answers.snapshots import (
    ASK_AGAIN,
    SECONDS_MAX,
    IndexState,
    snapshots,
)
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import NotFound


class Asking:
    """Asks which names `a.py` defines, and lets something happen before each answer is complete."""

    def __init__(self, tree: IndexedTree) -> None:
        self.clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        self.tree = tree
        self.names: list[str] = []
        self._numbers = count(2)

    def ask(self, meanwhile: Callable[[], object] = lambda: None) -> IndexState:
        for snapshot in snapshots(self.tree.root, self.tree.index_file, clock=self.clock):
            with snapshot:
                files, _ = snapshot.compare()
                file = files.get("a.py")
                assert file is not None
                self.names += [symbol.name for symbol in file.symbols]
                meanwhile()
        return snapshot.state

    def rewrite(self) -> None:
        self.tree.write({"a.py": f"def name_{next(self._numbers)}(): ...\n"})


@pytest.fixture
def asking(tree: IndexedTree) -> Asking:
    tree.write({"a.py": "def name_1(): ...\n"})
    tree.index()
    return Asking(tree)


def test_an_answer_from_a_tree_at_rest_is_made_once(asking: Asking) -> None:
    assert asking.ask().state == "ready"
    assert asking.names == ["name_1"]


def test_an_answer_is_made_again_if_a_file_that_it_read_was_written(asking: Asking) -> None:
    state = asking.ask(lambda: asking.rewrite() if len(asking.names) == 1 else None)
    assert asking.names == ["name_1", "name_2"]
    assert (state.state, state.reread) == ("ready", 1)


def test_a_refusal_from_a_tree_that_was_rewritten_is_not_raised(asking: Asking) -> None:
    def refuse_first() -> None:
        if len(asking.names) == 1:
            asking.rewrite()
            raise NotFound("it is between two places")

    assert asking.ask(refuse_first).state == "ready"
    assert asking.names == ["name_1", "name_2"]


def test_a_refusal_from_a_tree_at_rest_is_raised_as_it_is(asking: Asking) -> None:
    def refuse() -> None:
        raise NotFound("it is not there", hint="Look elsewhere.")

    with pytest.raises(NotFound) as refused:
        asking.ask(refuse)
    assert refused.value.hint == "Look elsewhere."
    assert asking.names == ["name_1"]
    assert not asking.tree.connection.in_transaction


def test_a_tree_that_does_not_come_to_rest_is_answered_as_changing(asking: Asking) -> None:
    def keep_writing() -> None:
        asking.rewrite()
        asking.clock.advance(SECONDS_MAX / 2)

    assert asking.ask(keep_writing).state == "changing"
    assert asking.names == ["name_1", "name_2"]


def test_a_refusal_from_a_tree_that_does_not_come_to_rest_says_so(asking: Asking) -> None:
    def refuse() -> None:
        asking.rewrite()
        asking.clock.advance(SECONDS_MAX)
        raise NotFound("it is not there", hint="Look elsewhere.")

    with pytest.raises(NotFound) as refused:
        asking.ask(refuse)
    assert refused.value.hint == f"{ASK_AGAIN} Look elsewhere."


def test_a_fault_is_raised_at_once_and_ends_the_reading_of_the_index(asking: Asking) -> None:
    def fail() -> None:
        asking.rewrite()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asking.ask(fail)
    assert asking.names == ["name_1"]
    assert not asking.tree.connection.in_transaction


def test_an_answer_that_was_not_checked_has_no_state(asking: Asking) -> None:
    snapshot = next(snapshots(asking.tree.root, asking.tree.index_file, clock=asking.clock))
    with snapshot:
        snapshot.compare()
    with pytest.raises(AttributeError):
        _ = snapshot.state
