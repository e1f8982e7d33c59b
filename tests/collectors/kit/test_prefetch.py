"""A request under way while its caller does something else."""

import threading

import pytest

from tsuzuki.collectors.kit.prefetch import Prefetch

LONG_SECONDS = 30.0


def test_the_caller_goes_on_while_the_request_is_under_way() -> None:
    go_on = threading.Event()
    with Prefetch[bool](name="test") as prefetch:
        coming = prefetch.send(lambda: go_on.wait(LONG_SECONDS))
        assert not coming.done()
        go_on.set()
        assert coming.result(LONG_SECONDS)


def test_what_a_request_raises_is_raised_where_its_result_is_read() -> None:
    class Dead(BaseException):
        pass

    def die() -> None:
        raise Dead

    with Prefetch[None](name="test") as prefetch:
        for _ in range(2):
            with pytest.raises(Dead):
                prefetch.send(die).result(LONG_SECONDS)


def test_leaving_waits_for_the_request_that_is_under_way() -> None:
    asked, answered = threading.Event(), threading.Event()

    def question() -> None:
        asked.set()
        leaving.wait(LONG_SECONDS)
        answered.set()

    leaving = threading.Event()
    with Prefetch[None](name="test") as prefetch:
        prefetch.send(question)
        assert asked.wait(LONG_SECONDS)
        leaving.set()
    assert answered.is_set()


def test_without_a_request_there_is_no_thread() -> None:
    before = threading.active_count()
    with Prefetch[None](name="test"):
        assert threading.active_count() == before
