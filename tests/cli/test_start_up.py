"""Commands that only look start fast: they load no large library, and answer as the ordinary way does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.workspace import Workspace, process_environment

HEAVY = {
    "alembic",
    "asyncio",
    "httpx",
    "importlib.metadata",
    "logging",
    "multiprocessing",
    "prometheus_client",
    "pydantic",
    "redis",
    "rich.console",
    "yaml",
    "sqlalchemy",
    "structlog",
    "tsuzuki.collectors",
    "tsuzuki.config.load",
    "tsuzuki.config.schema",
    "tsuzuki.config.yaml",
    "tsuzuki.engine",
    "tsuzuki.wiring.application",
}
LOADED_BY_LOOKING = {
    "click",
    "cronsim",
    "rich",
    "tsuzuki",
}
"""All that is not of the standard library."""

LOADED_BY_SITE = {"apport_python_hook", "sitecustomize", "usercustomize"}
"""Loaded at the start of every Python of a distribution, whatever the program is."""

LOADED_BY_FEW = {
    "alembic",
    "fastapi",
    "httpx",
    "multiprocessing",
    "prometheus_client",
    "psycopg",
    "redis",
    "structlog",
    "tsuzuki.config.starter_file",
    "tsuzuki.engine.archive",
    "tsuzuki.engine.leader",
    "tsuzuki.engine.worker",
    "tsuzuki.services.access",
    "tsuzuki.services.bulk",
    "tsuzuki.services.changes",
    "tsuzuki.services.diagnosis",
    "tsuzuki.services.failures",
    "tsuzuki.services.logs",
    "tsuzuki.services.statistics",
    "tsuzuki.services.webhooks",
    "tsuzuki.store.backup",
    "tsuzuki.store.restore",
    "tsuzuki.store.logs",
}
"""What an ordinary command that starts or shows a run, or lists something, has no use for."""

ORDINARY = {
    ("job", "run", "hello"): {"jobs", "runs"},
    ("run", "explain", "1"): {"runs"},
    ("worker", "ls"): {"workers"},
    ("settings", "ls"): {"settings"},
}
"""Commands of the ordinary way, and the services that each asks."""

SERVICES_OF_COMMANDS = {"jobs", "runs", "settings", "workers"}

READING = [("job", "ls"), ("run", "ls"), ("run", "ls", "--job", "hello"), ("run", "show", "1")]
PROGRAM = """
import sys
from tsuzuki.cli import run_cli
code = run_cli(sys.argv[1:])
import json
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""

COUNTS_COLLECTIONS = """
import atexit, gc, sys
from tsuzuki.cli import main
starts = []
def searched():
    print(len(starts), len(gc.get_objects()), file=sys.stderr)
gc.callbacks.append(lambda phase, _: starts.append(phase))
atexit.register(searched)
main()
"""


@pytest.fixture
def cache(workspace: Workspace) -> str:
    """Where parsed files are kept; there is a run, and each command has been used once."""
    folder = str(workspace.folder / "cache")
    workspace.ok("job", "run", "hello")
    workspace.ok("job", "ls", XDG_CACHE_HOME=folder)
    return folder


def loaded_by(workspace: Workspace, cache: str, words: tuple[str, ...]) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=workspace.folder,
        env=process_environment({"XDG_CACHE_HOME": cache}),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return set(json.loads(ended.stderr.splitlines()[-1]))


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_reading_command_loads_no_large_library(
    workspace: Workspace, cache: str, words: tuple[str, ...]
) -> None:
    loaded = loaded_by(workspace, cache, words)
    heavy = {name for name in loaded for one in HEAVY if name == one or name.startswith(f"{one}.")}
    assert not heavy
    outside = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    installed = {name for name in outside if not name.startswith("_") and name != "distutils"}
    assert installed <= LOADED_BY_LOOKING | LOADED_BY_SITE


@pytest.mark.parametrize("words", ORDINARY, ids=" ".join)
def test_an_ordinary_command_loads_no_service_that_it_does_not_ask(
    workspace: Workspace, cache: str, words: tuple[str, ...]
) -> None:
    asked = ORDINARY[words]
    loaded = loaded_by(workspace, cache, words)
    needless = {f"tsuzuki.services.{name}" for name in SERVICES_OF_COMMANDS - asked}
    not_wanted = LOADED_BY_FEW | needless
    assert {
        name for name in loaded for one in not_wanted if name == one or name.startswith(f"{one}.")
    } == set()
    assert {f"tsuzuki.services.{name}" for name in asked} <= loaded


def test_the_program_runs_and_ends_without_looking_for_garbage_among_all_that_it_loads(
    workspace: Workspace,
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", COUNTS_COLLECTIONS, "worker", "ls"],
        cwd=workspace.folder,
        env=process_environment({}),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    searched, left_to_search = map(int, ended.stderr.splitlines()[-1].split())
    assert (searched, left_to_search < 1000) == (0, True)


@pytest.mark.parametrize("words", READING, ids=" ".join)
@pytest.mark.parametrize("output", ["table", "json", "plain"])
def test_both_ways_print_the_same(
    workspace: Workspace, cache: str, words: tuple[str, ...], output: str
) -> None:
    ordinary = workspace.ok(*words, "--output", output)
    assert workspace.ok(*words, "--output", output, XDG_CACHE_HOME=cache) == ordinary


def test_an_edited_file_is_read_at_once(workspace: Workspace, cache: str) -> None:
    workspace.append("\n  extra:\n    command: ['true']\n")
    told = workspace.ok("job", "ls", XDG_CACHE_HOME=cache)
    assert "not applied" in told.out
    assert "tsuzuki job apply" in told.err


def test_a_file_that_became_invalid_is_refused(workspace: Workspace, cache: str) -> None:
    workspace.append("\nnonsense: 1\n")
    assert workspace.run("job", "ls", XDG_CACHE_HOME=cache).code == 3


def test_a_pipe_in_place_of_the_file_is_refused_and_not_read(
    workspace: Workspace, cache: str
) -> None:
    os.mkfifo(workspace.folder / "pipe.yaml")
    ended = workspace.run("run", "ls", "--config", "pipe.yaml", XDG_CACHE_HOME=cache)
    assert ended.code == 3


def test_what_is_not_there_is_told_as_ever(workspace: Workspace, cache: str) -> None:
    for words in (("run", "show", "999"), ("run", "ls", "--job", "helo")):
        assert workspace.run(*words, XDG_CACHE_HOME=cache) == workspace.run(*words)


def test_a_database_that_is_gone_is_told_and_not_made(workspace: Workspace, cache: str) -> None:
    elsewhere = "sqlite:////nonexistent/tsuzuki.db"
    ended = workspace.run("run", "ls", "--database-url", elsewhere, XDG_CACHE_HOME=cache)
    assert ended.code == 5


def records_of(cache: str) -> list[Path]:
    return list(Path(cache, "tsuzuki", "configuration").iterdir())


def test_a_record_is_private_and_holds_no_expanded_variable(
    workspace: Workspace, cache: str
) -> None:
    workspace.append("\ndatabase_url: ${WHERE}\n")
    where = f"sqlite:///{workspace.database}"
    workspace.ok("job", "ls", XDG_CACHE_HOME=cache, WHERE=where)
    workspace.ok("job", "ls", XDG_CACHE_HOME=cache, WHERE=where)
    for record in records_of(cache):
        assert record.stat().st_mode & 0o777 == 0o600
        assert str(workspace.database) not in record.read_text()
    assert records_of(cache)[0].parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", ["", "{}", "[", '{"jobs": [1]}', "\x00"])
def test_a_damaged_record_is_ignored(workspace: Workspace, cache: str, damage: str) -> None:
    for record in records_of(cache):
        record.write_text(damage)
    assert workspace.ok("job", "ls", XDG_CACHE_HOME=cache) == workspace.ok("job", "ls")


def test_a_record_that_others_may_write_is_ignored(workspace: Workspace, cache: str) -> None:
    for record in records_of(cache):
        record.write_text(record.read_text().replace("hello", "forged"))
        record.chmod(0o666)
    assert "forged" not in workspace.ok("job", "ls", XDG_CACHE_HOME=cache).out


def test_a_folder_that_cannot_be_written_changes_nothing(workspace: Workspace) -> None:
    blocked = workspace.folder / "blocked"
    blocked.write_text("a file, not a folder")
    assert workspace.ok("job", "ls", XDG_CACHE_HOME=str(blocked)) == workspace.ok("job", "ls")


def test_old_records_are_removed(workspace: Workspace, cache: str) -> None:
    folder = records_of(cache)[0].parent
    for number in range(40):
        old = folder / f"{number:064}.json"
        old.write_text("{}")
        os.utime(old, (number, number))
    workspace.append("\n# edited\n")
    workspace.ok("job", "ls", XDG_CACHE_HOME=cache)
    assert len(records_of(cache)) == 32
