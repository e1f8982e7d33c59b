"""PostgreSQL behind a real PgBouncer: everything works in transaction mode, and wake-ups with a direct URL."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from support.daemons import be_quick, started_on
from support.databases import PostgresServer, database_name, migrate, opened
from support.load import Load
from support.pgbouncer import PgBouncer, pgbouncer
from tsuzuki.model.errors import NotListening
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import ConnectionUse
from tsuzuki.store.sql.postgresql import OTHER_DEFAULTS, POOLED, SETTINGS
from tsuzuki.store.wakeups.listeners import listen

pytestmark = [pytest.mark.full, pytest.mark.slow]


@pytest.fixture(scope="module")
def pooler(postgres: PostgresServer) -> Iterator[PgBouncer]:
    with pgbouncer(postgres, mode="transaction") as pooler:
        yield pooler


@pytest.fixture
def direct_url(postgres: PostgresServer) -> Iterator[str]:
    url = postgres.create()
    yield url
    postgres.drop(url)


@pytest.mark.parametrize("with_direct_url", [True, False])
def test_every_run_ends_once_through_a_pooler_in_transaction_mode(
    pooler: PgBouncer, direct_url: str, tmp_path: Path, with_direct_url: bool
) -> None:
    environ = {"TSUZUKI_DATABASE_DIRECT_URL": direct_url} if with_direct_url else {}
    with opened(url := pooler.url(direct_url)) as database:
        be_quick(database)
        with started_on(url, tmp_path, environ=environ) as daemons:
            every = daemons.start_together(["up"], ["up"], ["worker"])
            if not with_direct_url:
                every[0].wait_for("polling only")
            with Load(database, tmp_path) as load:
                load.wait_for_ends(30)
            load.settle()
            assert with_direct_url == (sum(one.count("polling only") for one in every) == 0)
            daemons.stop_all()
        with opened(direct_url) as direct, direct.read() as connection:
            prepared = "SELECT count(*) FROM pg_prepared_statements"
            assert connection.execute(text(prepared)).scalar_one() == 0


def test_the_tables_are_migrated_through_a_pooler(
    pooler: PgBouncer, postgres: PostgresServer
) -> None:
    direct_url = postgres.create(())
    migrate(pooler.url(direct_url), (ENGINE,))
    with opened(direct_url) as database, database.read() as connection:
        assert connection.execute(text("SELECT epoch FROM tsuzuki_leadership")).scalar_one() == 0
    postgres.drop(direct_url)


def test_settings_are_made_for_a_transaction_and_not_for_the_session_of_others(
    pooler: PgBouncer, direct_url: str
) -> None:
    cost = text("SHOW random_page_cost")
    with opened(direct_url) as direct, direct.read() as connection:
        assert not connection.info[POOLED]
        assert connection.execute(cost).scalar_one() == SETTINGS["random_page_cost"]
    with opened(pooler.url(direct_url)) as pooled:
        with pooled.write() as connection:
            assert connection.info[POOLED]
            assert connection.execute(cost).scalar_one() == SETTINGS["random_page_cost"]
        with pooled.statements() as statements:
            assert statements.send("SHOW random_page_cost", has_rows=True)[0] == [("1.1",)]
        with pooled.read() as connection:
            assert connection.execute(cost).scalar_one() == "4"


def test_only_transactions_of_handlers_may_be_idle_for_long(
    pooler: PgBouncer, direct_url: str
) -> None:
    idle = text("SHOW idle_in_transaction_session_timeout")
    with opened(pooler.url(direct_url)) as pooled:
        for use, expected in (
            (ConnectionUse.SHORT, "10s"),
            (ConnectionUse.UNBOUNDED, "1min"),
            (ConnectionUse.SHORT, "10s"),
        ):
            with pooled.used_for(use), pooled.write() as connection:
                assert connection.info[POOLED]
                assert connection.execute(idle).scalar_one() == expected
        with pooled.read() as connection:
            assert connection.execute(idle).scalar_one() == "0"


@pytest.mark.parametrize(
    ("setting", "value"),
    [("TimeZone", "Asia/Tokyo"), ("default_transaction_isolation", "repeatable read")],
)
def test_every_statement_has_our_zone_and_isolation_level_whatever_the_servers_are(
    pooler: PgBouncer, postgres: PostgresServer, setting: str, value: str
) -> None:
    url = postgres.create()
    with opened(url) as direct, direct.write() as connection:
        name = database_name(url)
        connection.execute(text(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'"))
    settings = "SELECT current_setting('TimeZone'), current_setting('transaction_isolation')"
    late = "SELECT CAST('9999-12-31T23:59:59Z' AS timestamptz)"
    with opened(pooler.url(url)) as pooled:
        found = []
        for opening in (pooled.read, pooled.write):
            with opening() as connection:
                found += [tuple(connection.execute(text(settings)).one())]
                assert connection.execute(text(late)).scalar_one().year == 9999
        for single in (pooled.statement, pooled.statements, pooled.single_read):
            with single() as statement:
                found += statement.send(settings, has_rows=True)[0]
                assert statement.send(late, has_rows=True)[0][0][0].year == 9999
        assert set(found) == {("UTC", "read committed")}
        with pooled.statement() as statement:
            assert statement.info[OTHER_DEFAULTS]
            statement.send("CREATE TABLE stored (id int)")
        with pooled.read() as connection:
            assert connection.execute(text("SELECT count(*) FROM stored")).scalar_one() == 0
    postgres.drop(url)


def test_a_pooler_that_passes_no_notification_on_is_told_with_the_way_past_it(
    pooler: PgBouncer, direct_url: str
) -> None:
    with opened(pooler.url(direct_url)) as database, pytest.raises(NotListening) as raised:
        listen(database)
    assert "TSUZUKI_DATABASE_DIRECT_URL" in (raised.value.hint or "")


def test_in_session_mode_notifications_arrive(postgres: PostgresServer, direct_url: str) -> None:
    with pgbouncer(postgres, mode="session") as pooler, opened(pooler.url(direct_url)) as database:
        listener = listen(database)
        with database.statement() as connection:
            connection.send("SELECT pg_notify('tsuzuki_leader', '')")
        assert list(listener.wait(10.0))
        listener.close()
