"""An outbox: acts that reach outside and cannot be undone, such as sending a mail, each done at most once.

    INTENDED ──▶ SENDING ──▶ SENT
        ▲          │  ├────▶ REFUSED     the receiver will not have it
        ├──────────┘  └────▶ UNSETTLED   its sender was cut off before the answer
        └─ a person says: send it again (from REFUSED and UNSETTLED), or: it arrived (UNSETTLED ──▶ SENT)

The intent is stored before the receiver is talked to, SENDING before the message leaves, SENT after the
answer. Every move names the state it leaves, so of two senders one does nothing.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sqlalchemy import BigInteger, Connection, Table, bindparam, func, select, update

from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.prepared import execute


class OutboxState(StrEnum):
    """How far an act is. Only INTENDED is ever sent without a person's word."""

    INTENDED = "intended"
    """Recorded, and surely not accepted by any receiver. The next run sends it."""

    SENDING = "sending"
    """The receiver has said go ahead. A crash from here on leaves it open whether it arrived."""

    SENT = "sent"
    """The receiver has accepted it, or a person says that it arrived."""

    REFUSED = "refused"
    """The receiver will not have it. A person may send it again."""

    UNSETTLED = "unsettled"
    """Its sender was cut off before the receiver's answer. If the receiver cannot be asked, a person
    decides: it arrived, or it is sent again."""


MOVES: Mapping[OutboxState, frozenset[OutboxState]] = MappingProxyType(
    {
        OutboxState.INTENDED: frozenset({OutboxState.SENDING}),
        OutboxState.SENDING: frozenset(OutboxState) - {OutboxState.SENDING},
        OutboxState.SENT: frozenset(),
        OutboxState.REFUSED: frozenset({OutboxState.INTENDED}),
        OutboxState.UNSETTLED: frozenset({OutboxState.INTENDED, OutboxState.SENT}),
    }
)
"""Where each state may lead."""

INTERRUPTED = "the connection was lost before the server's response"


class Outbox:
    """The moves of one table's acts: its columns `id`, `job_name`, `state`, `changed_at`, `sent_by_run`,
    `error`."""

    def __init__(self, table: Table) -> None:
        run_id = bindparam("run_id", type_=BigInteger())
        self._move = (
            update(table)
            .where(table.c.id == bindparam("act_id"), table.c.state == bindparam("before"))
            .values(
                state=bindparam("after"),
                changed_at=bindparam("now"),
                error=bindparam("problem"),
                sent_by_run=func.coalesce(run_id, table.c.sent_by_run),
            )
        )
        sender_is_running = (
            select(job_runs.c.id)
            .where(job_runs.c.id == table.c.sent_by_run, job_runs.c.state == RunState.RUNNING)
            .exists()
        )
        self._settle = (
            update(table)
            .where(
                table.c.job_name == bindparam("job"),
                table.c.state == OutboxState.SENDING,
                ~sender_is_running,
            )
            .values(state=OutboxState.UNSETTLED, changed_at=bindparam("now"), error=INTERRUPTED)
            .returning(table)
        )

    def move(
        self,
        connection: Connection,
        act_id: int,
        *,
        before: OutboxState,
        after: OutboxState,
        now: datetime,
        run_id: int | None = None,
        error: str | None = None,
    ) -> bool:
        """Move an act on, if it is still in the state it is believed to be in."""
        if after not in MOVES[before]:
            raise ValueError(f"an act that is {before} cannot become {after}")
        values = {
            "act_id": act_id,
            "before": before.value,
            "after": after.value,
            "now": now,
            "run_id": run_id,
            "problem": error,
        }
        return execute(connection, self._move, values).rowcount == 1

    def settle(
        self, connection: Connection, job_name: str, *, now: datetime
    ) -> list[dict[str, Any]]:
        """SENDING -> UNSETTLED for a job's acts whose sender is no longer RUNNING, and so will never learn
        what the receiver said. Returns their rows."""
        return execute(connection, self._settle, {"job": job_name, "now": now}).mappings()
