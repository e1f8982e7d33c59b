"""Messages between a worker and a child, as JSON: the run to execute, and its outcome."""

import json
import struct
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from tsuzuki.engine.outcome import SUCCEEDED, Failed, Outcome, Stopped, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import StartedRun, WorkOrder, key_of_work
from tsuzuki.model.states import Reason

Message = Mapping[str, Any]

_LENGTH = struct.Struct("=I")


def encoded(message: Message) -> bytes:
    # What a handler leaves in an exception may be anything.
    return json.dumps(message, default=str).encode("ascii")


def request(message: Message) -> bytes:
    """To the child: with its length, because its pipe carries nothing else."""
    content = encoded(message)
    return _LENGTH.pack(len(content)) + content


def requests(pipe: Any) -> Iterator[dict[str, Any]]:
    """The requests that come through a binary file, until it is closed."""
    while len(head := pipe.read(_LENGTH.size)) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        yield json.loads(pipe.read(length))


def run_message(task: Task) -> Message:
    """What a child needs to know of a run."""
    return {
        "id": task.run.id,
        "version": task.started.version,
        "epoch": task.started.epoch,
        "job": task.job_name,
        "handler": task.spec.handler,
        "options": dict(task.spec.options),
        "arguments": dict(task.run.arguments),
        "attempt": task.run.attempt,
        "work_key": key_of_work(task.run),
        "scheduled_for": task.run.scheduled_for.isoformat(),
        "event": task.event,
    }


def task_of(message: Message) -> Task:
    """The inverse of `run_message`; what a child does not need is left empty."""
    started = StartedRun(message["id"], message["version"], message["epoch"])
    return Task(
        run=WorkOrder(
            id=started.id,
            version=started.version,
            leader_epoch=started.epoch,
            job_definition_id=0,
            scheduled_for=datetime.fromisoformat(message["scheduled_for"]),
            priority=0,
            arguments=message["arguments"],
            attempt=message["attempt"],
            retries_used=0,
            losses=0,
            losses_free=0,
            origin_id=None,
            work_key=message["work_key"],
            concurrency_key=None,
            event_id=None,
        ),
        started=started,
        spec=JobSpec(name=message["job"], handler=message["handler"], options=message["options"]),
        event=message["event"],
    )


def outcome_message(outcome: Outcome) -> Message:
    match outcome:
        case Succeeded(result=result):
            return {"result": result}
        case Stopped():
            return {}
        case Failed() as failed:
            return {**vars(failed)}


def outcome_of(message: Message) -> Outcome | None:
    """The inverse of `outcome_message`; None of a function that stopped when it was asked to."""
    if "reason" in message:
        return Failed(
            reason=Reason(message["reason"]),
            error=message["error"],
            retry_after_seconds=message["retry_after_seconds"],
            result=message["result"],
        )
    if "result" not in message:
        return None
    return SUCCEEDED if message["result"] is None else Succeeded(result=message["result"])
