"""The pytest plug-in, which pytest finds by its entry point: the fixture `tsuzuki_test`."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

import pytest

if TYPE_CHECKING:
    from tsuzuki.library.program import Tsuzuki
    from tsuzuki.testing.app import TestedApp

TsuzukiTest: TypeAlias = "Callable[[Tsuzuki], TestedApp]"
"""The type of the fixture."""


@pytest.fixture
def tsuzuki_test() -> "Iterator[TsuzukiTest]":
    """Give an app a temporary database until the end of the test: `jobs = tsuzuki_test(app)`."""
    from tsuzuki.testing.app import on_temporary_database  # noqa: PLC0415 -- other tests do not load the library

    with ExitStack() as stack:
        yield lambda app: stack.enter_context(on_temporary_database(app))
