"""Supervisors that wait for the next command: each command is handed to an idle one, or to a new one.

Supervisors that were not needed for a while are let go. One that is gone is replaced: the command it had has ended
with it, an idle one had none.
"""

import asyncio
import os
import threading
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tsuzuki.engine.executors.command.spec import CommandSpec
from tsuzuki.engine.executors.command.supervisor import INLINE_BYTES_MAX
from tsuzuki.engine.executors.command.supervisor_client import (
    ProcessLock,
    SupervisorClient,
    SupervisorConnection,
    no_process_lock,
)
from tsuzuki.engine.executors.event_loop_thread import EventLoopThread

UNUSED_SECONDS_MAX = 10.0
"""A supervisor that was idle all this time is let go."""


@dataclass(frozen=True, kw_only=True)
class SupervisedCommand:
    """Our ends of a command under way; none of them blocks."""

    supervisor: SupervisorConnection
    stdout: int
    stderr: int


class SupervisorPool:
    """`start` may be called from any thread; `release` and `discard` on the event loop, which watches every
    supervisor, idle or not."""

    def __init__(
        self,
        loop: EventLoopThread,
        secret_names: Collection[str] = (),
        *,
        process_lock: ProcessLock = no_process_lock,
    ) -> None:
        self._loop = loop
        self._client = SupervisorClient(secret_names, process_lock=process_lock)
        self.renew_deadline = self._client.renew_deadline
        self._lock = threading.Lock()
        self._idle: list[SupervisorConnection] = []
        self._idle_min = 0
        """The smallest number of idle ones since the last check: so many were not needed."""
        self._is_checking = False

    def start(self, spec: CommandSpec) -> SupervisedCommand:
        """Start the command under a supervisor. Its end is in the report, and so is an error at its start.

        Raises `OSError` if it could not be handed over.
        """
        ours, theirs = _pipes()
        try:
            supervisor = self.hand_over(spec, theirs)
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)
        stdout, stderr = ours
        return SupervisedCommand(supervisor=supervisor, stdout=stdout, stderr=stderr)

    def hand_over(self, spec: CommandSpec, descriptors: Sequence[int]) -> SupervisorConnection:
        """Have a supervisor start the command, with these as its standard output, standard error and perhaps standard
        input. The caller closes its own. Raises `OSError` if it could not be handed over."""
        text = spec.as_bytes()
        files = [_file_of(text)] if len(text) > INLINE_BYTES_MAX else []
        text = b"" if files else text
        sent = [*descriptors, *files]
        try:
            return self._hand_over_to_idle(text, sent) or self._hand_over_to_new(text, sent)
        finally:
            _close(files)

    def release(self, supervisor: SupervisorConnection) -> None:
        """Its command has ended: it may have the next one."""
        supervisor.on_readable = lambda: self._on_readable_while_idle(supervisor)
        with self._lock:
            self._idle.append(supervisor)
        if not self._is_checking:
            self._check_later()

    def discard(self, supervisor: SupervisorConnection) -> None:
        """It is gone, or it has processes that cannot be killed: then it waits for them and ends."""
        supervisor.unwatch()
        supervisor.close()

    def close(self) -> None:
        """Start nothing more. After the event loop has ended."""
        with self._lock:
            for supervisor in self._idle:
                supervisor.close()
            self._idle.clear()
        self._client.close()

    def _hand_over_to_idle(
        self, spec: bytes, descriptors: Sequence[int]
    ) -> SupervisorConnection | None:
        while (supervisor := self._take_idle()) is not None:
            try:
                supervisor.hand_over(spec, descriptors)
            except OSError:  # it is gone
                self._loop.post(self.discard, supervisor)
            else:
                return supervisor
        return None

    def _take_idle(self) -> SupervisorConnection | None:
        with self._lock:
            if not self._idle:
                return None
            supervisor = self._idle.pop()
            self._idle_min = min(self._idle_min, len(self._idle))
            # Its report may come before the execution of the command is there to read it.
            supervisor.on_readable = None
            return supervisor

    def _hand_over_to_new(self, spec: bytes, descriptors: Sequence[int]) -> SupervisorConnection:
        supervisor = self._client.new_supervisor()
        try:
            supervisor.hand_over(spec, descriptors)
        except OSError:
            supervisor.close()
            raise
        return supervisor

    def _on_readable_while_idle(self, supervisor: SupervisorConnection) -> None:
        with self._lock:
            if supervisor not in self._idle:
                return  # it was taken meanwhile
            if supervisor.receive() != b"":
                return
            self._idle.remove(supervisor)
            self._idle_min = min(self._idle_min, len(self._idle))
        self.discard(supervisor)

    def _check_later(self) -> None:
        self._is_checking = True
        asyncio.get_running_loop().call_later(UNUSED_SECONDS_MAX, self._let_go_unused)

    def _let_go_unused(self) -> None:
        with self._lock:
            unused = self._idle[: self._idle_min]
            del self._idle[: self._idle_min]
            self._idle_min = len(self._idle)
        for supervisor in unused:
            self.discard(supervisor)
        self._is_checking = False
        if self._idle_min:
            self._check_later()


def _pipes() -> tuple[list[int], list[int]]:
    """Our ends of the two outputs, which do not block, and those of the command."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for _ in range(2):
            reading, writing = os.pipe2(os.O_CLOEXEC)
            ours.append(reading)
            theirs.append(writing)
            os.set_blocking(reading, False)
    except OSError:
        _close([*ours, *theirs])
        raise
    return ours, theirs


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _file_of(spec: bytes) -> int:
    """The spec as a file in memory, because a message cannot be that long."""
    file = os.memfd_create("tsuzuki-spec")
    try:
        os.pwrite(file, spec, 0)
    except OSError:
        os.close(file)
        raise
    return file
