"""The mailmap of each project, as the last collection found it."""

from functools import lru_cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, select
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.commits.report_tables import commit_mailmaps
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute

_CONTENTS = select(commit_mailmaps.c.project_id, commit_mailmaps.c.content).where(
    commit_mailmaps.c.content != ""
)
_HEAD = select(commit_mailmaps.c.head_sha).where(
    commit_mailmaps.c.project_id == bindparam("project", type_=BigInteger())
)


def contents(connection: Connection) -> list[tuple[int, str]]:
    """The project and the text of every mailmap."""
    return [(project, text) for project, text in execute(connection, _CONTENTS).all()]


def read_at(connection: Connection, project_id: int) -> str | None:
    """The commit at which the mailmap of a project was read last."""
    found: str | None = execute(connection, _HEAD, {"project": project_id}).scalar_one_or_none()
    return found


def put(connection: Connection, project_id: int, *, head: str, content: str) -> None:
    """Keep what was read at `head`; empty if there is no such file."""
    parameters = {"project": project_id, "head": head, "text": content}
    execute(connection, _put(connection.dialect), parameters)


@lru_cache
def _put(dialect: Dialect) -> Any:
    insert = insert_into(dialect, commit_mailmaps).values(
        project_id=bindparam("project", type_=BigInteger()),
        head_sha=bindparam("head", type_=Text()),
        content=bindparam("text", type_=commit_mailmaps.c.content.type),
    )
    return insert.on_conflict_do_update(
        index_elements=["project_id"],
        set_={name: insert.excluded[name] for name in ("head_sha", "content")},
    )
