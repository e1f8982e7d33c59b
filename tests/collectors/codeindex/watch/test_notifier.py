"""Notifications of a tree, read by its watcher and by questions in other threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from collectors.codeindex.watch.watched import write
from tsuzuki.collectors.codeindex.watch import notifier as notifier_module
from tsuzuki.collectors.codeindex.watch.notifier import Changed, NotificationsRefused, Notifier


def notifier_of(root: Path) -> Notifier:
    return Notifier(root, stopping=threading.Event(), is_own=lambda _path: False)


@pytest.fixture
def notifier(tree: Path) -> Iterator[Notifier]:
    made = notifier_of(tree)
    yield made
    made.close()


def test_what_a_question_has_read_is_still_told_to_the_watcher(
    notifier: Notifier, tree: Path
) -> None:
    told: list[Changed] = []
    notifier.on_changed = told.append
    with ThreadPoolExecutor(1) as watcher:
        waiting = watcher.submit(notifier.next, 120.0)
        write(tree, "main.py", "edited")
        assert notifier.drain()
        assert waiting.result(120).paths == {"main.py"}
    assert {path for one in told for path in one.paths} == {"main.py"}


def test_a_waiting_watcher_is_woken(notifier: Notifier) -> None:
    with ThreadPoolExecutor(1) as watcher:
        waiting = watcher.submit(notifier.next, 120.0)
        notifier.wake()
        assert waiting.result(120) == Changed()


def test_a_closed_notifier_says_so(notifier: Notifier) -> None:
    notifier.close()
    notifier.wake()
    assert not notifier.drain()


def test_a_refusal_met_by_a_question_reaches_the_watcher(
    notifier: Notifier, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: str) -> None:
        raise NotificationsRefused("no more")

    monkeypatch.setattr(notifier, "_add", refuse)
    write(tree, "new/file.py", "new")
    assert not notifier.drain()
    with pytest.raises(NotificationsRefused):
        notifier.next(120.0)


def test_without_a_list_of_mounts_notifications_are_refused(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_root: str) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(notifier_module, "MountChanges", missing)
    with pytest.raises(NotificationsRefused):
        notifier_of(tree)
