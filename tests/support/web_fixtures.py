"""One served workspace for all tests of a module: a job of the file, a job of the database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.web_client import Client, Served, served_application

FILE = """\
jobs:
  from-file:
    command: ["true"]
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def served(workspace: Path) -> Iterator[Served]:
    with served_application(workspace) as served:
        served.application.jobs.apply()
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served


@pytest.fixture(scope="module")
def client(served: Served) -> Client:
    return served.client
