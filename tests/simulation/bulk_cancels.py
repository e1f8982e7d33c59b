"""Bulk cancels by an operator: of everything that waits, or also of what runs."""

import json
from typing import TYPE_CHECKING

from simulation.violations import InvariantViolated
from tsuzuki.model.bulk import BulkVerb
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.services.bulk import BulkActions, BulkView
from tsuzuki.services.runs import Runs

if TYPE_CHECKING:
    from simulation.client import Client
    from simulation.world import World

WAITING_ONLY = "cancels-waiting"
EVERYTHING = "cancels-everything"
"""Two people, so that a move tells by whose action it was made."""

CANCELED_SECONDS = 20.0
"""In a simulation a leader carries out one small page in each round, and operators confirm one action after another."""

AUDIT_SQL = (
    "SELECT object_id, before, actor FROM audit_log"
    f" WHERE action = 'run.cancel' AND actor IN ('{WAITING_ONLY}', '{EVERYTHING}')"
)
CANCELED_SQL = (
    "SELECT run_id, from_state, actor_id FROM job_run_transitions"
    f" WHERE to_state = 'CANCELED' AND actor_id IN ('{WAITING_ONLY}', '{EVERYTHING}')"
)


class BulkCancels:
    """Of an operator."""

    def __init__(self, client: "Client") -> None:
        self._world = client.world
        runs = Runs(database=client.database, actor=client.name)
        self._waiting_only, self._everything = (
            BulkActions(database=client.database, actor=actor, runs=runs)
            for actor in (WAITING_ONLY, EVERYTHING)
        )

    def cancel_waiting(self) -> None:
        view = self._confirm(self._waiting_only, frozenset({RunState.PENDING}))
        self._freeze(view, frozenset({RunState.PENDING}))

    def cancel_everything(self) -> None:
        view = self._confirm(self._everything, frozenset())
        self._freeze(view, frozenset({RunState.PENDING, RunState.RUNNING}))

    def _confirm(self, actions: BulkActions, states: frozenset[RunState]) -> BulkView:
        wanted = RunFilter(job_names=frozenset({"asked", "keyed"}), states=states)
        preview = actions.preview(BulkVerb.CANCEL, wanted)
        self._world.log(f"a bulk cancel of {preview.action.matched} runs is confirmed")
        view = actions.confirm(preview.action.id)
        self._world.coverage["a bulk cancel was confirmed"] += 1
        return view

    def _freeze(self, view: BulkView, states: frozenset[RunState]) -> None:
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
