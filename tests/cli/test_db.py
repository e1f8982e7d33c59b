"""Looking after the database: upgrade, check, backup, restore."""

import json
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.databases import PostgresServer
from support.workspace import Workspace


def alter(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement)


def test_an_upgrade_tells_from_which_revision_to_which(empty: Workspace) -> None:
    engine, *others = empty.data("db", "upgrade")
    assert (engine["component"], engine["before"], engine["changed"]) == ("engine", None, True)
    again, *_ = empty.data("db", "upgrade")
    assert (again["before"], again["changed"]) == (engine["after"], False)
    ended = empty.ok("db", "upgrade")
    assert [line.split() for line in ended.out.splitlines()] == [
        ["COMPONENT", "BEFORE", "AFTER"],
        *([one["component"], one["after"], one["after"]] for one in (engine, *others)),
    ]
    assert "already up to date" in ended.err


def test_an_upgrade_of_nothing_has_nothing_before(empty: Workspace) -> None:
    assert empty.ok("db", "upgrade", "-o", "plain").out.startswith("engine\t\t0")
    assert list(empty.content()) == ["tsuzuki.db"]


def test_a_sound_database_is_well_in_every_format(workspace: Workspace) -> None:
    before = workspace.content()
    heading, *lines = workspace.ok("db", "check").out.splitlines()
    assert heading.split() == ["SUBJECT", "RESULT"]
    assert {line.split()[1] for line in lines} == {"ok"}
    findings = workspace.data("db", "check")
    assert [finding["subject"] for finding in findings] == [line.split()[0] for line in lines]
    assert all(finding["ok"] for finding in findings)
    rows = workspace.ok("db", "check", "-o", "jsonl").out.splitlines()
    assert [json.loads(row) for row in rows] == findings
    assert "schema\ttrue" in workspace.ok("db", "check", "-o", "plain").out
    assert workspace.content() == before


def test_a_fault_is_found_told_with_a_hint_and_ends_with_1(workspace: Workspace) -> None:
    alter(workspace.database, "DROP TRIGGER tsuzuki_audit_log_delete")
    before = workspace.content()
    ended = workspace.run("db", "check")
    assert ended.code == 1
    (guards,) = (line for line in ended.out.splitlines() if line.startswith("guards"))
    assert "FAIL    missing: tsuzuki_audit_log_delete" in guards
    assert "restore a backup" in guards
    found = workspace.run("db", "check", "-o", "json")
    assert (found.code, found.err) == (1, "")
    assert [finding["subject"] for finding in found.data if not finding["ok"]] == ["guards"]
    assert workspace.content() == before


def test_a_check_does_not_migrate(workspace: Workspace) -> None:
    alter(workspace.database, "DELETE FROM tsuzuki_schema_version_engine")
    before = workspace.content()
    ended = workspace.run("db", "check", "-o", "json")
    assert ended.code == 1
    (schema,) = ended.data
    assert "tsuzuki db upgrade" in schema["hint"]
    assert workspace.content() == before


@pytest.mark.parametrize("verb", ["check", "backup"])
def test_a_database_that_does_not_exist_is_told_and_not_made(verb: str, empty: Workspace) -> None:
    ended = empty.run("db", verb, "-o", "json")
    assert (ended.code, ended.error["code"]) == (5, "database_missing")
    assert "tsuzuki db upgrade" in ended.error["hint"]
    assert empty.content() == {}


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "plain"])
def test_a_backup_tells_its_path_and_its_size(output: str, workspace: Workspace) -> None:
    out = workspace.ok("db", "backup", "copy.db", "-o", output).out
    copy = workspace.folder / "copy.db"
    size = copy.stat().st_size
    told = {
        "table": f"BACKUP  {copy}\nSIZE    {size / 1024:.1f} KiB\n",
        "plain": f"{copy}\t{size}\n",
    }
    if output in told:
        assert out == told[output]
    else:
        assert json.loads(out) == {"path": str(copy), "size_bytes": size}


def test_only_their_owner_may_read_a_database_and_its_backup(empty: Workspace) -> None:
    empty.ok("init", "new")
    path = empty.data("db", "backup", "-c", "new/tsuzuki.yaml")["path"]
    made = {"new": 0o700, "new/tsuzuki.db": 0o600, path: 0o600}
    modes = {name: stat.S_IMODE((empty.folder / name).stat().st_mode) for name in made}
    assert modes == made


def test_a_backup_holds_what_the_database_held(workspace: Workspace) -> None:
    workspace.ok(*"job add other -- x".split())
    path = workspace.data("db", "backup")["path"]
    assert Path(path).parent == workspace.folder
    workspace.ok("job", "rm", "other", "--yes")
    audit = workspace.data("audit", "ls", "--database-url", f"sqlite:///{path}")
    assert [entry["action"] for entry in audit] == ["job.add", "job.add"]


USING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("SELECT count(*) FROM tsuzuki_job_runs").fetchone()
print("open", flush=True)
sys.stdin.read()
"""


def test_a_backup_is_restored_and_the_old_database_is_kept(workspace: Workspace) -> None:
    path = workspace.data("db", "backup")["path"]
    workspace.ok("job", "disable", "hello")
    restored = workspace.data("db", "restore", path)
    assert restored["path"] == str(workspace.database)
    assert stat.S_IMODE(workspace.database.stat().st_mode) == 0o600
    disabled = "SELECT count(*) FROM tsuzuki_job_definitions WHERE name = 'hello' AND NOT enabled"
    with closing(sqlite3.connect(restored["kept"])) as kept:
        assert kept.execute(disabled).fetchone() == (1,)
    with closing(sqlite3.connect(workspace.database)) as new:
        assert new.execute(disabled).fetchone() == (0,)
    workspace.ok("db", "check")


def test_nothing_is_restored_while_a_process_has_the_database_open(workspace: Workspace) -> None:
    path = workspace.data("db", "backup")["path"]
    before = workspace.database.stat().st_ino
    with subprocess.Popen(
        [sys.executable, "-c", USING, str(workspace.database)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        ended = workspace.run("db", "restore", path, "-o", "json")
        other.communicate()
    assert (ended.code, "database_in_use" in ended.err) == (6, True)
    assert workspace.database.stat().st_ino == before
    workspace.ok("db", "restore", path)


def test_a_file_that_is_no_backup_is_not_restored(workspace: Workspace) -> None:
    before = workspace.content()
    other = workspace.folder / "tsuzuki.yaml"
    ended = workspace.run("db", "restore", str(other), "-o", "json")
    assert (ended.code, "backup_unusable" in ended.err) == (2, True)
    assert workspace.content() == before


def test_a_copy_with_changes_in_its_log_is_not_restored_without_them(workspace: Workspace) -> None:
    """Such as one that was made with `cp` after a crash."""
    copy, log = workspace.folder / "copied.db", workspace.folder / "copied.db-wal"
    with closing(sqlite3.connect(workspace.database, isolation_level=None)) as writer:
        writer.execute("UPDATE tsuzuki_job_definitions SET description = 'newer'")
        copy.write_bytes(workspace.database.read_bytes())
        log.write_bytes(Path(f"{workspace.database}-wal").read_bytes())
    ended = workspace.run("db", "restore", str(copy), "-o", "json")
    assert (ended.code, "backup_unusable" in ended.err) == (2, True)


def test_a_backup_may_have_any_name(workspace: Workspace) -> None:
    path = Path(workspace.data("db", "backup")["path"]).rename(workspace.folder / "100%? #1.db")
    workspace.ok("db", "restore", str(path))


def test_a_backup_overwrites_nothing(workspace: Workspace) -> None:
    (workspace.folder / "copy.db").write_text("precious")
    before = workspace.content()
    assert workspace.run("db", "backup", "copy.db").code == 6
    assert workspace.run("db", "backup", "no/such/folder/copy.db").code == 74
    assert workspace.content() == before


def test_a_database_of_another_version_can_be_backed_up_before_it_is_upgraded(
    workspace: Workspace,
) -> None:
    alter(workspace.database, "UPDATE tsuzuki_schema_version_engine SET version_num = '0001'")
    before = workspace.content()
    workspace.ok("db", "backup", "copy.db")
    assert workspace.content() == {**before, "copy.db": workspace.content()["copy.db"]}


def test_postgresql_is_upgraded_checked_and_backed_up(
    empty: Workspace, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(postgres.programs))
    url = postgres.create(())
    here = {"TSUZUKI_DATABASE_URL": url}
    assert empty.run("db", "check", **here).code == 1
    with psycopg.connect(url) as connection:
        tables = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == []
    assert empty.data("db", "upgrade", **here)[0]["changed"] is True
    assert all(finding["ok"] for finding in empty.data("db", "check", **here))
    assert empty.data("db", "backup", "copy.dump", **here)["size_bytes"] > 0
    postgres.drop(url)


def test_the_program_checks_a_database(workspace: Workspace) -> None:
    assert workspace.process("db", "check").code == 0
    alter(workspace.database, "DROP TRIGGER tsuzuki_audit_log_delete")
    ended = workspace.process("db", "check", "--no-color")
    assert (ended.code, ended.err) == (1, "")
    assert "FAIL" in ended.out
