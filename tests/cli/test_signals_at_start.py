"""Signals before anything runs: none is lost, even if the exception that it raises is."""

import os
import signal
from contextlib import suppress

import pytest

from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.serve.foreground import ended_by_signals

ENDS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, ExitWith)]


@pytest.mark.parametrize(("number", "end"), ENDS)
@pytest.mark.parametrize("problem", [None, ValueError("unreachable")])
def test_a_signal_ends_the_block_also_if_its_exception_is_swallowed(
    number: signal.Signals, end: type[BaseException], problem: Exception | None
) -> None:
    def swallow() -> None:
        with ended_by_signals() as stop:
            with suppress(KeyboardInterrupt, ExitWith):
                os.kill(os.getpid(), number)
            assert stop.is_set()
            if problem:
                raise problem

    before = signal.getsignal(number)
    with pytest.raises(end):
        swallow()
    assert signal.getsignal(number) is before


def test_other_problems_stay_what_they_are() -> None:
    with pytest.raises(ValueError, match="as it is"), ended_by_signals():
        raise ValueError("as it is")
