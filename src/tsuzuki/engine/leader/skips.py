"""Skips: runs that a rule keeps from running, stored so that nothing that was due vanishes without a record."""

from collections.abc import Sequence

from tsuzuki.model.run import NewRun, RunRef
from tsuzuki.model.states import Reason
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.sql.database import Connection


def store_skipped(
    connection: Connection, skipped: Sequence[NewRun], reason: Reason, term: Term
) -> int:
    """A skip is a run that is created and canceled in one transaction, so it has a history too."""
    created_ids = runs.create(connection, skipped, term=term)
    refs = [RunRef(id=run_id, version=1) for run_id in created_ids if run_id is not None]
    return len(moves.skip(connection, term=term, runs=refs, reason=reason))
