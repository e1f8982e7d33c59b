"""A place to collect in, on both databases."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.commit_collection import Collecting
from support.git_histories import wayward
from tsuzuki.collectors.commits.tables import COMPONENT
from tsuzuki.store.schema.migrate import ENGINE, Component
from tsuzuki.store.sql.database import Database


@pytest.fixture
def components() -> Sequence[Component]:
    return (ENGINE, COMPONENT)


@pytest.fixture
def collecting(live_database: Database, tmp_path: Path) -> Collecting:
    return Collecting(live_database, tmp_path, page_commits=5)


@pytest.fixture(scope="session")
def crooked_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with everything in it that can go wrong; no test changes it."""
    folder = tmp_path_factory.mktemp("histories") / "wayward.git"
    wayward(folder)
    return folder
