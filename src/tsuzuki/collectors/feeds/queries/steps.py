"""Steps: what was done for an item, and what it cost. A step that may cost is recorded before its request leaves."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, Text, bindparam, insert, select, update

from tsuzuki.collectors.feeds.tables import PreparationStep, StepState, item_steps
from tsuzuki.store.sql.prepared import execute, parameters_for

BLOCKED = "model_blocked"
"""The error code of a question that the model will not answer, or not usefully."""


@dataclass(frozen=True, kw_only=True)
class StepRecord:
    """A step as it is stored. `cost_micros` is in millionths of a US dollar; None if the price is not known."""

    id: int
    item_id: int
    run_id: int
    step: PreparationStep
    state: StepState
    model: str | None
    prompt_version: str | None
    input_hash: str | None
    result: Any
    error_code: str | None
    error: str | None
    is_paid: bool
    input_tokens: int
    output_tokens: int
    cost_micros: int | None
    started_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class StepEnd:
    """How a step ended. It failed if there is an error code."""

    result: Any = None
    error_code: str | None = None
    error: str | None = None
    is_paid: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


_END = parameters_for(
    item_steps,
    "state",
    "result",
    "error_code",
    "error",
    "is_paid",
    "input_tokens",
    "output_tokens",
    "cost_micros",
    "ended_at",
)
_RECORD = insert(item_steps).values(
    **parameters_for(item_steps, "item_id", "run_id", "step", "started_at"), **_END
)
_START = (
    insert(item_steps)
    .values(
        **parameters_for(
            item_steps,
            "item_id",
            "run_id",
            "step",
            "model",
            "prompt_version",
            "input_hash",
            "started_at",
        ),
        state=StepState.STARTED.value,
        is_paid=False,
        input_tokens=0,
        output_tokens=0,
    )
    .returning(item_steps.c.id)
)
_FINISH = (
    update(item_steps)
    .where(
        item_steps.c.id == bindparam("that_step", type_=BigInteger()),
        item_steps.c.state == StepState.STARTED.value,
    )
    .values(**_END)
)
_OF_ITEM = item_steps.c.item_id == bindparam("that_item", type_=BigInteger())
_OF_STEP = item_steps.c.step == bindparam("that_step", type_=Text())
_LAST_DONE = (
    select(item_steps)
    .where(_OF_ITEM, _OF_STEP, item_steps.c.state == StepState.DONE.value)
    .order_by(item_steps.c.id.desc())
    .limit(1)
)
_SELECT_OF_ITEM = select(item_steps).where(_OF_ITEM).order_by(item_steps.c.id)


def start(
    connection: Connection,
    *,
    item_id: int,
    run_id: int,
    step: PreparationStep,
    now: datetime,
    model: str | None = None,
    prompt_version: str | None = None,
    input_hash: str | None = None,
) -> int:
    """Record that a step starts; returns its id."""
    values = {
        "item_id": item_id,
        "run_id": run_id,
        "step": step.value,
        "model": model,
        "prompt_version": prompt_version,
        "input_hash": input_hash,
        "started_at": now,
    }
    step_id: int = execute(connection, _START, values).scalar_one()
    return step_id


def record(
    connection: Connection,
    *,
    item_id: int,
    run_id: int,
    step: PreparationStep,
    end: StepEnd,
    started_at: datetime,
    now: datetime,
) -> None:
    """Record a step that costs nothing, when it has ended."""
    values = {"item_id": item_id, "run_id": run_id, "step": step.value, "started_at": started_at}
    execute(connection, _RECORD, {**values, **_end_values(end, now)})


def finish(connection: Connection, step_id: int, end: StepEnd, *, now: datetime) -> None:
    """Record how a step ended."""
    execute(connection, _FINISH, {"that_step": step_id, **_end_values(end, now)})


def _end_values(end: StepEnd, now: datetime) -> dict[str, Any]:
    state = StepState.DONE if end.error_code is None else StepState.FAILED
    return {"state": state.value, "ended_at": now, **vars(end)}


def last_done(connection: Connection, item_id: int, step: PreparationStep) -> StepRecord | None:
    """The last good result of a step."""
    values = {"that_item": item_id, "that_step": step.value}
    return _record(execute(connection, _LAST_DONE, values).mapping_or_none())


def last_done_of(earlier: Sequence[StepRecord], step: PreparationStep) -> StepRecord | None:
    """The last good result of a step, among the steps of an item."""
    done = (one for one in reversed(earlier) if one.step is step and one.state is StepState.DONE)
    return next(done, None)


def blocked_before(
    earlier: Sequence[StepRecord], step: PreparationStep, *, input_hash: str
) -> StepRecord | None:
    """The same question to the same model, which would not answer it: it is not paid for again."""
    for one in reversed(earlier):
        is_same = one.step is step and one.input_hash == input_hash
        if is_same and one.state is StepState.FAILED and one.error_code == BLOCKED:
            return one
    return None


def of_item(connection: Connection, item_id: int) -> list[StepRecord]:
    """Every step of an item, the first one first."""
    rows = execute(connection, _SELECT_OF_ITEM, {"that_item": item_id}).mappings()
    return [_from(row) for row in rows]


def _record(row: dict[str, Any] | None) -> StepRecord | None:
    return None if row is None else _from(row)


def _from(row: dict[str, Any]) -> StepRecord:
    return StepRecord(
        **{**row, "step": PreparationStep(row["step"]), "state": StepState(row["state"])}
    )
