"""Tsuzuki inside one's own program: define jobs beside their code, ask for runs, wait for results.

    app = Tsuzuki("sqlite:///work.db")

    @app.job(schedule="every 10m", max_retries=3)
    def tidy(run: RunContext, folder: str = ".") -> dict:
        ...

    with app.running():
        print(app.submit("tidy", {"folder": "/tmp"}).result(timeout_seconds=60))

The same rules hold as everywhere else: what `submit` confirmed survives any crash, and a job defined here
is an ordinary job that the command line and the other processes see.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import RunFailed, UsageError
from tsuzuki.model.import_string import is_importable
from tsuzuki.model.isolation import Isolation, is_isolated_child
from tsuzuki.model.job import JobSpec
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import DEFAULT_CAPACITY
from tsuzuki.services.runs import Request, Runs, Submission
from tsuzuki.wiring.application import Application
from tsuzuki.wiring.library import Connection, LibraryResources, opened_for_library

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class RunHandle:
    """A run that was asked for. `is_new` is False if it had been asked for with the same key before."""

    id: int
    is_new: bool
    _runs: Runs

    def wait(self, *, timeout_seconds: float | None = None) -> Run:
        """The run, once it has ended, however it did. Raises `WaitTimedOut`."""
        return self._runs.wait(self.id, timeout_seconds=timeout_seconds)

    def result(self, *, timeout_seconds: float | None = None) -> Any:
        """What the handler returned. Raises `RunFailed` if the run ended in any other way."""
        run = self.wait(timeout_seconds=timeout_seconds)
        if run.state is not RunState.SUCCEEDED:
            raise RunFailed(
                f"run {run.id} of {run.job_name} ended as {run.state}: {run.error or run.reason}",
                hint=f"See: tsuzuki run show {run.id}",
            )
        return run.result

    def cancel(self) -> None:
        self._runs.cancel(self.id)


def _path_of_program() -> str:
    """The script that runs, as it was named: links are kept, so that a release behind a link like `current` is still
    the same program. A session without a script, such as a notebook, is known by its working directory."""
    file = getattr(sys.modules.get(MAIN_MODULE), "__file__", None)
    return os.path.abspath(file or Path.cwd())  # noqa: PTH100 -- resolve() would follow links


def _require_isolable(function: Callable[..., Any]) -> None:
    """Raise `UsageError` for a function that no other process can import."""
    name = f"{function.__module__}:{function.__qualname__}"
    if function.__module__ == MAIN_MODULE:
        cause = "is defined in the main script, which no other process can import"
    elif function.__name__ == "<lambda>":
        cause = "is a lambda, which has no name to import it by"
    elif not is_importable(function.__module__):
        cause = "is in a module that no other process can import"
    else:
        return
    raise UsageError(
        f"{name} cannot be executed in a process of its own: it {cause}",
        hint="Move it to the top of an importable module, or use isolation: thread.",
        code="not_isolable",
    )


class Tsuzuki:
    """One installation, used from inside a program. Thread-safe; `close` it, or use it in a `with`."""

    def __init__(
        self,
        database_url: str | None = None,
        *,
        config_file: Path | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        clock: Clock | None = None,
        actor: str = "library",
        program: str | None = None,
    ) -> None:
        """`program` tells programs apart whose functions are in `__main__`: only the program that defined such a job
        executes it. By default the path of the script, or of the working directory where there is none."""
        self._program = program or _path_of_program()
        self._stack = ExitStack()
        self._open = partial(
            opened_for_library,
            config_file=config_file,
            database_url=database_url,
            environ=os.environ if environ is None else environ,
            cwd=cwd,
            clock=clock,
            actor=actor,
        )
        self._opening = threading.Lock()
        self._opened: LibraryResources | None = None
        self._is_isolated = is_isolated_child()
        if not self._is_isolated:
            self._resources()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._undefined: dict[str, dict[str, Any]] = {}

    @property
    def _application(self) -> Application:
        return self._resources().application

    def _resources(self) -> LibraryResources:
        """Opened by the constructor; in a process that executes an isolated function, which has imported the module of
        this program, by the first call that needs it."""
        with self._opening:
            if self._opened is None:
                self._opened = self._stack.enter_context(self._open())
            return self._opened

    # --- defining -------------------------------------------------------------------------------

    def job(self, name: str | None = None, **keys: Any) -> Callable[[Function], Function]:
        """Define a job by decorating its function. `keys` are those of a job in `tsuzuki.yaml`:
        schedule, on_event, arguments, max_retries, timeout, concurrency_policy, tags, isolation, …"""

        def define(function: Function) -> Function:
            if "<locals>" in function.__qualname__:
                raise UsageError(
                    f"{function.__qualname__} is a function inside a function",
                    hint="Define it at the top of a module: other processes import it by name.",
                )
            if keys.get("isolation") == Isolation.PROCESS:
                _require_isolable(function)
            path = f"{function.__module__}:{function.__qualname__}"
            job_name = name or function.__name__
            if path in self._functions and self._functions[path] is not function:
                raise UsageError(
                    f"two functions are both {path}", hint="Give one of them another name."
                )
            self._functions[path] = function
            self.define(job_name, type="python", python=path, **keys)
            return function

        return define

    def define(self, name: str, **keys: Any) -> None:
        """Define a job that is not a decorated function, for example `command=["make", "all"]`. What is wrong
        with it is raised at once; it is stored with the first call that needs it."""
        if self._is_isolated:
            return  # the program that started this process has defined it
        if str(keys.get("python", "")).startswith(f"{MAIN_MODULE}:"):
            keys = {"program": self._program, **keys}
        self._application.jobs.check(name, keys)
        self._undefined[name] = keys

    # --- asking ---------------------------------------------------------------------------------

    def submit(
        self,
        job: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        delay_seconds: float = 0.0,
        priority: int | None = None,
        concurrency_key: str | None = None,
        connection: Connection | None = None,
    ) -> RunHandle:
        """Ask for one run. With an `idempotency_key` repeated calls start only one run, and the handler gets that
        key; a key that was used for another job or with other arguments is refused (`Conflict`). With
        `connection`, an SQLAlchemy connection to the same database, the run is asked for in that transaction: it
        exists if and only if that commits."""
        self._define_all(connection)
        request = Request(
            job=job,
            arguments=arguments or {},
            idempotency_key=idempotency_key,
            delay_seconds=delay_seconds,
            priority=priority,
            concurrency_key=concurrency_key,
        )
        return self._handle(self._application.runs.submit(request, connection=connection))

    def submit_many(
        self, requests: Sequence[Request], *, connection: Connection | None = None
    ) -> list[RunHandle]:
        """Ask for many runs in one transaction."""
        self._define_all(connection)
        submitted = self._application.runs.submit_many(requests, connection=connection)
        return [self._handle(submission) for submission in submitted]

    def emit(
        self,
        event_type: str,
        payload: Any = None,
        *,
        dedupe_key: str | None = None,
        connection: Connection | None = None,
    ) -> int:
        """Say that something happened. Returns the event's id; that of the earlier event if the same was said with
        this key before. A key is used once for each type: with another payload it is refused (`Conflict`)."""
        self._define_all(connection)
        event, _ = self._application.events.emit(
            event_type, payload, dedupe_key=dedupe_key, connection=connection
        )
        return event.id

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction on Tsuzuki's own database, to write one's rows and ask for runs as one."""
        self._define_all()
        with self._resources().transaction() as connection:
            yield connection

    # --- running --------------------------------------------------------------------------------

    def start(
        self,
        *,
        lead: bool = True,
        work: bool = True,
        capacity: int = DEFAULT_CAPACITY,
        tags: Sequence[str] = (),
    ) -> None:
        """Lead and work inside this process, in threads of its own. A stored job whose function is gone from a module
        of this program, because it was renamed for example, is disabled."""
        if self._is_isolated:
            raise UsageError(
                "an engine cannot be started in a process that executes an isolated function",
                hint='Start it below `if __name__ == "__main__":`, so that importing the module starts nothing.',
                code="isolated_engine",
            )
        self._define_all()
        self._application.jobs.disable_lost(self._is_lost)
        self._application.local_engine.start(
            lead=lead,
            work=work,
            capacity=capacity,
            tags=tags,
            functions=self._functions,
            program=self._program,
        )

    def stop(self, *, at_once: bool = False) -> None:
        """Stop in good order: start nothing new, wait for what runs, hand back the rest."""
        if not self._is_isolated:
            self._application.local_engine.stop(at_once=at_once)

    @contextmanager
    def running(self, **options: Any) -> Iterator[Self]:
        """Run while the block runs. Options are those of `start`."""
        self.start(**options)
        try:
            yield self
        finally:
            self.stop()

    def close(self) -> None:
        self.stop()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _define_all(self, connection: Connection | None = None) -> None:
        """Store what was defined since. What became part of a caller's transaction is stored again the next time,
        because only the caller knows whether that was committed."""
        undefined = dict(self._undefined)
        if not undefined:
            return
        if connection is None:
            self._application.jobs.define_many(undefined)
        elif not self._application.jobs.define_for(connection, undefined):
            return
        for name, keys in undefined.items():
            if self._undefined.get(name) is keys:
                del self._undefined[name]

    def _is_lost(self, job: JobSpec) -> bool:
        """Whether a job's function is in a module that defines jobs here, and is not there any more."""
        module, _, names = (job.needs.function or "").partition(":")
        defining = {path.partition(":")[0] for path in self._functions}
        # A module that was loaded from a path may not be listed: then only what was decorated in it is known.
        if job.needs.function in self._functions or module not in defining & sys.modules.keys():
            return False
        if module == MAIN_MODULE and job.needs.program != self._program:
            return False
        found: Any = sys.modules[module]
        for name in names.split("."):
            found = getattr(found, name, None)
        return found is None

    def _handle(self, submission: Submission) -> RunHandle:
        return RunHandle(
            id=submission.run_id, is_new=submission.is_new, _runs=self._application.runs
        )
