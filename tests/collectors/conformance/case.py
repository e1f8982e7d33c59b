"""What the conformance suite needs to know of a collector: one small adapter for each."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collector import Collector


class Case(ABC):
    """A collector with a source of several pages. It is used for one test."""

    collector: ClassVar[Collector]

    pages: int
    """How many pages its source has at least."""

    first_page: int = 2
    """The transaction of a run by which it has got further, and has not come to its end."""

    options: Mapping[str, Any]
    """The options of its job."""

    volatile: Collection[str]
    """`table.column` of what differs between two runs over the same source: times, ids of runs."""

    secrets: Collection[str]
    """What it must keep out of its log, errors, results and rows."""

    private: Collection[str] = ()
    """What may be in its rows, but not in its log, errors and results."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """`folder` is empty, and its own."""
        self.workspace = folder
        self.monkeypatch = monkeypatch

    @property
    def component(self) -> Component:
        assert self.collector.component is not None
        component: Component = self.collector.load(self.collector.component)
        return component

    @property
    def components(self) -> tuple[Component, ...]:
        return (ENGINE, self.component)

    @abstractmethod
    def section(self) -> BaseModel:
        """What the installation says for it."""

    def prepare(self, database: Database) -> None:  # noqa: B027 -- most need none
        """Store what must be there before a first run."""

    def use_every_secret(self) -> None:  # noqa: B027 -- most need none
        """Configure what a run without secrets does not need."""

    @abstractmethod
    def fail_with_secrets(self) -> None:
        """Let the source repeat the secrets in its next answers, which are errors."""

    @abstractmethod
    def hang(self) -> None:
        """Let the next request hang."""

    @abstractmethod
    def is_hanging(self) -> bool:
        """Whether a request hangs now."""

    def release(self) -> None:  # noqa: B027 -- not needed where a hanging request is ended
        """Let a hanging request be answered."""

    def close(self) -> None:  # noqa: B027 -- most need none
        """End what it started."""
