"""A database that an application shares: it has its own tables and migrations, and only ours of what is used."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from support.databases import opened as opened_database
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.compatibility import compatibility
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database
from tsuzuki.wiring.application import Application, opened
from tsuzuki.wiring.collectors import installed_collectors

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sharing-a-database.md"
COMPONENTS = installed_collectors().components
OF_ENGINE = {*ENGINE.metadata.tables, ENGINE.version_table, compatibility.name}
OF_APPLICATION = {"users", "events", "alembic_version"}

ENVIRONMENT = """
import sqlalchemy as sa
from alembic import context

target_metadata = sa.MetaData()
sa.Table("users", target_metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("email", sa.Text))
sa.Table("events", target_metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("title", sa.Text))

{filter}

with sa.create_engine(context.config.get_main_option("sqlalchemy.url"), poolclass=sa.NullPool).connect() as connection:
{configure}
    with context.begin_transaction():
        context.run_migrations()
"""
TEMPLATE = """
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
import sqlalchemy as sa
from alembic import op

def upgrade():
    ${upgrades}

def downgrade():
    ${downgrades}
"""


@pytest.fixture
def url(empty_database_url: str) -> str:
    return empty_database_url


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    with opened_database(url) as database:
        yield database


def application_on(url: str, folder: Path) -> AbstractContextManager[Application]:
    (folder / "tsuzuki.yaml").write_text("jobs: {}\n")
    return opened(database_url=url, environ={}, cwd=folder)


def tables(database: Database) -> set[str]:
    with database.read() as connection:
        return set(sa.inspect(connection).get_table_names())


def tables_of(name: str) -> set[str]:
    return {*COMPONENTS[name].metadata.tables, COMPONENTS[name].version_table}


def alembic_of_the_guide(url: str, folder: Path) -> Config:
    """The migrations of an application, with the `env.py` that the guide shows."""
    filtering, configuring = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    (folder / "versions").mkdir(parents=True)
    indented = "".join(f"    {line}\n" for line in configuring.splitlines())
    (folder / "env.py").write_text(ENVIRONMENT.format(filter=filtering, configure=indented))
    (folder / "script.py.mako").write_text(TEMPLATE)
    config = Config()
    config.set_main_option("script_location", str(folder))
    plain = url.partition("?")[0] if url.startswith("sqlite") else url
    plain = plain.replace("postgresql://", "postgresql+psycopg://")
    config.set_main_option("sqlalchemy.url", plain.replace("%", "%%"))
    return config


def written(config: Config, name: str) -> str:
    """The body of the revision that autogenerate writes."""
    script = command.revision(config, name, autogenerate=True)
    assert script is not None
    assert not isinstance(script, list)
    return Path(script.path).read_text("utf-8").partition("def upgrade():")[2]


def test_an_application_with_its_own_tables_and_migrations_shares_the_database(
    url: str, database: Database, tmp_path: Path
) -> None:
    config = alembic_of_the_guide(url, tmp_path / "alembic")
    assert "create_table('users'" in written(config, "first")
    command.upgrade(config, "head")
    with database.write() as connection:
        connection.execute(sa.text("INSERT INTO users (id, email) VALUES (1, 'ada@example.org')"))
        connection.execute(sa.text("INSERT INTO events (id, title) VALUES (1, 'launch')"))

    with application_on(url, tmp_path) as application:
        assert tables(database) == OF_APPLICATION | OF_ENGINE
        application.service("feeds")
        assert tables(database) == OF_APPLICATION | OF_ENGINE | tables_of("feeds")
        application.events.emit("paid", {"n": 1})

    second = written(config, "second")
    assert "op." not in second, second
    command.upgrade(config, "head")
    with database.read() as connection:
        rows = connection.execute(sa.text("SELECT email, title FROM users, events")).all()
        assert [tuple(row) for row in rows] == [("ada@example.org", "launch")]
        dropped = compare_metadata(MigrationContext.configure(connection), sa.MetaData())
    # Without the filter of the guide it would have dropped ours.
    assert ENGINE.version_table in {one[1].name for one in dropped if one[0] == "remove_table"}


def test_the_tables_of_a_collector_are_created_when_it_is_first_used(
    url: str, database: Database, tmp_path: Path
) -> None:
    with application_on(url, tmp_path) as application:
        assert tables(database) == OF_ENGINE
        application.service("books")
        assert tables(database) == OF_ENGINE | tables_of("books")
        upgraded = application.maintenance.upgrade()
    assert [one.component for one in upgraded] == ["engine", "books"]


def test_an_engine_creates_the_tables_of_the_collectors_that_its_jobs_need(
    url: str, database: Database, tmp_path: Path
) -> None:
    job = {"type": "books", "queries": ["python"]}
    with application_on(url, tmp_path) as application:
        (tmp_path / "tsuzuki.yaml").write_text(f"jobs: {{shelf: {job}}}\n")
        application.jobs.apply()
        assert tables(database) == OF_ENGINE
        application.local_engine.start()
        application.local_engine.stop(at_once=True)
    assert tables(database) == OF_ENGINE | tables_of("books")


def test_a_table_of_another_program_refuses_only_its_collector(
    url: str, database: Database, tmp_path: Path
) -> None:
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE projects (id INTEGER PRIMARY KEY, title TEXT)"))
    with application_on(url, tmp_path) as application:
        with pytest.raises(SchemaMismatch, match="'projects' cannot be taken over") as refused:
            application.service("commits")
        assert refused.value.specific_code == "foreign_table"
        assert tables(database) == {"projects"} | OF_ENGINE
        application.service("books")
    assert tables(database) == {"projects"} | OF_ENGINE | tables_of("books")


def test_an_index_of_another_program_refuses_only_its_collector(
    url: str, database: Database, tmp_path: Path
) -> None:
    with database.write() as connection:
        connection.execute(sa.text("CREATE TABLE links (url TEXT)"))
        connection.execute(sa.text("CREATE INDEX idx_items_url ON links (url)"))
    with application_on(url, tmp_path) as application:
        with pytest.raises(SchemaMismatch, match=r"idx_items_url.* already exists") as refused:
            application.service("feeds")
        assert refused.value.specific_code == "foreign_table"
        assert tables(database) == {"links"} | OF_ENGINE


def test_a_dry_run_creates_no_tables(url: str, database: Database, tmp_path: Path) -> None:
    with application_on(url, tmp_path):
        pass
    with opened(database_url=url, environ={}, cwd=tmp_path, migrate=False) as application:
        application.maintenance.require_current()
        with pytest.raises(SchemaMismatch, match="tables of books"):
            application.service("books")
    assert tables(database) == OF_ENGINE
