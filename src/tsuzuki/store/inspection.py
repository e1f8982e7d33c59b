"""Integrity check of the database: schema, storage, tables, triggers, leadership, history. Read-only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, Table, and_, column, exists, func, or_, select, text

from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.migrate import ENGINE, Component, require_current
from tsuzuki.store.schema.tables import job_run_logs, job_run_transitions, job_runs, leadership
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute

TRIGGERS = {
    "sqlite": text("SELECT name FROM sqlite_master WHERE type = 'trigger'").columns(column("name")),
    "postgresql": text(
        "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled = 'O'"
        " AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = "
        "current_schema()::regnamespace)"
    ).columns(column("tgname")),
}
_CHECK_PAGES = text("PRAGMA integrity_check(10)").columns(column("problem"))
_CHECK_KEYS = text("PRAGMA foreign_key_check").columns(
    column("table"), column("rowid"), column("parent"), column("fkid")
)
_COUNT_RUNS = select(func.count()).select_from(job_runs)
_COUNT_LEADERSHIP = select(func.count()).select_from(leadership)

_MOVES_OF = (
    select(job_run_transitions.c.run_id, func.count().label("moves"))
    .group_by(job_run_transitions.c.run_id)
    .subquery()
)
_LAST = job_run_transitions.alias("last")
_BROKEN_HISTORY = (
    select(job_runs.c.id)
    .outerjoin(_MOVES_OF, _MOVES_OF.c.run_id == job_runs.c.id)
    .outerjoin(_LAST, and_(_LAST.c.run_id == job_runs.c.id, _LAST.c.version == job_runs.c.version))
    .where(
        or_(
            func.coalesce(_MOVES_OF.c.moves, 0) != job_runs.c.version - 1,
            and_(job_runs.c.version > 1, _LAST.c.to_state.is_distinct_from(job_runs.c.state)),
        )
    )
    .order_by(job_runs.c.id)
    .limit(10)
)


def _without_run(table: Table) -> Select[tuple[int]]:
    """The first ids of runs that are missing but have rows in `table`."""
    run_id = table.c.run_id
    is_missing = ~exists(select(job_runs.c.id).where(job_runs.c.id == run_id))
    return select(run_id).where(is_missing).distinct().order_by(run_id).limit(10)


_HISTORY_WITHOUT_RUN = _without_run(job_run_transitions)
_LOGS_WITHOUT_RUN = _without_run(job_run_logs)


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
        (
            "tables",
            lambda c: _tables(c, components),
            "The tables were changed by hand: restore a backup.",
        ),
        (
            "guards",
            lambda c: _guards(c, components),
            "A trigger was removed; restore a backup or recreate it.",
        ),
        ("leadership", _leadership, "The leadership row is missing: restore a backup."),
        ("history", _history, "Transitions bypassed the guards; compare with a backup."),
        (
            "runs",
            _missing_runs,
            "These runs were deleted by hand; compare with a backup.",
        ),
    ]
    checks += [
        (component.name, component.inspect, "Rows were changed by hand; compare with a backup.")
        for component in components
        if component.inspect is not None
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
    if not is_sqlite(connection.dialect):
        execute(connection, _COUNT_RUNS)
        return []
    pages = execute(connection, _CHECK_PAGES).scalars()
    keys = execute(connection, _CHECK_KEYS).all()
    return [page for page in pages if page != "ok"] + [
        f"{row[0]} row {row[1]} refers to a missing row of {row[2]}" for row in keys[:10]
    ]


def _tables(connection: Connection, components: Sequence[Component]) -> list[str]:
    from tsuzuki.store.schema.migration_steps import drift  # noqa: PLC0415 -- slow to load, rarely needed

    return [problem for component in components for problem in drift(connection, component)]


def _guards(connection: Connection, components: Sequence[Component]) -> list[str]:
    dialect = connection.dialect.name
    found = set(execute(connection, TRIGGERS[dialect]).scalars())
    needed = [name for component in components for name in component.triggers(dialect)]
    missing = [name for name in needed if name not in found]
    return [f"missing: {', '.join(missing)}"] if missing else []


def _leadership(connection: Connection) -> list[str]:
    rows = execute(connection, _COUNT_LEADERSHIP).scalar_one()
    return [] if rows == 1 else [f"{rows} rows instead of one"]


def _history(connection: Connection) -> list[str]:
    """Every run has one history row per move, and the last one ends in the run's state."""
    broken = execute(connection, _BROKEN_HISTORY).scalars()
    return [f"run {run_id} and its history disagree" for run_id in broken]


def _missing_runs(connection: Connection) -> list[str]:
    """A run is deleted together with its history, and after its log."""
    history = execute(connection, _HISTORY_WITHOUT_RUN).scalars()
    logs = execute(connection, _LOGS_WITHOUT_RUN).scalars()
    return [f"run {run_id} is missing, but has a history" for run_id in history] + [
        f"run {run_id} is missing, but has a log" for run_id in logs
    ]
