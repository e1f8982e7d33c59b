"""Notes of a collection: what a person should know about a target that was collected.

They are stored as soon as they are known, in the transaction they belong to, so a crash loses none.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, func, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import NoteKind, bulk_collection_notes, commit_date_notes
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for

DATES_SHOWN = 5

_notes, _date_notes = bulk_collection_notes, commit_date_notes
_COLLECTION = bindparam("collection", type_=Text())
_PROJECT = bindparam("project", type_=BigInteger())
_BRANCH = bindparam("branch", type_=Text())


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something a person should know about a target that was collected."""

    kind: NoteKind
    sentence: str


def add_notes(
    connection: Connection, collection_id: str, target: Target, notes: Iterable[Note]
) -> None:
    """Store notes on a target; one of the same kind is replaced."""
    for note in notes:
        values = {"kind": note.kind.value, "sentence": note.sentence}
        execute(
            connection, _put_note(connection.dialect), {**_key(collection_id, target), **values}
        )


def add_date_notes(
    connection: Connection, collection_id: str, target: Target, notes: Mapping[str, str]
) -> None:
    """Store, by commit id, which dates were not valid. A page that comes twice is noted once."""
    for sha, sentence in notes.items():
        values = {"sha": sha, "sentence": sentence}
        execute(
            connection,
            _put_date_note(connection.dialect),
            {**_key(collection_id, target), **values},
        )


@lru_cache
def _put_note(dialect: Dialect) -> Any:
    statement = insert_into(dialect, _notes).values(
        run_id=_COLLECTION,
        project_id=_PROJECT,
        branch_name=_BRANCH,
        **parameters_for(_notes, "kind", "sentence"),
    )
    return statement.on_conflict_do_update(
        index_elements=["run_id", "project_id", "branch_name", "kind"],
        set_={"sentence": statement.excluded.sentence},
    )


@lru_cache
def _put_date_note(dialect: Dialect) -> Any:
    return (
        insert_into(dialect, _date_notes)
        .values(
            run_id=_COLLECTION,
            project_id=_PROJECT,
            branch_name=_BRANCH,
            **parameters_for(_date_notes, "sha", "sentence"),
        )
        .on_conflict_do_nothing()
    )


_NOTES = select(_notes).where(_notes.c.run_id == _COLLECTION).order_by(_notes.c.kind)
_RANKED_DATES = (
    select(
        _date_notes,
        func.count().over(partition_by=[_date_notes.c.project_id, _date_notes.c.branch_name]),
        func.row_number()
        .over(
            partition_by=[_date_notes.c.project_id, _date_notes.c.branch_name],
            order_by=_date_notes.c.sha,
        )
        .label("place"),
    )
    .where(_date_notes.c.run_id == _COLLECTION)
    .subquery()
)
_DATES = (
    select(*list(_RANKED_DATES.c)[1:6])
    .where(_RANKED_DATES.c.place <= DATES_SHOWN)
    .order_by(_RANKED_DATES.c.place)
)


def notes_of(connection: Connection, collection_id: str) -> dict[Target, list[Note]]:
    """The notes of a collection, by target."""
    found: dict[Target, list[Note]] = {}
    for row in execute(connection, _NOTES, {"collection": collection_id}).mappings():
        note = Note(kind=NoteKind(row["kind"]), sentence=row["sentence"])
        found.setdefault(Target(row["project_id"], row["branch_name"]), []).append(note)
    for target, note in _dates_of(connection, collection_id).items():
        found.setdefault(target, []).append(note)
    return found


def _dates_of(connection: Connection, collection_id: str) -> dict[Target, Note]:
    """One note per target about all its dates, with the first few commits by id."""
    shown: dict[Target, list[str]] = {}
    counts: dict[Target, int] = {}
    for row in execute(connection, _DATES, {"collection": collection_id}).all():
        project_id, branch, sha, sentence, count = row
        target = Target(project_id, branch)
        shown.setdefault(target, []).append(f"{sha[:12]} ({sentence})")
        counts[target] = count
    return {
        target: Note(kind=NoteKind.DATE_NOT_VALID, sentence=_sentence(commits, counts[target]))
        for target, commits in shown.items()
    }


def _sentence(commits: list[str], count: int) -> str:
    more = f" and {count - len(commits)} more" if count > len(commits) else ""
    subject = (
        "1 commit has a date that is" if count == 1 else f"{count} commits have dates that are"
    )
    return f"{subject} not valid: {', '.join(commits)}{more}"


def _key(collection_id: str, target: Target) -> dict[str, int | str]:
    return {"collection": collection_id, "project": target.project_id, "branch": target.branch}
