"""Bulk cancels by an operator: of everything that waits, or also of what runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from simulation.violations import InvariantViolated
from tsuzuki.engine.leader import bulk_canceler
from tsuzuki.model.bulk import BulkVerb
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services import bulk as bulk_service
from tsuzuki.services.bulk import BulkActions, BulkActionView
from tsuzuki.services.runs import Runs
from tsuzuki.store import bulk
from tsuzuki.store.bulk import BulkAction
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.prepared import AnyConnection

if TYPE_CHECKING:
    from simulation.client import Client
    from simulation.world import World

WAITING_ONLY = "cancels-waiting"
EVERYTHING = "cancels-everything"
"""Two people, so that a move tells by whose action it was made."""

CANCELED_SECONDS = 20.0
"""In a simulation a leader carries out one small page in each round, and operators confirm one action after another."""

LOOKS_MAX, LOOK_SECONDS = 100, 0.01
PAGE = 2
COMMITS_MAX = 10
"""So often others may commit until they have started a run that a bulk cancel has read."""

AUDIT_SQL = (
    "SELECT object_id, before, actor FROM tsuzuki_audit_log"
    f" WHERE action = 'run.cancel' AND actor IN ('{WAITING_ONLY}', '{EVERYTHING}')"
)
CANCELED_SQL = (
    "SELECT run_id, from_state, actor_id FROM tsuzuki_job_run_transitions"
    f" WHERE to_state = 'CANCELED' AND actor_id IN ('{WAITING_ONLY}', '{EVERYTHING}')"
)


class BulkCancels:
    """Of an operator."""

    def __init__(self, client: "Client") -> None:
        self._world = client.world
        service = Runs(database=client.database, actor=client.name)
        self._waiting_only, self._everything = (
            BulkActions(database=client.database, actor=actor, runs=service)
            for actor in (WAITING_ONLY, EVERYTHING)
        )

    def cancel_waiting(self) -> None:
        view = self._confirm(self._waiting_only, frozenset({RunState.PENDING}))
        self._freeze(view, frozenset({RunState.PENDING}))

    def cancel_waiting_once_assigned(self) -> None:
        """At a moment when a run is assigned and not started, if there is one soon."""
        for _ in range(LOOKS_MAX):
            states = {run.state for run in self._world.invariants.runs.values()}
            if RunState.ASSIGNED in states:
                break
            self._world.scheduler.sleep(LOOK_SECONDS)
        self.cancel_waiting()

    def cancel_everything(self) -> None:
        view = self._confirm(self._everything, frozenset())
        self._freeze(view, frozenset({RunState.PENDING, RunState.RUNNING}))

    def _confirm(self, actions: BulkActions, states: frozenset[RunState]) -> BulkActionView:
        wanted = RunFilter(job_names=frozenset({"asked", "keyed"}), states=states)
        preview = actions.preview(BulkVerb.CANCEL, wanted)
        self._world.log(f"a bulk cancel of {preview.action.matched} runs is confirmed")
        view = actions.confirm(preview.action.id)
        self._world.coverage["a bulk cancel was confirmed"] += 1
        return view

    def _freeze(self, view: BulkActionView, states: frozenset[RunState]) -> None:
        """From now on what it covers is not assigned, and soon it is canceled."""
        world = self._world
        for run_id, run in world.invariants.runs.items():
            is_named = world.definitions.name(run.job_id) in ("asked", "keyed")
            if is_named and run_id <= view.action.ceiling_id and run.state in states:
                world.invariants.frozen_runs.add(run_id)
                world.promises.stop_canceled(run_id, seconds=CANCELED_SECONDS)
                world.coverage[f"a bulk cancel covered a {run.state} run"] += 1


def check_audit(world: "World") -> None:
    """The audit log tells of each run that was canceled in bulk, and in which state it was."""
    raw = world.store.raw
    told = {
        (int(run_id), json.loads(before)["state"], actor)
        for run_id, before, actor in raw.execute(AUDIT_SQL)
    }
    if untold := set(raw.execute(CANCELED_SQL)) ^ told:
        raise InvariantViolated(f"the audit log tells otherwise of {sorted(untold)}")


_page_of, _next_cancel = runs.page_of, bulk.next_cancel
_cancel_assigned = bulk_service.cancel_assigned


@contextmanager
def interleaved_bulk_cancels(world: "World") -> Iterator[None]:
    """Small pages, and others commit between the read of a page and its moves, as on a server."""
    confirmed_now: set[int] = set()

    def page_of(connection: AnyConnection, *arguments: Any, **options: Any) -> Any:
        """After the page of a confirmation, preferably a worker commits that starts one of its runs."""
        found = _page_of(connection, *arguments, **options)
        world.let_others_commit()
        if confirmed_now and found:
            for _ in range(COMMITS_MAX):
                if any(world.invariants.is_running(run.id) for run in found):
                    world.coverage["a run was started that a bulk cancel had just read"] += 1
                    break
                world.let_others_commit()
        return found

    def cancel_assigned(connection: AnyConnection, action: BulkAction) -> None:
        confirmed_now.add(action.id)
        try:
            _cancel_assigned(connection, action)
        finally:
            confirmed_now.remove(action.id)

    def next_cancel(connection: AnyConnection) -> BulkAction | None:
        """A leader does not see a confirmation before its commit."""
        found = _next_cancel(connection)
        return None if found is None or found.id in confirmed_now else found

    with (
        patch.object(bulk_canceler, "PAGE", PAGE),
        patch.object(bulk_canceler, "TICK_SECONDS_MAX", 0.0),
        patch.object(runs, "page_of", page_of),
        patch.object(bulk, "next_cancel", next_cancel),
        patch.object(bulk_service, "cancel_assigned", cancel_assigned),
    ):
        yield
