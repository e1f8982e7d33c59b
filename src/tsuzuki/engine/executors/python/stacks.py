"""The live stack of a function: where it is right now, without the engine's frames above it."""

import asyncio
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from traceback import StackSummary, walk_stack
from types import FrameType
from typing import Any

from tsuzuki.engine.executors.python import call

FRAMES_MAX = 50
TASKS_MAX = 20
CHARACTERS_MAX = 64 * 1024


def stack_of(
    thread_id: int | None,
    loop: asyncio.AbstractEventLoop | None = None,
    *,
    others: Sequence[threading.Thread] = (),
) -> str:
    """Of the function in this thread; with a loop that is for this function alone, the stacks of its tasks too.
    `others` are threads that it may have started."""
    current = None if loop is None else asyncio.current_task(loop)
    parts = [] if loop is not None and current is None else [_stack_of_thread(thread_id)]
    if loop is not None:
        tasks = [task for task in asyncio.all_tasks(loop) if task is not current]
        parts += [
            f"Task {task.get_name()}:\n{stack_of_task(task)}"
            for task in sorted(tasks, key=asyncio.Task.get_name)[:TASKS_MAX]
        ]
    parts += [f"Thread {one.name}:\n{_stack_of_thread(one.ident)}" for one in others[:TASKS_MAX]]
    return "\n".join(part for part in parts if part)[:CHARACTERS_MAX]


def stack_of_task(task: "asyncio.Task[Any]") -> str:
    """Where a task waits; of the one that is executing, where its thread is."""
    loop = task.get_loop()
    if asyncio.current_task(loop) is task:
        return _stack_of_thread(getattr(loop, "_thread_id", None))
    return _formatted(_awaiting(task.get_coro()))


def _stack_of_thread(thread_id: int | None) -> str:
    frame = sys._current_frames().get(thread_id or 0)  # noqa: SLF001 -- there is no public way
    return _formatted(reversed([one for one, _ in walk_stack(frame)])) if frame else ""


def _awaiting(coroutine: Any) -> Iterator[FrameType]:
    """From the outermost coroutine to the innermost one that it awaits."""
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield frame
        coroutine = coroutine.cr_await


def _formatted(frames: Iterable[FrameType]) -> str:
    """Below the last frame of ours that calls functions."""
    whole = [*frames]
    ours = [
        number for number, frame in enumerate(whole) if frame.f_code.co_filename == call.__file__
    ]
    of_function = whole[ours[-1] + 1 :] if ours else whole
    summary = StackSummary.extract((frame, frame.f_lineno) for frame in of_function[-FRAMES_MAX:])
    return "".join(summary.format()).rstrip()
