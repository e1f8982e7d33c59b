"""An outward act moves from state to state, each move guarded by the state it leaves."""

from itertools import product

import pytest
from sqlalchemy import BigInteger, Column, MetaData, Table, Text, insert, select

from support.factories import WORKER, add_worker, run_in_state, take_lead
from tsuzuki.model.states import RunState
from tsuzuki.outward.outbox import MOVES, Outbox, OutboxState
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.types import BigId, PlainText, UtcTime

ACTS = Table(
    "outward_acts",
    MetaData(),
    Column("id", BigId, primary_key=True),
    Column("job_name", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("changed_at", UtcTime),
    Column("sent_by_run", BigInteger),
    Column("error", PlainText),
)
OUTBOX = Outbox(ACTS)


@pytest.fixture
def term(database: Database) -> Term:
    add_worker(database, WORKER, capacity=100)
    with database.write() as connection:
        ACTS.create(connection)
    return take_lead(database)


def add(
    database: Database, state: OutboxState, run_id: int | None = None, *, job_name: str = "post"
) -> int:
    values = {"job_name": job_name, "state": state.value, "sent_by_run": run_id}
    with database.write() as connection:
        act = insert(ACTS).values(values).returning(ACTS.c.id)
        return int(connection.execute(act).scalar_one())


def state_of(database: Database, act_id: int) -> str:
    with database.read() as connection:
        return str(connection.execute(select(ACTS.c.state).where(ACTS.c.id == act_id)).scalar_one())


def moved(database: Database, act_id: int, before: OutboxState, after: OutboxState) -> bool:
    with database.write() as connection:
        now = database.now(connection)
        return OUTBOX.move(connection, act_id, before=before, after=after, now=now, run_id=7)


@pytest.mark.usefixtures("term")
def test_every_move_is_made_once_and_no_other_is_made(database: Database) -> None:
    for before, after in product(OutboxState, OutboxState):
        act = add(database, before)
        if after in MOVES[before]:
            assert moved(database, act, before, after)
            assert not moved(database, act, before, after)
            assert state_of(database, act) == after
        else:
            with pytest.raises(ValueError, match="cannot become"):
                moved(database, act, before, after)


def test_only_acts_of_a_job_whose_sender_runs_no_more_are_settled(
    database: Database, term: Term
) -> None:
    running = run_in_state(database, RunState.RUNNING, term).id
    ended = run_in_state(database, RunState.FAILED, term).id
    alive, lost, sent, of_other_job = (
        add(database, OutboxState.SENDING, running),
        add(database, OutboxState.SENDING, ended),
        add(database, OutboxState.SENT, ended),
        add(database, OutboxState.SENDING, ended, job_name="other"),
    )
    with database.write() as connection:
        settled = OUTBOX.settle(connection, "post", now=database.now(connection))
    assert [row["id"] for row in settled] == [lost]
    assert state_of(database, lost) == OutboxState.UNSETTLED
    assert state_of(database, alive) == OutboxState.SENDING
    assert state_of(database, sent) == OutboxState.SENT
    assert state_of(database, of_other_job) == OutboxState.SENDING
