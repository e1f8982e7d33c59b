"""A place to collect in, on both databases."""

from pathlib import Path

import pytest

from support.commit_collection import Collecting
from support.git_histories import wayward
from tsuzuki.store.sql.database import Database


@pytest.fixture
def collecting(live_database: Database, tmp_path: Path) -> Collecting:
    return Collecting(live_database, tmp_path, page_commits=5)


@pytest.fixture(scope="session")
def crooked_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with everything in it that can go wrong; no test changes it."""
    folder = tmp_path_factory.mktemp("histories") / "wayward.git"
    wayward(folder)
    return folder
