"""A database is brought to the tables we need, from nothing and by later revisions, once."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import inspect, select, text, update

from support.databases import PostgresServer, SqliteFolder, all_components, opened
from support.factories import add_job, create_run, take_lead
from support.migration_process import prepare_all
from support.processes import in_processes
from support.statement_recorder import recorded
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store import leadership
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.runs import runs
from tsuzuki.store.schema.compatibility import compatibility
from tsuzuki.store.schema.migrate import (
    ENGINE,
    Component,
    SchemaWatch,
    current_revision,
    require_current,
    upgrade,
)
from tsuzuki.store.schema.migration_steps import drift, scripts_of
from tsuzuki.store.schema.tables import ONLY_ON
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.collectors import installed_collectors

REVISIONS = ENGINE.revisions


@pytest.fixture
def empty(empty_database_url: str) -> Iterator[Database]:
    with opened(empty_database_url) as database:
        yield database


def revision(database: Database, component: Component = ENGINE) -> str | None:
    with database.read() as connection:
        return current_revision(connection, component)


def differences(database: Database, component: Component = ENGINE) -> list[str]:
    with database.read() as connection:
        return drift(connection, component)


def tables(database: Database) -> set[str]:
    with database.read() as connection:
        return set(inspect(connection).get_table_names())


# --- from nothing ---------------------------------------------------------------------------------


def test_an_empty_database_gets_every_table(empty: Database) -> None:
    (done,) = upgrade(empty)
    assert (done.before, done.after, done.changed) == (None, REVISIONS[-1], True)
    assert tables(empty) == {*ENGINE.metadata.tables, ENGINE.version_table, compatibility.name}
    assert differences(empty) == []
    require_current(empty)
    assert all(finding.is_ok for finding in inspect_database(empty))
    with empty.read() as connection:
        assert leadership.current(connection).epoch == 0


@pytest.mark.parametrize("component", all_components(), ids=lambda component: component.name)
def test_the_migrations_give_the_schema_of_the_tables_in_code(
    dialect: str, sqlite_folder: SqliteFolder, postgres: PostgresServer, component: Component
) -> None:
    place = sqlite_folder if dialect == "sqlite" else postgres
    with opened(place.create(())) as migrated, opened(place.create(())) as created:
        upgrade(migrated, [component])
        with created.write() as connection:
            for table in component.metadata.sorted_tables:
                create_for(connection, table)
        found, defined = described(migrated, component), described(created, component)
    for name, description in defined.items():
        assert found[name] == description, name


def create_for(connection: sa.Connection, table: sa.Table) -> None:
    """Create a table without the indexes and constraints that only another dialect has."""
    dialect = connection.dialect.name

    def is_for_another(part: Any) -> bool:
        return bool(part.info.get(ONLY_ON, dialect) != dialect)

    others = {one for one in table.constraints if is_for_another(one)}
    indexes = {one for one in table.indexes if is_for_another(one)}
    table.constraints -= others
    table.indexes -= indexes
    try:
        table.create(connection)
    finally:
        table.constraints |= others
        table.indexes |= indexes


def described(database: Database, component: Component) -> dict[str, dict[str, list[str]]]:
    """Columns, keys, checks and indexes of each table as the database reports them, in a comparable form."""
    answer = {}
    with database.read() as connection:
        inspector = inspect(connection)
        for name in component.metadata.tables:
            parts: dict[str, list[Any]] = {
                "columns": inspector.get_columns(name),
                "primary key": [inspector.get_pk_constraint(name)],
                "foreign keys": inspector.get_foreign_keys(name),
                "unique keys": inspector.get_unique_constraints(name),
                "checks": inspector.get_check_constraints(name),
                "indexes": inspector.get_indexes(name),
            }
            answer[name] = {part: sorted(map(plain, rows)) for part, rows in parts.items()}
    return answer


def plain(row: dict[str, Any]) -> str:
    if row.get("name") == "last_updated_at":
        row = {**row, "default": None}  # each dialect has one of its own, and the code states none
    flat = {**row, **row.get("dialect_options", {}), "dialect_options": None}
    return str(sorted((key, " ".join(str(value).split())) for key, value in flat.items()))


def test_the_new_database_is_ready_for_work(empty: Database) -> None:
    upgrade(empty)
    run = create_run(empty, add_job(empty))
    assert take_lead(empty).epoch == 1
    with empty.read() as connection:
        assert runs.get(connection, run.id) is not None


def test_a_second_upgrade_finds_everything_done_and_writes_nothing(database: Database) -> None:
    with recorded(database) as sent:
        (done,) = upgrade(database)
    assert (done.before, done.after, done.changed) == (REVISIONS[-1], REVISIONS[-1], False)
    assert all(s.startswith(("SELECT", "PRAGMA")) for s in sent), sent


def test_tables_that_were_changed_by_hand_are_noticed(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text("DROP INDEX tsuzuki_ix_job_runs_created_at"))
        connection.execute(text("ALTER TABLE tsuzuki_settings ADD COLUMN extra text"))
        connection.execute(text("CREATE TABLE of_another_program (id integer)"))
    found = differences(database)
    assert len(found) == 2
    assert any("tsuzuki_ix_job_runs_created_at" in one for one in found)
    assert any("extra" in one for one in found)


# --- several processes ----------------------------------------------------------------------------


@pytest.mark.slow
def test_of_processes_that_start_at_once_one_migrates_and_the_others_find_it_done(
    dialect: str, sqlite_folder: SqliteFolder, postgres: PostgresServer
) -> None:
    place = sqlite_folder if dialect == "sqlite" else postgres
    urls = [place.create(()) for _ in range(5)]
    answers = in_processes(prepare_all, [(urls,)] * 3)
    head = REVISIONS[-1]
    for number, url in enumerate(urls):
        each = [answer[number] for answer in answers]
        assert sorted(each, key=str) == sorted([(None, head), (head, head), (head, head)], key=str)
        with opened(url) as database:
            assert differences(database) == []
            with database.read() as connection:
                rows = connection.execute(text(f"SELECT * FROM {ENGINE.version_table}")).all()
            assert [tuple(row) for row in rows] == [(head,)]
        if dialect == "postgresql":
            postgres.drop(url)


def test_a_database_from_before_the_first_release_is_refused_and_left_as_it_is(
    empty: Database,
) -> None:
    with empty.write() as connection:
        connection.execute(text("CREATE TABLE schema_version_engine (version_num text)"))
    with pytest.raises(SchemaMismatch, match=r"before 0\.1\.0") as refused:
        upgrade(empty)
    assert "Use another database" in (refused.value.hint or "")
    assert tables(empty) == {"schema_version_engine"}


# --- a newer version was here ---------------------------------------------------------------------


def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database: Database) -> None:
    with database.write() as connection:
        connection.execute(text(f"UPDATE {ENGINE.version_table} SET version_num = 'ffff'"))
    before = tables(database)
    with recorded(database) as sent:
        for open_it in (upgrade, require_current):
            with pytest.raises(SchemaMismatch, match="revision ffff of engine") as refused:
                open_it(database)
            assert "newer version" in (refused.value.hint or "")
    assert all(s.startswith(("SELECT", "PRAGMA")) for s in sent), sent
    assert (revision(database), tables(database)) == ("ffff", before)


def expand(folder: Path, *, expands: bool = True) -> Component:
    """The component of `collector`, one version later: a second migration, which says whether it only adds."""
    later = collector(folder)
    lines = [
        "from alembic import op",
        'revision = "0002"',
        'down_revision = "0001"',
        *(["expands = True"] if expands else []),
        "def upgrade():",
        '    op.execute("ALTER TABLE things ADD COLUMN name TEXT")',
    ]
    (folder / "0002_name.py").write_text("\n".join(lines))
    return later


@pytest.mark.parametrize("expands", [True, False])
def test_an_older_version_goes_on_beside_a_newer_one_that_only_adds(
    empty: Database, tmp_path: Path, expands: bool
) -> None:
    older = collector(tmp_path / "older")
    upgrade(empty, [older])
    watch = SchemaWatch(lambda: [older])
    with empty.read() as connection:
        assert watch.check(connection) == {}
    upgrade(empty, [expand(tmp_path / "newer", expands=expands)])

    def check() -> dict[str, str]:
        with empty.read() as connection:
            return watch.check(connection)

    if not expands:
        for refused in (check, lambda: upgrade(empty, [older])):
            with pytest.raises(SchemaMismatch, match="revision 0002 of collector"):
                refused()
        return
    assert check() == {"collector": "0002"}
    assert check() == {}
    require_current(empty, [older])
    (done,) = upgrade(empty, [older])
    assert (done.before, done.after) == ("0002", "0002")
    assert revision(empty, older) == "0002"


def test_an_older_version_starts_beside_a_newer_one_and_adds_its_other_components(
    empty: Database, tmp_path: Path
) -> None:
    upgrade(empty, [expand(tmp_path / "newer")])
    before, after = upgrade(empty, [ENGINE, collector(tmp_path / "older")])
    assert (before.component, before.before) == ("engine", None)
    assert (after.before, after.after) == ("0002", "0002")


def test_a_version_older_than_the_last_migration_that_changed_something_is_refused(
    empty: Database, tmp_path: Path
) -> None:
    newer = expand(tmp_path / "newer", expands=False)
    third = 'revision = "0003"\ndown_revision = "0002"\nexpands = True\ndef upgrade(): pass\n'
    (tmp_path / "newer" / "0003_more.py").write_text(third)
    assert newer.oldest_compatible() == "0002"
    upgrade(empty, [newer])
    with pytest.raises(SchemaMismatch):
        upgrade(empty, [collector(tmp_path / "older")])


# --- components -----------------------------------------------------------------------------------


def collector(folder: Path, *, fails: bool = False) -> Component:
    """A component as a collector brings it: tables and revisions of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    first = """
        import sqlalchemy as sa
        from alembic import op

        revision = "0001"
        down_revision = None

        def upgrade():
            op.create_table("things", sa.Column("id", sa.Integer(), primary_key=True))
    """
    second = """
        from alembic import op

        revision = "0002"
        down_revision = "0001"

        def upgrade():
            op.execute("INSERT INTO things VALUES (1)")
            raise RuntimeError("half-way")
    """
    (folder / "0001_things.py").write_text(dedent(first))
    if fails:
        (folder / "0002_more.py").write_text(dedent(second))
    metadata = sa.MetaData()
    sa.Table("things", metadata, sa.Column("id", sa.Integer, primary_key=True))
    return Component(name="collector", metadata=metadata, versions=folder)


def test_a_collector_is_migrated_beside_the_engine_with_a_version_of_its_own(
    empty: Database, tmp_path: Path
) -> None:
    beside = collector(tmp_path / "versions")
    done = upgrade(empty, [ENGINE, beside])
    assert [(one.component, one.before, one.after) for one in done] == [
        ("engine", None, REVISIONS[-1]),
        ("collector", None, "0001"),
    ]
    assert {
        "things",
        "tsuzuki_schema_version_collector",
        "tsuzuki_schema_version_engine",
    } <= tables(empty)
    assert differences(empty, ENGINE) == differences(empty, beside) == []


def test_a_collector_that_comes_later_is_added_to_what_is_there(
    database: Database, tmp_path: Path
) -> None:
    run = create_run(database, add_job(database))
    beside = collector(tmp_path)
    with pytest.raises(SchemaMismatch, match="none of collector"):
        require_current(database, [ENGINE, beside])
    done = upgrade(database, [ENGINE, beside])
    assert [one.changed for one in done] == [False, True]
    with database.read() as connection:
        assert runs.get(connection, run.id) is not None


def test_a_collector_that_is_gone_does_not_disturb_the_others(
    database: Database, tmp_path: Path
) -> None:
    upgrade(database, [ENGINE, collector(tmp_path)])
    with database.write() as connection:
        connection.execute(text("INSERT INTO things VALUES (7)"))
        connection.execute(text("UPDATE tsuzuki_schema_version_collector SET version_num = 'ffff'"))
    (done,) = upgrade(database, [ENGINE])
    assert not done.changed
    require_current(database, [ENGINE])
    assert differences(database) == []
    with database.read() as connection:
        assert connection.execute(text("SELECT id FROM things")).scalar_one() == 7


def test_a_folder_may_have_any_name(empty: Database, tmp_path: Path) -> None:
    beside = collector(tmp_path / "100% odd: [name] 続き")
    (done,) = upgrade(empty, [beside])
    assert done.after == "0001"


def test_a_migration_that_fails_half_way_leaves_nothing_behind(
    empty: Database, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="half-way"):
        upgrade(empty, [collector(tmp_path, fails=True)])
    assert tables(empty) == set()
    (done,) = upgrade(empty)
    assert done.before is None


def test_a_collector_that_fails_leaves_the_engine_upgraded_whatever_their_order(
    empty: Database, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="half-way"):
        upgrade(empty, [collector(tmp_path, fails=True), ENGINE])
    assert tables(empty) == {*ENGINE.metadata.tables, ENGINE.version_table, compatibility.name}
    require_current(empty)


TEMPLATE = """
    from typing import Sequence, Union
    from alembic import op
    import sqlalchemy as sa

    revision: str = '{revision}'
    down_revision: Union[str, Sequence[str], None] = {before!r}

    def upgrade() -> None:
        op.create_table('{table}', sa.Column('id', sa.Integer(), primary_key=True))
"""


def from_template(folder: Path, *chain: str) -> Component:
    """A component whose migrations are written as Alembic's own template writes them."""
    folder.mkdir(exist_ok=True)
    metadata = sa.MetaData()
    for before, revision in pairwise([None, *chain]):
        table = f"table_{revision}"
        sa.Table(table, metadata, sa.Column("id", sa.Integer, primary_key=True))
        text = dedent(TEMPLATE).format(revision=revision, before=before, table=table)
        (folder / f"{revision}_a_step.py").write_text(text)
    return Component(name="with-a-dash", metadata=metadata, versions=folder)


def test_migrations_in_the_style_of_alembics_template_are_read_in_their_own_order(
    empty: Database, tmp_path: Path
) -> None:
    beside = from_template(tmp_path / "one", "b2f0", "0a11", "9c3e")
    assert beside.revisions == ["b2f0", "0a11", "9c3e"]
    assert [script.revision for script in scripts_of(beside).walk_revisions()] == [
        *reversed(beside.revisions)
    ]
    upgrade(empty, [from_template(tmp_path / "two", "b2f0")])
    (done,) = upgrade(empty, [beside])
    assert (done.before, done.after) == ("b2f0", "9c3e")
    (again,) = upgrade(empty, [beside])
    assert not again.changed


def test_the_name_of_a_component_may_need_quotes(empty: Database, tmp_path: Path) -> None:
    beside = from_template(tmp_path, "0001")
    upgrade(empty, [ENGINE, beside])
    require_current(empty, [ENGINE, beside])
    with empty.read() as connection:
        SchemaWatch(lambda: [ENGINE, beside]).check(connection)
    assert differences(empty, beside) == []


def test_two_migrations_after_one_are_a_mistake_of_their_author(tmp_path: Path) -> None:
    from_template(tmp_path, "0001", "0002")
    from_template(tmp_path, "0001", "0003")
    beside = Component(name="branched", metadata=sa.MetaData(), versions=tmp_path)
    with pytest.raises(ValueError, match="two migrations after 0001"):
        beside.newest()


def test_a_component_without_revisions_is_a_mistake_of_ours(
    database: Database, tmp_path: Path
) -> None:
    bare = Component(name="bare", metadata=sa.MetaData(), versions=tmp_path)
    with pytest.raises(ValueError, match="no migration"):
        upgrade(database, [bare])


@pytest.mark.parametrize(
    "component",
    [ENGINE, *installed_collectors().components.values()],
    ids=lambda component: component.name,
)
def test_the_revisions_are_read_from_their_files_as_alembic_would(component: Component) -> None:
    walked = [script.revision for script in scripts_of(component).walk_revisions()]
    assert component.revisions == walked[::-1]


def test_revisions_go_forward_only() -> None:
    for script in scripts_of(ENGINE).walk_revisions():
        with pytest.raises(RuntimeError, match="forward only"):
            script.module.downgrade()


def test_the_guards_survive_the_way_up(empty: Database) -> None:
    upgrade(empty)
    with pytest.raises(sa.exc.IntegrityError, match="tsuzuki: the epoch"), empty.write() as c:
        c.execute(update(sa.table("tsuzuki_leadership", sa.column("epoch"))).values(epoch=99))
    with empty.read() as connection:
        assert (
            connection.execute(select(sa.text("epoch FROM tsuzuki_leadership"))).scalar_one() == 0
        )
