"""A standby is promoted: with synchronous replication nothing confirmed is lost, and the old primary confirms nothing.

Asynchronous replication may lose the last confirmed writes; the work goes on from what the standby has.
"""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import be_quick, eventually, started_on
from support.databases import PostgresServer, migrate, opened
from support.factories import add_job, spec
from support.history_checker import check_history
from support.load import Load
from support.replicated_servers import ReplicatedServers, replicated_servers
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import Reason
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store import leadership
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow


@pytest.fixture
def servers(postgres: PostgresServer) -> Iterator[ReplicatedServers]:
    with replicated_servers(postgres) as servers:
        migrate(servers.url, (ENGINE,))
        yield servers


def submit(database: Database, key: str) -> int:
    request = Request(job="brief", idempotency_key=key)
    return Runs(database=database, actor="test").submit(request).run_id


def try_to_submit(database: Database, key: str) -> int | None:
    """None as long as a connection leads to the server that is gone, or to none that can be written to."""
    try:
        return submit(database, key)
    except Unreachable:
        return None


def lead(database: Database, holder: str, *, lease_seconds: float) -> Term | None:
    with database.statement() as connection:
        return leadership.take(connection, holder=holder, lease_seconds=lease_seconds)


def skip(database: Database, term: Term, run_id: int) -> frozenset[int]:
    with database.write() as connection:
        waiting = [RunRef(id=run_id, version=1)]
        return moves.skip(connection, term=term, runs=waiting, reason=Reason.LATE)


def test_nothing_confirmed_is_lost_when_a_synchronous_standby_is_promoted(
    servers: ReplicatedServers, tmp_path: Path
) -> None:
    servers.wait_for_the_standby()
    with opened(servers.url) as database:
        be_quick(database)
        with started_on(servers.url, tmp_path) as daemons:
            daemons.start_together(["up"], ["up"])
            with Load(database, tmp_path, seconds=0.3) as load:
                load.wait_for_ends(5)
                servers.crash(servers.primary)
                servers.promote()
                load.wait_for_ends(5)
            load.settle()
            assert daemons.are_all_up()


def test_an_old_primary_that_still_runs_confirms_nothing_after_the_promotion(
    servers: ReplicatedServers,
) -> None:
    servers.wait_for_the_standby()
    old, new = servers.url_of(servers.primary), servers.url_of(servers.standby)
    confirmed: list[int] = []
    refused: list[str] = []

    def write_to_the_old_one(database: Database) -> None:
        try:
            confirmed.append(submit(database, "after the cut"))
        except Unreachable as problem:
            refused.append(problem.specific_code)

    with opened(old) as on_old, opened(new) as on_new:
        add_job(on_old, spec("brief"))
        old_term = lead(on_old, "old", lease_seconds=0.001)
        assert old_term is not None
        servers.cut_replication()
        writer = threading.Thread(target=write_to_the_old_one, args=(on_old,))
        writer.start()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        eventually(lambda: servers.execute(servers.primary, waiting), what="a commit that waits")
        servers.promote()
        new_term = lead(on_new, "new", lease_seconds=60.0)
        assert new_term is not None
        assert new_term.epoch == old_term.epoch + 1
        with on_new.statement() as connection:
            assert not leadership.renew(connection, term=old_term, lease_seconds=60.0)
        assert (confirmed, refused) == ([], [])
        servers.crash(servers.primary)
        writer.join(60)
        assert (confirmed, refused) == ([], ["database"])
        assert check_history(on_new) == []


def test_an_asynchronous_standby_may_lack_the_last_writes_and_work_goes_on_without_them(
    servers: ReplicatedServers,
) -> None:
    with opened(servers.url) as database:
        add_job(database, spec("brief"))
        kept = submit(database, "replicated")
        position = "SELECT pg_current_wal_lsn()"
        ((until,),) = servers.execute(servers.primary, position)
        replayed = f"SELECT 1 WHERE pg_last_wal_replay_lsn() >= '{until}'"
        eventually(lambda: servers.execute(servers.standby, replayed), what="the standby")
        servers.cut_replication()
        submit(database, "confirmed and lost")
        lost = lead(database, "leader before", lease_seconds=60.0)
        servers.crash(servers.primary)
        servers.promote()
        # The same key is free again.
        again = eventually(lambda: try_to_submit(database, "confirmed and lost"), what="a primary")
        assert [run.id for run in check_history(database)] == [kept, again]
        # The epoch of the lost term is given again, and the leader before writes nothing under it.
        term = lead(database, "leader after", lease_seconds=60.0)
        assert lost is not None
        assert term == Term(holder="leader after", epoch=lost.epoch)
        assert skip(database, lost, kept) == frozenset()
        assert skip(database, term, kept) == {kept}
