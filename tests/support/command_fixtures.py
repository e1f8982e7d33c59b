"""Folders to type commands in: an empty one, one as `tsuzuki init` leaves it, and one with commits."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.workspace import Workspace
from tsuzuki.cli import run_cli
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import (
    RepositoryBuilder,
    Signature,
)

ANN = Signature.named("Ann Abe", "ann@example.org")
ANN_AT_WORK = Signature.named("ann", "Ann@Example.org")
BOB = Signature.named("Bob & Co", "bob@example.org")


def at(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(hour=23, minute=59, tzinfo=UTC).timestamp())


@pytest.fixture
def empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A folder with nothing in it."""
    return Workspace(tmp_path, capsys)


@pytest.fixture(scope="session")
def initialised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("initialised")
    assert run_cli(["init", "--quiet"], environ={}, cwd=folder) == 0
    with closing(sqlite3.connect(folder / "tsuzuki.db")) as database, database:
        # Tests share this folder for as long as they all take: a tick that came due meanwhile
        # would be one run more in the test that meets it.
        database.execute(
            "UPDATE tsuzuki_job_definitions SET planned_until = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+1 day')"
        )
    return folder


@pytest.fixture
def workspace(initialised: Path, empty: Workspace) -> Workspace:
    """A folder as `tsuzuki init` leaves it, except that its one job, `hello`, has no tick before tomorrow."""
    shutil.copytree(initialised, empty.folder, dirs_exist_ok=True)
    return empty


@pytest.fixture(scope="session")
def collected_once(initialised: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five commits of two authors on main, and two more on side, collected."""
    folder = tmp_path_factory.mktemp("collected")
    make = RepositoryBuilder(folder / "shop.git", default_branch="main")
    for number, (day, author) in enumerate(
        [
            ("2024-01-30", ANN),
            ("2024-01-31", BOB),
            ("2024-02-01", ANN_AT_WORK),
            ("2024-02-29", ANN),
            ("2024-04-01", ANN),
        ]
    ):
        files = {f"{number}.txt": b"line\n" * (number + 1)}
        last = make.commit("main", files, at=at(day), author=author, message=day)
    make.point("side", last)
    for day in ("2024-04-02", "2024-05-05"):
        make.commit("side", {day: b"x\n"}, at=at(day), author=BOB, message=day)
    make.write()
    shutil.copytree(initialised, folder, dirs_exist_ok=True)
    for words in (
        ["job", "disable", "hello"],
        ["commits", "add-target", "shop.git", "main"],
        ["commits", "add-target", "shop.git", "side"],
        ["commits", "collect", "--quiet"],
    ):
        assert run_cli(words, environ={}, cwd=folder) == 0
    return folder


@pytest.fixture
def collected(collected_once: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    capsys.readouterr()
    return Workspace(collected_once, capsys)


CAT = Signature.named("Cat", "cat@old.example.org")
BOT = Signature.named("renovate[bot]", "29139614+renovate[bot]@users.noreply.github.com")
PEOPLE = """\
people:
  Ann Abe: [ann@example.org]
  Bob: [bob@example.org]
  Catherine: [cat@example.org]
teams:
  Platform: [Ann Abe, Catherine]
  Web: [Bob, Ann Abe]
"""


@pytest.fixture(scope="session")
def team_once(initialised: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four people, a bot, a merge, a lock file, a mailmap and a file of people, collected."""
    folder = tmp_path_factory.mktemp("team")
    make = RepositoryBuilder(folder / "shop.git", default_branch="main")
    mailmap = b"<cat@example.org> <cat@old.example.org>\nDan Dee <dan@example.org>\n"
    day = at("2024-03-01")
    make.commit("main", {".mailmap": mailmap}, at=day, author=ANN)
    make.commit("main", {"uv.lock": b"x\n" * 100, "a.py": b"a\n"}, at=day, author=BOB)
    first = make.commit("main", {"package-lock.json": b"x\n" * 50}, at=day, author=BOT)
    make.point("side", first)
    side = make.commit("side", {"b.py": b"b\n" * 3}, at=day, author=CAT)
    dan = Signature.named("d", "Dan@example.org")
    last = make.commit("main", {"c.py": b"c\n" * 5}, at=at("2024-04-01"), author=dan)
    make.commit("main", {"b.py": b"b\n" * 3}, parents=[last, side], at=at("2024-04-02"), author=ANN)
    make.write()
    shutil.copytree(initialised, folder, dirs_exist_ok=True)
    (folder / "people.yaml").write_text(PEOPLE, encoding="utf-8")
    with (folder / "tsuzuki.yaml").open("a", encoding="utf-8") as file:
        file.write("\ncommits:\n  people: people.yaml\n")
    for words in (
        ["job", "disable", "hello"],
        ["commits", "add-target", "shop.git"],
        ["commits", "collect", "--quiet"],
    ):
        assert run_cli(words, environ={}, cwd=folder) == 0
    return folder


@pytest.fixture
def team(team_once: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    capsys.readouterr()
    return Workspace(team_once, capsys)
