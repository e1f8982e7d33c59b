"""The program of a child: it executes one function after the other in its main thread, until its worker is gone.

Another thread reads what the worker sends: runs, requests to stop, replies. Whatever goes wrong here ends the process;
the supervisor reports that, and the worker starts another one.
"""

import faulthandler
import fcntl
import json
import os
import sys
import threading
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NoReturn

from tsuzuki.engine.executors.command.supervisor.processes import (
    INHERITED_DESCRIPTOR_MIN,
    become_subreaper,
    end_with_parent,
    has_children,
)
from tsuzuki.engine.executors.isolated.child.run_io import ChildRunIO
from tsuzuki.engine.executors.isolated.child.streams import Streams
from tsuzuki.engine.executors.isolated.frames import MESSAGE, FrameWriter
from tsuzuki.engine.executors.isolated.messages import (
    Message,
    encoded,
    outcome_message,
    requests,
    task_of,
)
from tsuzuki.engine.executors.python.call import FunctionCall
from tsuzuki.engine.executors.python.functions import Functions
from tsuzuki.engine.executors.python.stacks import stack_of
from tsuzuki.engine.outcome import Failed, Outcome
from tsuzuki.engine.run_context import StopSignal
from tsuzuki.engine.task import Task
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.isolation import enter_child
from tsuzuki.store.sql.forks import on_fork

_READING, _DUMPING = "tsuzuki-child-requests", "tsuzuki-child-stack"
"""Names of threads."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class _Call:
    """One run, from when it was read until it has ended."""

    def __init__(self, task: Task, *, run_io: ChildRunIO, functions: Functions) -> None:
        self.task = task
        self.run_io = run_io
        self.stop_signal = StopSignal()
        on_fork(self.stop_signal)
        self._call = FunctionCall(
            task,
            run_io=run_io,
            functions=functions,
            clock=SystemClock(),
            stop_signal=self.stop_signal,
        )

    def stop(self) -> None:
        self.stop_signal.set()
        self._call.cancel_own_loop()

    def tell_stack(self) -> None:
        ours = (_READING, _DUMPING, threading.main_thread().name)
        others = [one for one in threading.enumerate() if one.name not in ours]
        main = threading.main_thread().ident
        self.run_io.send({"stack": stack_of(main, self._call.running_loop, others=others)})

    def outcome(self) -> Outcome:
        function = self._call.find()
        if isinstance(function, Failed):
            return function
        if function.is_async:
            return self._call.outcome_on_own_loop(function)
        return self._call.outcome(function)


class Child:
    """`pipe` leads to the worker, `requests_pipe` comes from it."""

    def __init__(self, *, pipe: int, requests_pipe: int, mark: bytes, base_folder: Path) -> None:
        writer = FrameWriter(pipe, mark)
        self._requests_pipe = requests_pipe
        self._writer = writer
        self._streams = Streams(writer, pipe)
        self._functions = Functions({}, base_folder=base_folder)
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        self._call: _Call | None = None
        self._pid = os.getpid()
        self._folder = str(Path.cwd())

    def run(self) -> NoReturn:
        threading.Thread(target=self._read, name=_READING, daemon=True).start()
        while True:
            self._execute(self._calls.get())

    def _execute(self, call: _Call) -> None:
        self._send({"accepted": call.task.run.id})
        outcome = call.outcome()
        if os.getpid() != self._pid:
            os._exit(0)  # the function has forked, and returned in the fork too
        call.stop_signal.fence()
        self._streams.flush()
        is_clean = all([call.run_io.close(), self._restore(), not has_children()])
        self._send(
            {
                "ended": outcome_message(outcome),
                "is_clean": is_clean,
                "resident": _resident_bytes(),
            }
        )

    def _send(self, message: Message) -> None:
        self._writer.write(MESSAGE, encoded(message))

    def _restore(self) -> bool:
        """Undo what a function may have changed for the next one; whether that was possible."""
        try:
            self._streams.restore()
            os.chdir(self._folder)
        except OSError:
            return False
        return True

    def _read(self) -> None:
        """Until the worker has closed the pipe, or is gone."""
        try:
            with os.fdopen(self._requests_pipe, "rb") as pipe:
                for request in requests(pipe):
                    self._take(request)
        finally:
            os._exit(0)

    def _take(self, request: dict[str, Any]) -> None:
        if "run" in request:
            task = task_of(request["run"])
            run_io = ChildRunIO(self._writer)
            self._call = _Call(task, run_io=run_io, functions=self._functions)
            self._calls.put(self._call)
        elif self._call is None:
            return
        elif "reply" in request:
            self._call.run_io.replies.put(request["reply"])
        elif self._call.task.run.id == request.get("stop"):
            self._call.stop()
        elif self._call.task.run.id == request.get("stack"):
            # Not in this thread: it must go on reading while the worker has no space for more.
            threading.Thread(target=self._call.tell_stack, name=_DUMPING, daemon=True).start()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * _PAGE_BYTES


def _private(descriptor: int) -> int:
    """A copy that no program which the function starts inherits, and no function takes for a standard stream."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, INHERITED_DESCRIPTOR_MIN)


def main() -> NoReturn:
    """`sys.argv[1]` is what the worker wants it to know, as JSON."""
    try:
        end_with_parent()
        become_subreaper()
        settings = json.loads(sys.argv[1])
        del sys.argv[1:]
        requests_pipe, pipe = _private(0), _private(1)
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123 -- a descriptor is all that is needed
            os.dup2(nothing.fileno(), 0)
        faulthandler.enable(file=2)
        enter_child()
        child = Child(
            pipe=pipe,
            requests_pipe=requests_pipe,
            mark=bytes.fromhex(settings["mark"]),
            base_folder=Path(settings["base_folder"]),
        )
        child.run()
    except BaseException:  # noqa: BLE001 -- and not as a function's own exit
        traceback.print_exc()
    finally:
        os._exit(1)
