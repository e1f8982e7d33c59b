"""`tsuzuki doctor` finds what is wrong, says what to do, and shows no secret."""

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from support.databases import opened
from support.factories import add_worker
from support.git_histories import straight
from support.workspace import Workspace
from tsuzuki.cli.demo.demo import demo_parts
from tsuzuki.cli.demo.services import DemoServices
from tsuzuki.cli.demo.workspace import DemoWorkspace
from tsuzuki.collectors.feeds.sandbox.gemini import KEY as GEMINI_KEY
from tsuzuki.collectors.feeds.sandbox.gemini import Gemini
from tsuzuki.collectors.feeds.sandbox.openai_compatible import KEY as OPENAI_KEY
from tsuzuki.collectors.feeds.sandbox.openai_compatible import OpenAICompatible
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.loop_failure import LoopFailure
from tsuzuki.sandbox.server import StandIn
from tsuzuki.services import diagnosis
from tsuzuki.store import failing_loops
from tsuzuki.store.sql.sqlite_lock import LockHolder, write_note

NOW = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
UNREACHABLE = "postgresql://127.0.0.1:1/nothing"
SECRET = "a-secret-word"


def checks(workspace: Workspace, code: int = 0, **environ: str) -> dict[str, dict[str, Any]]:
    """The rows by what was looked at."""
    ended = workspace.run("doctor", "--output", "json", **environ)
    assert ended.code == code, ended.out
    assert SECRET not in ended.out
    return {row["what"]: row for row in ended.data}


def results(rows: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {what: row["result"] for what, row in rows.items()}


@pytest.fixture
def demo(empty: Workspace) -> Iterator[DemoServices]:
    """A workspace with a job of each kind, and the services that they call."""
    straight(empty.folder / "gitlab" / "demo" / "atlas.git", 1)
    parts = demo_parts().values()
    workspace = DemoWorkspace(empty.folder, parts=parts, clock=ManualClock(NOW))
    workspace.make_folder()
    ports = dict.fromkeys(PORTS, 0)
    with DemoServices(workspace.servers(), ports=ports, clock=SystemClock()) as services:
        workspace.write(services.ports)
        empty.ok("job", "apply")
        yield services


def application_of(demo: DemoServices, name: str) -> Any:
    """The application that a stand-in of the demo serves."""
    server = demo.servers[name]
    assert isinstance(server, StandIn)
    return server.application


PORTS = ("gitlab", "books", "mail", "feeds", "mastodon")
SERVICES = ("books: Google Books", "books: mail", "feeds: account default")


def test_where_there_is_nothing_it_says_how_to_start_and_makes_nothing(empty: Workspace) -> None:
    rows = checks(empty, code=1)
    assert results(rows) == {"version": "ok", "configuration": "warn", "database": "fail"}
    assert "tsuzuki init" in rows["database"]["next"]
    assert empty.content() == {}


def test_a_new_workspace_has_no_fault_and_says_that_no_process_leads(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")  # its moment may have come since
    rows = checks(workspace)
    assert results(rows) == {
        "version": "ok",
        "configuration": "ok",
        "database": "ok",
        "disk": "ok",
        "clock": "ok",
        "leader": "warn",
        "workers": "warn",
        "due work": "ok",
    }
    assert all((row["next"] is None) == (row["result"] == "ok") for row in rows.values())
    assert "tsuzuki up" in rows["leader"]["next"]


def test_a_table_has_the_result_in_brackets_and_the_sum_on_stderr(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")  # its moment may have come since
    ended = workspace.ok("doctor")
    lines = ended.out.splitlines()
    assert lines[0].split() == ["RESULT", "WHAT", "FOUND", "NEXT"]
    assert lines[1].startswith("[ok]    version ")
    assert ended.err == "8 checks: 0 failed, 2 with a warning.\n"


def test_each_mistake_of_the_file_is_told_with_its_place(workspace: Workspace) -> None:
    workspace.append("\n  one:\n    comand: x\n  two:\n    command: x\n    timeout: soon\n")
    ended = workspace.run("doctor", "--output", "json")
    found = [row for row in ended.data if row["what"] == "configuration"]
    assert (ended.code, [row["result"] for row in found]) == (1, ["fail", "fail"])
    assert str(workspace.file) in found[0]["found"]
    assert found[0]["next"] == 'Did you mean "command"?'


def test_without_a_database_the_rest_is_looked_at(empty: Workspace, demo: DemoServices) -> None:
    del demo
    rows = checks(empty, code=1, TSUZUKI_DATABASE_URL=UNREACHABLE)
    assert rows["database"]["result"] == "fail"
    assert rows["disk"]["result"] == "ok"
    assert "leader" not in rows
    assert rows["feeds: account default"]["result"] == "ok"
    assert rows["books: Google Books"]["found"] == "not checked"


def test_both_databases_are_checked(empty: Workspace, empty_database_url: str) -> None:
    here = {"TSUZUKI_DATABASE_URL": empty_database_url}
    empty.file.write_text("jobs: {a: {command: x}}\n")
    missing = checks(empty, code=1, **here)
    assert any(what.startswith("database") for what in missing)
    empty.ok("db", "upgrade", **here)
    assert checks(empty, **here)["database"]["result"] == "ok"


def test_a_retention_of_logs_that_has_no_effect_is_a_warning(
    empty: Workspace, empty_database_url: str
) -> None:
    here = {"TSUZUKI_DATABASE_URL": empty_database_url}
    empty.file.write_text("jobs: {}\n")
    empty.ok("db", "upgrade", **here)
    rows = checks(empty, **here)
    if empty_database_url.startswith("sqlite"):
        assert "logs" not in rows
        return
    assert rows["logs"]["result"] == "warn"
    assert "log_retention_days_db (7 days) has no effect" in rows["logs"]["found"]
    assert "log_archive" in rows["logs"]["next"]
    empty.file.write_text("log_archive: ./logs\njobs: {}\n")
    assert "logs" not in checks(empty, **here)


def test_each_service_of_an_enabled_job_is_asked_and_lets_us_in(
    empty: Workspace, demo: DemoServices
) -> None:
    before = empty.data("books", "quota")["calls"]
    rows = checks(empty)
    assert {rows[what]["result"] for what in SERVICES} == {"ok"}
    assert rows[f"commits: http://127.0.0.1:{demo.ports['gitlab']}"]["result"] == "ok"
    assert rows["codeindex: code-index"]["found"] == str(empty.folder / "project")
    assert application_of(demo, "mastodon").statuses == []
    assert empty.data("books", "quota")["calls"] == before + 1


def test_a_service_that_refuses_is_a_fault_with_the_next_step(
    empty: Workspace, demo: DemoServices
) -> None:
    application_of(demo, "books").key = "another key"
    application_of(demo, "mastodon").account.token_revoked = True
    variables = {
        "SANDBOX_BOOKS_KEY": SECRET,
        "SANDBOX_GITLAB_TOKEN": SECRET,
        "SANDBOX_MASTODON_TOKEN": SECRET,
    }
    rows = checks(empty, code=1, **variables)
    wrong = {what for what, row in rows.items() if row["result"] == "fail"}
    gitlab = f"commits: http://127.0.0.1:{demo.ports['gitlab']}"
    assert wrong == {"books: Google Books", "feeds: account default", gitlab}
    assert all(rows[what]["next"] for what in wrong)


def test_a_service_that_is_down_is_a_fault_and_a_disabled_job_is_not_looked_at(
    empty: Workspace, demo: DemoServices
) -> None:
    demo.__exit__(None, None, None)
    rows = checks(empty, code=1)
    assert {rows[what]["result"] for what in SERVICES} == {"fail"}
    assert all(rows[what]["next"] for what in SERVICES)
    empty.ok("job", "disable", "new-books", "news-bot")
    assert not {*SERVICES} & checks(empty, code=1).keys()


def test_a_limit_of_calls_is_a_warning_that_says_how_long_to_wait(
    empty: Workspace, demo: DemoServices
) -> None:
    application_of(demo, "books").calls_per_minute = 0
    empty.ok("books", "ls")  # calls are counted from the first use
    ours = checks(empty, TSUZUKI_BOOKS_DAILY_LIMIT="0")["books: Google Books"]
    theirs = checks(empty)["books: Google Books"]
    assert "not checked" in ours["found"]
    assert "429" in theirs["found"]
    for row in (ours, theirs):
        assert row["result"] == "warn"
        assert re.fullmatch(r"Wait until \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ\.", row["next"])


def test_models_are_asked_for_nothing_that_is_paid(empty: Workspace) -> None:
    with StandIn(Gemini()) as gemini, StandIn(OpenAICompatible()) as openai:
        empty.file.write_text(_models_file(gemini.url, openai.url), encoding="utf-8")
        empty.ok("job", "apply")
        good = {"KEY_A": GEMINI_KEY, "KEY_B": OPENAI_KEY}
        rows = checks(empty, **good)
        assert {rows[f"feeds: model {name}"]["result"] for name in "ab"} == {"ok"}
        rows = checks(empty, code=1, KEY_A=SECRET, KEY_B=SECRET)
        assert {rows[f"feeds: model {name}"]["result"] for name in "ab"} == {"fail"}
        posts = [
            one for one in (*gemini.requests, *openai.requests) if one.request.method == "POST"
        ]
        assert posts == []


def _models_file(gemini: str, openai: str) -> str:
    return f"""\
feeds:
  private_hosts: [127.0.0.1]
  models:
    a: {{provider: gemini, base_url: "{gemini}", api_key: "${{KEY_A}}"}}
    b: {{provider: openai, model: m, base_url: "{openai}/v1", api_key: "${{KEY_B}}"}}
  accounts:
    default: {{type: file, path: posts.jsonl}}
jobs:
  bot:
    type: feeds
    feeds:
      one: {{url: "https://example.org/1", model: a}}
      two: {{url: "https://example.org/2", model: b}}
"""


def test_due_work_that_does_not_start_is_a_fault_with_the_run_to_ask_about(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "LATE_SECONDS", -1.0)
    workspace.ok("job", "update", "hello", "--unset", "schedule")
    run = workspace.ok("job", "run", "hello", "--output", "json").data
    row = checks(workspace, code=1)["due work"]
    assert row["next"] == f"See the reason with: tsuzuki run explain {run['run_id']}"


def test_runs_that_wait_because_of_their_job_are_a_warning(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "LATE_SECONDS", -1.0)
    workspace.ok("job", "update", "hello", "--unset", "schedule")
    run = workspace.ok("job", "run", "hello", "--output", "json").data
    workspace.ok("job", "disable", "hello")
    row = checks(workspace)["due work"]
    assert (row["result"], "disabled" in row["found"]) == ("warn", True)
    assert row["next"] == f"See: tsuzuki run explain {run['run_id']}"
    workspace.ok("job", "add", "other", "--", "true")
    other = workspace.ok("job", "run", "other", "--output", "json").data
    row = checks(workspace, code=1)["due work"]  # the one that waits for no reason is told
    assert row["next"] == f"See the reason with: tsuzuki run explain {other['run_id']}"


def test_a_loop_that_keeps_failing_is_a_fault_that_names_its_process(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    assert "loops" not in checks(workspace)
    failure = LoopFailure(loop="lead", failures=7, since=NOW, code="bug", error="ValueError('x')")
    with opened(f"sqlite:///{workspace.database}") as database, database.write() as connection:
        failing_loops.replace(connection, process="host-7-abc", failures=[failure])
    row = checks(workspace, code=1)["loops"]
    assert row["result"] == "fail"
    assert all(part in row["found"] for part in ("lead", "host-7-abc", "7 times", "ValueError"))


def test_jobs_of_the_file_that_are_not_applied_are_a_warning(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    assert "jobs" not in checks(workspace)
    workspace.append("\n  nightly:\n    command: x\n")
    row = checks(workspace)["jobs"]
    assert (row["result"], row["found"].endswith(": nightly")) == ("warn", True)
    assert "tsuzuki job apply" in row["next"]
    assert workspace.job("nightly")["sync_state"] == "not applied"


def test_a_database_that_can_only_be_read_is_a_fault_and_the_rest_is_looked_at(
    empty: Workspace, empty_database_url: str
) -> None:
    here = {"TSUZUKI_DATABASE_URL": empty_database_url}
    empty.file.write_text("jobs: {}\n")
    empty.ok("db", "upgrade", **here)
    with read_only(empty_database_url):
        rows = checks(empty, code=1, **here)
    assert (rows["database"]["result"], rows["leader"]["result"]) == ("fail", "warn")
    assert "is read-only" in rows["database"]["found"]
    assert checks(empty, **here)["database"]["result"] == "ok"


@contextmanager
def read_only(url: str) -> Iterator[None]:
    """SQLite: as a snapshot of a file is. PostgreSQL: as a standby is."""
    with opened(url) as database:
        if database.path is None:
            name = database.engine.url.database
            with database.write() as connection:
                connection.execute(
                    text(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
                )
            yield
            with database.write() as connection:
                connection.execute(text("SET TRANSACTION READ WRITE"))
                connection.execute(
                    text(f"ALTER DATABASE {name} RESET default_transaction_read_only")
                )
            return
    event.listen(Engine, "connect", _only_read)
    try:
        yield
    finally:
        event.remove(Engine, "connect", _only_read)


def _only_read(raw: sqlite3.Connection, _record: object) -> None:
    raw.execute("PRAGMA query_only = ON")


def test_a_file_that_this_user_may_not_write_is_a_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with TemporaryDirectory() as name:  # other users may not enter pytest's
        workspace = Workspace(Path(name), capsys)
        workspace.ok("init")
        workspace.ok("job", "disable", "hello")
        for file in workspace.folder.iterdir():
            file.chmod(0o444)
        workspace.folder.chmod(0o777)
        user = os.geteuid()
        os.seteuid(user or 65534)
        try:
            row = checks(workspace, code=1)["database"]
        finally:
            os.seteuid(user)
    assert (row["result"], "is read-only" in row["found"]) == ("fail", True)


def test_a_write_lock_that_another_holds_is_a_warning(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    with closing(sqlite3.connect(workspace.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        row = checks(workspace)["database"]
    assert (row["result"], "holds the write lock" in row["found"]) == ("warn", True)


def test_the_run_that_holds_the_write_lock_for_long_is_named(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    holder = LockHolder(pid=os.getpid(), run_id=7, job="import", since=datetime.now(UTC))
    with closing(sqlite3.connect(workspace.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write_note(workspace.database, holder)
        row = checks(workspace)["database"]
    assert (row["result"], "run 7 (import" in row["found"]) == ("warn", True)


def test_a_writer_without_a_run_is_named_with_its_seconds(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    since = datetime.now(UTC) - timedelta(seconds=40)
    holder = LockHolder(pid=os.getpid(), purpose="app.transaction()", since=since)
    with closing(sqlite3.connect(workspace.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        write_note(workspace.database, holder)
        row = checks(workspace)["database"]
    found = re.match(r"app\.transaction\(\) in process (\d+) .* for (\d+) s", row["found"])
    assert found is not None, row["found"]
    assert (row["result"], int(found[1]), int(found[2]) >= 40) == ("warn", os.getpid(), True)


def test_a_full_disk_and_clocks_that_differ_are_faults(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "DISK_FAULT_BYTES", 1 << 60)
    monkeypatch.setattr(diagnosis, "CLOCK_FAULT_SECONDS", -1.0)
    rows = checks(workspace, code=1)
    assert (rows["disk"]["result"], rows["clock"]["result"]) == ("fail", "fail")


def test_the_tree_of_an_index_job_must_be_there(workspace: Workspace) -> None:
    workspace.ok("job", "add", "tree", "--type", "codeindex", "--set", "roots=[nowhere]")
    row = checks(workspace, code=1)["codeindex: tree"]
    assert str(Path("nowhere")) in row["found"]
    assert "tsuzuki job update tree" in row["next"]


def test_a_job_that_no_worker_can_execute_is_a_fault_that_names_what_is_missing(
    workspace: Workspace,
) -> None:
    workspace.append("\n  elsewhere:\n    python: no_such_package:work\n")
    workspace.ok("job", "apply")
    workspace.ok("job", "run", "elsewhere")
    with opened(f"sqlite:///{workspace.database}") as database:
        add_worker(database, abilities=Abilities(kinds=frozenset({"python"})))
    row = checks(workspace, code=1)["handlers"]
    assert row["result"] == "fail"
    assert "elsewhere" in row["found"]
    assert "no_such_package" in row["found"]
