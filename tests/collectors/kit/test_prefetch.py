"""A question under way while its asker does something else."""

import threading

import pytest

from tsuzuki.collectors.kit.prefetch import Prefetch

LONG_SECONDS = 30.0


def test_the_asker_goes_on_while_the_question_is_under_way() -> None:
    go_on = threading.Event()
    with Prefetch[bool](name="test") as courier:
        coming = courier.send(lambda: go_on.wait(LONG_SECONDS))
        assert not coming.done()
        go_on.set()
        assert coming.result(LONG_SECONDS)


def test_what_a_question_raises_is_raised_where_its_answer_is_read() -> None:
    class Dead(BaseException):
        pass

    def die() -> None:
        raise Dead

    with Prefetch[None](name="test") as courier:
        for _ in range(2):
            with pytest.raises(Dead):
                courier.send(die).result(LONG_SECONDS)


def test_leaving_waits_for_the_question_that_nobody_waits_for() -> None:
    asked, answered = threading.Event(), threading.Event()

    def question() -> None:
        asked.set()
        leaving.wait(LONG_SECONDS)
        answered.set()

    leaving = threading.Event()
    with Prefetch[None](name="test") as courier:
        courier.send(question)
        assert asked.wait(LONG_SECONDS)
        leaving.set()
    assert answered.is_set()


def test_a_courier_that_was_sent_nowhere_has_no_thread() -> None:
    before = threading.active_count()
    with Prefetch[None](name="test"):
        assert threading.active_count() == before
