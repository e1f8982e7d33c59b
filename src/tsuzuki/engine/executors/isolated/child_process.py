"""The worker's side of one child: its pipes, its supervisor, and what it is executing."""

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any, Protocol

from tsuzuki.engine.executors.command.supervisor import KILL, MEMORY
from tsuzuki.engine.executors.command.supervisor_client import SupervisorConnection
from tsuzuki.engine.executors.isolated.frames import MESSAGE, Frame, FrameReader
from tsuzuki.engine.executors.isolated.messages import Message, request

READ_BYTES_MAX = 64 * 1024
READS_MAX = 64
SPACE_POLL_SECONDS = 0.02
"""How often to look whether there is space for more lines."""


class RunInChild(Protocol):
    """The run that a child executes."""

    @property
    def is_stopped(self) -> bool:
        """Whether it was asked to stop."""

    def may_read(self) -> bool:
        """Whether there is space for more output."""

    def on_output(self, frame: Frame) -> None: ...

    def on_message(self, message: dict[str, Any]) -> None: ...

    def on_end(self, facts: dict[str, Any]) -> None:
        """The child has ended, and nothing that it started is left; `facts` are its supervisor's, or empty if that
        was killed."""


class ChildProcess:
    """Used on the event loop alone. `on_end` is called once, before the run is told."""

    def __init__(
        self,
        *,
        supervisor: SupervisorConnection,
        output: int,
        requests: int,
        mark: bytes,
        on_end: Callable[["ChildProcess", bool], None],
    ) -> None:
        self.supervisor = supervisor
        self.runs = 0
        self.run: RunInChild | None = None
        self._output = output
        self._requests = requests
        self._unsent = b""
        self._frames = FrameReader(mark)
        self._on_end = on_end
        self._memory_max = 0
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False
        self._facts: dict[str, Any] | None = None

    def attach(self) -> None:
        self.supervisor.on_readable = self._on_report
        self.supervisor.watch()
        self._watch_output()

    def start(self, run: RunInChild, message: Message, *, memory_max: int) -> None:
        """Have it execute a run."""
        self.run = run
        self.runs += 1
        if memory_max != self._memory_max:
            self._memory_max = memory_max
            self.supervisor.send(MEMORY + str(memory_max).encode())
        self.send({"run": message})

    def send(self, message: Message) -> None:
        """Send a request; what the pipe cannot take now is sent when it can."""
        is_waiting = bool(self._unsent)
        self._unsent += request(message)
        if not is_waiting and not self._has_ended:
            self._send_rest()

    def kill(self) -> None:
        """End it and all that it has started."""
        self.supervisor.send(KILL)

    def close(self) -> None:
        """End it without waiting for its report; it must be idle."""
        self.supervisor.unwatch()
        self.supervisor.close()
        self._close()

    # --- its output -----------------------------------------------------------------------------

    def _watch_output(self) -> None:
        self._timer = None
        if self._has_ended or self._facts is not None:
            return
        if self._may_read():
            asyncio.get_running_loop().add_reader(self._output, self._read)
        else:
            self._timer = asyncio.get_running_loop().call_later(
                SPACE_POLL_SECONDS, self._watch_output
            )

    def _may_read(self) -> bool:
        return self.run is None or self.run.may_read()

    def _read(self) -> None:
        if self._facts is not None:
            return  # `_drain` reads
        if not self._may_read():
            self._unwatch_output()
            self._watch_output()
        elif self._read_chunk() is None:
            self._unwatch_output()  # it has closed all its outputs, or is about to end: its supervisor will tell

    def _unwatch_output(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._output)

    def _read_chunk(self) -> bool | None:
        """Read a part; false if there is no more now, None if there will be no more."""
        try:
            chunk = os.read(self._output, READ_BYTES_MAX)
        except BlockingIOError:
            return False
        for frame in self._frames.feed(chunk):
            self._take(frame)
        return True if chunk else None

    def _take(self, frame: Frame) -> None:
        if self.run is None:
            return  # of a thread that a function has left behind
        if frame.kind == MESSAGE:
            self.run.on_message(json.loads(frame.payload))
        else:
            self.run.on_output(frame)

    # --- its end --------------------------------------------------------------------------------

    def _on_report(self) -> None:
        report = self.supervisor.receive()
        if report is not None and self._facts is None:
            self._facts = json.loads(report) if report else {}
            self._drain()

    def _drain(self) -> None:
        """It has ended: read what is left. Output that has no space is waited for, unless its run was stopped."""
        self._timer = None
        for _ in range(READS_MAX):
            if not self._may_read() and self.run is not None and not self.run.is_stopped:
                self._unwatch_output()
                self._timer = asyncio.get_running_loop().call_later(SPACE_POLL_SECONDS, self._drain)
                return
            if not self._read_chunk():
                break
        facts, run = self._facts or {}, self.run
        self._close()
        self.run = None
        self._on_end(self, bool(facts.get("is_clean")))
        if run is not None:
            run.on_end(facts)

    def _close(self) -> None:
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._output)
        loop.remove_writer(self._requests)
        os.close(self._output)
        os.close(self._requests)

    # --- requests -------------------------------------------------------------------------------

    def _send_rest(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._unsent = self._unsent[os.write(self._requests, self._unsent) :]
        except BlockingIOError:
            pass
        except OSError:  # it is about to end
            self._unsent = b""
        if self._unsent:
            loop.add_writer(self._requests, self._send_rest)
        else:
            loop.remove_writer(self._requests)
