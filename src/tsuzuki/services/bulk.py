"""Bulk actions: cancel or retry all runs that match a filter.

A bulk action is previewed, confirmed, followed and, if needed, stopped. A preview freezes the filter and the newest
run it includes. It can be confirmed once, within an hour, and is refused if far more runs match by then. The leader
then executes a cancel (`engine.leader.bulk_canceler`), and assigns nothing that it covers; a run of the engine
executes a retry (`services.bulk_handler`).
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from tsuzuki.engine.leader.bulk_canceler import cancel_assigned
from tsuzuki.model.built_in_jobs import BULK_ACTIONS
from tsuzuki.model.bulk import BulkState, BulkVerb, frozen_states, grew_too_much
from tsuzuki.model.errors import Conflict, NotFound, UsageError
from tsuzuki.model.job import JobSpec
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.services import job_changes
from tsuzuki.services.acting import ActingService
from tsuzuki.services.lookup import require_jobs
from tsuzuki.services.runs import Request, RunFilter, Runs
from tsuzuki.store import audit, bulk, leadership
from tsuzuki.store.bulk import BulkAction, ResultOfRun
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Connection, Database

HANDLER = "bulk"
SAMPLES = 10
WAIT_SECONDS = 0.2
MATCHED_MAX = 1_000_000
PREVIEW_VALID = timedelta(hours=1)
PREVIEWS_KEPT = timedelta(days=1)
ACTIONS_KEPT = timedelta(days=90)
_NEWEST = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class BulkActionView:
    """An action as people see it. `samples` are runs that match, at its preview only."""

    action: BulkAction
    state: BulkState
    samples: list[Run]

    def as_dict(self) -> dict[str, Any]:
        action = self.action
        return {
            "id": action.id,
            "verb": action.verb,
            "state": self.state,
            "filter": action.filter,
            "matched": action.matched,
            "done": action.done,
            "run_id": action.run_id,
            "created_at": action.created_at,
            "created_by": action.created_by,
            "confirmed_at": action.confirmed_at,
            "confirmed_by": action.confirmed_by,
            "stopped_at": action.stopped_at,
            "finished_at": action.finished_at,
        }


class BulkActions(ActingService):
    def __init__(self, *, database: Database, actor: str, runs: Runs) -> None:
        self._database = database
        self._actor = actor
        self._runs = runs

    def preview(self, verb: BulkVerb, wanted: RunFilter) -> BulkActionView:
        """Freeze the filter, and count what it matches. No run is changed."""
        wanted = _within(verb, wanted)
        with self._database.write() as connection:
            now = self._database.now(connection)
            bulk.delete_old(
                connection, previews_before=now - PREVIEWS_KEPT, all_before=now - ACTIONS_KEPT
            )
            require_jobs(connection, wanted)
            ceiling_id = runs.newest_id(connection)
            samples = runs.page_of(
                connection, replace(wanted, limit=SAMPLES), after_id=0, up_to_id=ceiling_id
            )
            bulk_id = bulk.create(
                connection,
                verb=verb,
                frozen=wanted.as_dict(),
                ceiling_id=ceiling_id,
                matched=_count(connection, wanted, ceiling_id),
                actor=self._actor,
            )
            view = self._view(connection, bulk_id)
            self._note(connection, "bulk.preview", view.action)
            return replace(view, samples=samples)

    def confirm(self, bulk_id: int) -> BulkActionView:
        """Have it carried out. Raises `Conflict` if it was confirmed before, is older than an hour, or would
        reach far more runs than its preview said."""
        with self._database.write() as connection:
            action = self._require(connection, bulk_id)
            wanted = RunFilter.from_dict(action.filter)
            now = _count(connection, wanted, action.ceiling_id)
            if grew_too_much(previewed=action.matched, now=now):
                raise Conflict(
                    f"{now} runs match now, but the preview had {action.matched}",
                    hint="Create the preview again and check it.",
                    code="bulk_grew",
                )
            made_after = self._database.now(connection) - PREVIEW_VALID
            if action.verb is BulkVerb.CANCEL:
                leadership.count_bulk_cancel(connection)
            if not bulk.confirm(connection, bulk_id, actor=self._actor, made_after=made_after):
                raise _not_confirmed(self._require(connection, bulk_id))
            if action.verb is BulkVerb.CANCEL:
                cancel_assigned(connection, self._require(connection, bulk_id))
            else:
                self._submit_run(connection, bulk_id)
            self._note(connection, "bulk.confirm", action)
            view = self._view(connection, bulk_id)
        self._runs.tell_leader()
        return view

    def _submit_run(self, connection: Connection, bulk_id: int) -> None:
        """The run that carries a retry out."""
        _define_job(connection, actor=self._actor)
        # No key, which a caller might have used: an action is confirmed once, in this transaction.
        request = Request(job=BULK_ACTIONS, arguments={"bulk": bulk_id})
        submission = self._runs.submit(request, connection=connection)
        bulk.take(connection, bulk_id, run_id=submission.run_id)

    def wait(
        self, bulk_id: int, *, on_change: Callable[[BulkActionView], None] = lambda _view: None
    ) -> BulkActionView:
        """The action, once it is carried out, stopped or failed. `on_change` sees it whenever it has progressed."""
        clock, never, seen = self._database.clock, threading.Event(), None
        while True:
            view = self.get(bulk_id)
            if view != seen:
                seen = view
                on_change(view)
            if view.state is not BulkState.CONFIRMED:
                return view
            clock.wait(never, WAIT_SECONDS)

    def stop(self, bulk_id: int) -> BulkActionView:
        """Let it go no further. What was done stays done."""
        with self._database.write() as connection:
            action = self._require(connection, bulk_id)
            if not bulk.stop(connection, bulk_id):
                state = self._view(connection, bulk_id).state
                raise Conflict(
                    f"bulk action {bulk_id} cannot be stopped: it is {state}",
                    hint=f"See its results with: tsuzuki run bulk show {bulk_id}",
                    code="bulk_not_running",
                )
            self._note(connection, "bulk.stop", action)
            return self._view(connection, bulk_id)

    def get(self, bulk_id: int) -> BulkActionView:
        with self._database.read() as connection:
            return self._view(connection, bulk_id)

    def find(self, *, before_id: int | None = None, limit: int = 50) -> list[BulkActionView]:
        """Newest first."""
        with self._database.read() as connection:
            found = bulk.find(connection, before_id=before_id or _NEWEST, limit=limit)
            return [
                BulkActionView(action=action, state=_state(connection, action), samples=[])
                for action in found
            ]

    def count(self, *, at_most: int) -> int:
        """How many there are; counting ends at `at_most`."""
        with self._database.read() as connection:
            return bulk.count(connection, at_most=at_most)

    def results(
        self, bulk_id: int, *, after_run_id: int = 0, limit: int = 100
    ) -> list[ResultOfRun]:
        """What became of its runs, by run id."""
        with self._database.read() as connection:
            self._require(connection, bulk_id)
            return bulk.results(connection, bulk_id, after_run_id=after_run_id, limit=limit)

    def _view(self, connection: Connection, bulk_id: int) -> BulkActionView:
        action = self._require(connection, bulk_id)
        return BulkActionView(action=action, state=_state(connection, action), samples=[])

    def _require(self, connection: Connection, bulk_id: int) -> BulkAction:
        action = bulk.get(connection, bulk_id)
        if action is None:
            raise NotFound(
                f"there is no bulk action {bulk_id}",
                hint="List them with: tsuzuki run bulk ls",
                code="bulk_unknown",
            )
        return action

    def _note(self, connection: Connection, name: str, action: BulkAction) -> None:
        audit.record(
            connection,
            actor=self._actor,
            action=name,
            object_type="bulk",
            object_id=str(action.id),
            after={
                "verb": action.verb,
                "filter": action.filter,
                "matched": action.matched,
                "done": action.done,
            },
        )


def _within(verb: BulkVerb, wanted: RunFilter) -> RunFilter:
    """The filter with the states the verb can act on; it never reaches the runs that carry it out."""
    impossible = wanted.states - verb.possible_states
    if impossible:
        raise UsageError(
            f"{', '.join(sorted(impossible))} runs cannot be "
            + (
                "canceled because they have ended"
                if verb is BulkVerb.CANCEL
                else "retried because they have not ended"
            ),
            hint=f"Possible states: {', '.join(sorted(verb.possible_states))}.",
            code="bulk_states",
        )
    return replace(
        wanted,
        states=frozen_states(verb, wanted.states),
        is_retried=False if verb is BulkVerb.RETRY else wanted.is_retried,
        excluded_job_names=wanted.excluded_job_names | {BULK_ACTIONS},
    )


def _count(connection: Connection, wanted: RunFilter, ceiling_id: int) -> int:
    """Exact: what is acted on must be known. Raises `UsageError` where that would take too long."""
    bounded = replace(wanted, before_id=ceiling_id + 1)
    matched = runs.count(connection, bounded, at_most=MATCHED_MAX + 1)
    if matched > MATCHED_MAX:
        raise UsageError(
            f"more than {MATCHED_MAX:,} runs match",
            hint="Narrow the selection by job or state.",
            code="bulk_too_many",
        )
    return matched


def _not_confirmed(action: BulkAction) -> Conflict:
    if action.confirmed_at is not None:
        return Conflict(
            f"bulk action {action.id} was already confirmed by {action.confirmed_by}",
            hint=f"See: tsuzuki run bulk show {action.id}",
            code="bulk_confirmed",
        )
    return Conflict(
        f"the preview of bulk action {action.id} is more than an hour old",
        hint="Create the preview again and check it.",
        code="bulk_expired",
    )


def _state(connection: Connection, action: BulkAction) -> BulkState:
    if action.confirmed_at is None:
        return BulkState.PREVIEWED
    if action.finished_at is not None:
        return BulkState.DONE
    if action.stopped_at is not None:
        return BulkState.STOPPED
    if action.verb is BulkVerb.CANCEL:
        return BulkState.CONFIRMED
    run = runs.get(connection, action.run_id) if action.run_id is not None else None
    return _state_by_run(connection, run)


def _state_by_run(connection: Connection, run: Run | None) -> BulkState:
    """By the run that carries it out: failed if that has ended, and no retry of it goes on."""
    while run is not None and run.state.is_final:
        run = runs.get_retry(connection, run.id)
    return BulkState.CONFIRMED if run is not None else BulkState.FAILED


def _define_job(connection: Connection, *, actor: str) -> None:
    """The job whose runs carry bulk retries out; made when first needed."""
    job_changes.define(
        connection,
        [
            JobSpec(
                name=BULK_ACTIONS,
                handler=HANDLER,
                description="Retries runs for bulk actions, one action per run.",
                concurrency_policy=ConcurrencyPolicy.ALLOW,
                retry=RetryPolicy(max_retries=10),
            )
        ],
        actor=actor,
    )
