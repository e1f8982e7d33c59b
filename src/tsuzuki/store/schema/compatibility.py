"""Which older versions can work on the tables of a newer one.

An older version does not have the newer migrations, so the version that migrates stores the answer: for each
component its revision, and the oldest one that is compatible with it. Like the version tables it belongs to no
migration.
"""

from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, Table, Text, bindparam, delete, insert, inspect
from sqlalchemy import select as sql_select

from tsuzuki.store.sql.prepared import execute

if TYPE_CHECKING:
    from tsuzuki.store.schema.migrate import Component

compatibility = Table(
    "tsuzuki_schema_compatibility",
    MetaData(),
    Column("component", Text(), primary_key=True),
    Column("revision", Text(), nullable=False),
    Column("oldest_revision", Text(), nullable=False),
)

_COMPONENT = bindparam("name", type_=Text())
_REVISION = bindparam("at", type_=Text())
_READ = sql_select(compatibility.c.oldest_revision).where(
    compatibility.c.component == _COMPONENT, compatibility.c.revision == _REVISION
)
_FORGET = delete(compatibility).where(compatibility.c.component == _COMPONENT)
_STORE = insert(compatibility).values(
    component=_COMPONENT,
    revision=_REVISION,
    oldest_revision=bindparam("oldest", type_=Text()),
)


def store_compatibility(connection: Connection, component: "Component") -> None:
    """In the transaction of the migration."""
    compatibility.create(connection, checkfirst=True)
    execute(connection, _FORGET, {"name": component.name})
    row = {
        "name": component.name,
        "at": component.newest(),
        "oldest": component.oldest_compatible(),
    }
    execute(connection, _STORE, row)


def is_compatible(connection: Connection, component: "Component", revision: str | None) -> bool:
    """Whether this version can work on tables of a revision that it does not know."""
    if revision is None or revision in component.revisions:
        return False
    if not inspect(connection).has_table(compatibility.name):
        return False
    row = {"name": component.name, "at": revision}
    oldest = execute(connection, _READ, row).scalar_one_or_none()
    return oldest in component.revisions
