"""Integrity check of the database: schema, storage, tables, triggers, leadership, history. Read-only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, or_, select, text

from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.migrate import ENGINE, Component, require_current
from tsuzuki.store.schema.tables import job_run_transitions, job_runs, leadership
from tsuzuki.store.sql.database import Database

GUARDS = {
    "sqlite": "job_runs_birth job_runs_guard job_runs_keep job_definitions_keep "
    "job_runs_history job_runs_history_of_two job_run_transitions_insert "
    "job_run_transitions_update "
    "job_run_transitions_delete audit_log_insert audit_log_update audit_log_delete "
    "leadership_insert leadership_update leadership_delete",
    "postgresql": "job_runs_birth job_runs_move job_runs_version job_runs_finished job_runs_keep "
    "job_runs_job job_runs_same_job job_definitions_keep job_definitions_truncate "
    "job_runs_truncate job_runs_history job_run_transitions_insert job_run_transitions_update "
    "job_run_transitions_delete job_run_transitions_truncate audit_log_change "
    "audit_log_truncate leadership_update leadership_delete leadership_truncate",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check. `problem` is None if there is none."""

    subject: str
    problem: str | None = None
    hint: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.problem is None


def inspect_database(
    database: Database, components: Sequence[Component] = (ENGINE,)
) -> list[Finding]:
    """All checks, in the order in which problems should be repaired."""
    try:
        require_current(database, components)
    except SchemaMismatch as problem:
        return [Finding(subject="schema", problem=problem.message, hint=problem.hint)]
    findings = [Finding(subject="schema")]
    checks: list[tuple[str, Callable[[Connection], list[str]], str]] = [
        ("storage", _storage, "Restore a backup."),
        ("tables", lambda c: _tables(c, components), "The tables were changed by hand."),
        ("guards", _guards, "A trigger was removed; restore a backup or recreate it."),
        ("leadership", _leadership, "Restore a backup: the one row of leadership is missing."),
        ("history", _history, "Moves were made around the guards; compare with a backup."),
    ]
    with database.read() as connection:
        for subject, check, hint in checks:
            problems = check(connection)
            findings.append(
                Finding(subject=subject, problem="; ".join(problems), hint=hint)
                if problems
                else Finding(subject=subject)
            )
    return findings


def _storage(connection: Connection) -> list[str]:
    """SQLite: integrity of pages and foreign keys. PostgreSQL checks its pages itself, on reading."""
    if connection.dialect.name != "sqlite":
        connection.execute(select(func.count()).select_from(job_runs))
        return []
    pages = connection.execute(text("PRAGMA integrity_check(10)")).scalars().all()
    keys = connection.execute(text("PRAGMA foreign_key_check")).all()
    return [page for page in pages if page != "ok"] + [
        f"{row[0]} row {row[1]} refers to a missing row of {row[2]}" for row in keys[:10]
    ]


def _tables(connection: Connection, components: Sequence[Component]) -> list[str]:
    from tsuzuki.store.schema.migration_steps import drift  # noqa: PLC0415 -- slow to load, rarely needed

    return [problem for component in components for problem in drift(connection, component)]


def _guards(connection: Connection) -> list[str]:
    if connection.dialect.name == "sqlite":
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    else:
        query = (
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'"
            " AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = "
            "current_schema()::regnamespace)"
        )
    found = set(connection.execute(text(query)).scalars())
    missing = [name for name in GUARDS[connection.dialect.name].split() if name not in found]
    return [f"missing: {', '.join(missing)}"] if missing else []


def _leadership(connection: Connection) -> list[str]:
    rows = connection.execute(select(func.count()).select_from(leadership)).scalar_one()
    return [] if rows == 1 else [f"{rows} rows instead of one"]


def _history(connection: Connection) -> list[str]:
    """Every run has one history row per move, and the last one ends in the run's state."""
    moves_of = (
        select(
            job_run_transitions.c.run_id,
            func.count().label("moves"),
            func.max(job_run_transitions.c.version).label("version"),
        )
        .group_by(job_run_transitions.c.run_id)
        .subquery()
    )
    last = job_run_transitions.alias("last")
    broken = (
        select(job_runs.c.id)
        .outerjoin(moves_of, moves_of.c.run_id == job_runs.c.id)
        .outerjoin(last, and_(last.c.run_id == job_runs.c.id, last.c.version == job_runs.c.version))
        .where(
            or_(
                func.coalesce(moves_of.c.moves, 0) != job_runs.c.version - 1,
                and_(job_runs.c.version > 1, last.c.to_state.is_distinct_from(job_runs.c.state)),
            )
        )
        .order_by(job_runs.c.id)
        .limit(10)
    )
    return [
        f"run {run_id} and its history disagree" for run_id in connection.execute(broken).scalars()
    ]
