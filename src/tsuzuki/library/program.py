"""The `Tsuzuki` of a program: defines jobs, submits runs, and executes them in threads of the program."""

import os
import threading
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from tsuzuki.library.handle import Handle
from tsuzuki.library.job import Call, ContextJob, FunctionJob, Job, JobDecorator
from tsuzuki.library.modules import is_lost, path_of_program, require_isolable
from tsuzuki.library.options import JobOptions, body_of
from tsuzuki.library.pool import AsyncPool
from tsuzuki.library.signature import JobSignature
from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import UsageError
from tsuzuki.model.isolation import Isolation, is_isolated_child
from tsuzuki.model.run import Run
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import RunState
from tsuzuki.model.worker import DEFAULT_CAPACITY
from tsuzuki.services.runs import Request, Submission
from tsuzuki.wiring.application import Application
from tsuzuki.wiring.library import (
    CallerConnection,
    Connection,
    LibraryResources,
    check_definition,
    opened_for_library,
)

if TYPE_CHECKING:
    from tsuzuki.engine.run_context import RunContext

P = ParamSpec("P")
R = TypeVar("R")


class Tsuzuki:
    """One installation, used from inside a program. Nothing is opened before it is needed. Thread-safe; `close` it, or
    use it in a `with`."""

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
        """Without a `database_url` that of the environment or of `tsuzuki.yaml`. `program` tells programs apart whose
        functions are in `__main__`: only the program that defined such a job executes it. By default the path of the
        script, or of the working directory where there is none."""
        self._program = program or path_of_program()
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
        self._pool = AsyncPool()
        self._is_isolated = is_isolated_child()
        self._functions: dict[str, Callable[..., Any]] = {}
        self._signatures: dict[str, JobSignature] = {}
        self._bodies: dict[str, dict[str, Any]] = {}
        self._undefined: dict[str, dict[str, Any]] = {}

    @property
    def _application(self) -> Application:
        return self._resources().application

    def _resources(self) -> LibraryResources:
        """Opened by the first call that needs it."""
        with self._opening:
            if self._opened is None:
                self._opened = self._stack.enter_context(self._open())
            return self._opened

    # --- defining -------------------------------------------------------------------------------

    @overload  # a function without annotations fits several: it gets the first
    def job(  # type: ignore[overload-overlap]
        self, function: "Callable[Concatenate[RunContext, P], Coroutine[Any, Any, R]]", /
    ) -> "ContextJob[P, R, Coroutine[Any, Any, R]]": ...
    @overload
    def job(
        self, function: "Callable[Concatenate[RunContext, P], R]", /
    ) -> ContextJob[P, R, R]: ...
    @overload
    def job(
        self, function: "Callable[P, Coroutine[Any, Any, R]]", /
    ) -> "FunctionJob[P, R, Coroutine[Any, Any, R]]": ...
    @overload
    def job(self, function: Callable[P, R], /) -> FunctionJob[P, R, R]: ...
    @overload
    def job(self, name: str | None = None, /, **options: Unpack[JobOptions]) -> JobDecorator: ...
    def job(self, name: Any = None, /, **options: Any) -> Any:
        """Make a function a job: `@app.job`, or `@app.job(schedule="every 10m", max_retries=3)`. Its name is that of
        the function, unless one is given first. The options are the keys of a job in `tsuzuki.yaml`."""
        if callable(name):
            return self._job(name, None, {})
        return partial(self._job, name=name, options=options)

    def _job(
        self, function: Callable[..., Any], name: str | None, options: Mapping[str, object]
    ) -> Job[Any, Any]:
        function = function.__wrapped__ if isinstance(function, Job) else function
        if "<locals>" in function.__qualname__:
            raise UsageError(
                f"{function.__qualname__} is defined inside a function",
                hint="Define it at the top level of a module, so that other processes can import it by "
                "name.",
            )
        if options.get("isolation") == Isolation.PROCESS:
            require_isolable(function)
        path = f"{function.__module__}:{function.__qualname__}"
        job_name = name or function.__name__
        other = self._signatures.get(path)
        if other is not None and other.function is not function:
            raise UsageError(f"two functions have the path {path}", hint="Rename one of them.")
        signature = JobSignature(function)
        body = body_of(options)
        if "schedule" not in body:  # only ticks must not overlap by default
            body.setdefault("concurrency_policy", "allow")
        given: Any = body.get("arguments", {})
        if given:
            body["arguments"] = signature.dump_arguments(given)
        self.define(job_name, type="python", python=path, **body)
        kind = ContextJob if signature.takes_context else FunctionJob
        job: Job[Any, Any] = kind(job_name, signature, self, given)
        self._functions[path] = cast("Callable[..., Any]", job)
        self._signatures[path] = signature
        return job

    def define(self, name: str, **keys: object) -> None:
        """Define a job that is not a decorated function, for example `command=["make", "all"]`. What is wrong
        with it is raised at once; it is stored with the first call that needs it."""
        if self._is_isolated:
            return  # the program that started this process has defined it
        if str(keys.get("python", "")).startswith(f"{MAIN_MODULE}:"):
            keys = {"program": self._program, **keys}
        check_definition(name, keys)
        self._bodies[name] = self._undefined[name] = keys

    # --- submitting -----------------------------------------------------------------------------

    def submit(
        self,
        job: str,
        arguments: Mapping[str, object] | None = None,
        *,
        idempotency_key: str | None = None,
        delay_seconds: float = 0.0,
        priority: int | None = None,
        concurrency_key: str | None = None,
        connection: CallerConnection | None = None,
    ) -> Handle[object]:
        """Submit one run of a job by its name, such as one of another program; the job of a function has a `submit` of
        its own, which type checkers understand. With an `idempotency_key` repeated calls start only one run, and the
        handler gets that key; a key that was used for another job or with other arguments is refused (`Conflict`).
        With `connection`, a connection of yours to the same database, the run is stored in its transaction: it exists
        if and only if that commits."""
        request = Request(
            job=job,
            arguments=arguments or {},
            idempotency_key=idempotency_key,
            delay_seconds=delay_seconds,
            priority=priority,
            concurrency_key=concurrency_key,
        )
        return self.submit_many([request], connection=connection)[0]

    @overload
    def submit_many(
        self, requests: Sequence[Request], *, connection: CallerConnection | None = None
    ) -> list[Handle[object]]: ...
    @overload
    def submit_many(
        self, requests: Iterable[Call[R]], *, connection: CallerConnection | None = None
    ) -> list[Handle[R]]: ...
    def submit_many(
        self,
        requests: Iterable[Request] | Iterable[Call[Any]],
        *,
        connection: CallerConnection | None = None,
    ) -> list[Handle[Any]]:
        """Submit many runs in one transaction: all of them, or none. Of one's own jobs by `job.call(…)`, of others by
        `Request`."""
        wanted: list[Request] = []
        loads: list[Callable[[object], Any]] = []
        by_job: dict[str, _Checked] = {}  # ten thousand requests are often of one job
        for one in requests:
            if isinstance(one, Request):
                checked = by_job.get(one.job)
                if checked is None:
                    checked = by_job[one.job] = self._checked(one.job)
                wanted.append(checked.request(one))
                loads.append(checked.load)
            else:
                wanted.append(one.request)
                loads.append(one.load)
        return self._submit(wanted, loads, connection)

    def submit_calls(
        self, calls: Iterable[Call[R]], connection: CallerConnection | None
    ) -> list[Handle[R]]:
        wanted = [*calls]
        return self._submit(
            [call.request for call in wanted], [call.load for call in wanted], connection
        )

    def _submit(
        self,
        requests: Sequence[Request],
        loads: Sequence[Callable[[object], R]],
        connection: CallerConnection | None,
    ) -> list[Handle[R]]:
        with self._defined_in(connection) as own:
            runs = self._application.runs
            if len(requests) == 1:
                submitted = [runs.submit(requests[0], connection=own)]
            else:
                submitted = runs.submit_many(requests, connection=own)
        return self._handles(submitted, loads)

    async def submit_calls_async(
        self, calls: Iterable[Call[R]], connection: CallerConnection | None
    ) -> list[Handle[R]]:
        wanted = [*calls]
        if connection is None:
            return await self._pool.do(self.submit_calls, wanted, None)
        run_sync = getattr(connection, "run_sync", None)
        if run_sync is None:  # a connection belongs to its thread
            return self.submit_calls(wanted, connection)
        await self._pool.do(self._define_all)
        submitted: list[Handle[R]] = await run_sync(partial(self.submit_calls, wanted))
        return submitted

    def run(self, run_id: int) -> Handle[object]:
        """The handle of a run, whichever process submitted it. `job.run(…)` gives a typed one. Raises `NotFound`."""
        name = self._application.runs.get(run_id).run.job_name
        signature = self._signature_of(name)
        return self.handle_of(run_id, signature.load_result if signature else _as_it_is)

    def runs(
        self,
        *,
        job: str | None = None,
        states: Collection[RunState] = (),
        search: str | None = None,
        created_from: datetime | None = None,
        created_until: datetime | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[Run]:
        """Runs of all programs, newest first; the rest after the last one's id with `before_id`."""
        self._define_all()
        wanted = RunFilter(
            job_name=job,
            states=frozenset(states),
            search=search,
            created_from=created_from,
            created_until=created_until,
            before_id=before_id,
            limit=limit,
        )
        return self._application.runs.find(wanted)

    def handle_of(self, run_id: int, load: Callable[[object], R], /) -> Handle[R]:
        run_id = self._application.runs.get(run_id).run.id
        return self._handles([Submission(run_id=run_id, is_new=False)], [load])[0]

    def _checked(self, job_name: str) -> "_Checked":
        """How requests by name are checked. Those of other programs are not."""
        signature = self._signature_of(job_name)
        if signature is None:
            return _Checked(None, (), _as_it_is)
        given = self._bodies[job_name].get("arguments", {})
        return _Checked(signature, given, signature.load_result)

    def _signature_of(self, job_name: str) -> JobSignature | None:
        path = str(self._bodies.get(job_name, {}).get("python"))
        return self._signatures.get(path)

    def _handles(
        self, submitted: Iterable[Submission], loads: Iterable[Callable[[object], R]]
    ) -> list[Handle[R]]:
        def application() -> Application:  # one closure for all
            return self._application

        return [
            Handle(run_id, is_new=is_new, application=application, pool=self._pool, load=load)
            for (run_id, is_new), load in zip(submitted, loads, strict=True)
        ]

    def emit(
        self,
        event_type: str,
        payload: Any = None,
        *,
        dedupe_key: str | None = None,
        connection: CallerConnection | None = None,
    ) -> int:
        """Say that something happened. Returns the event's id; that of the earlier event if the same was said with
        this key before. A key is used once for each type: with another payload it is refused (`Conflict`)."""
        with self._defined_in(connection) as own:
            event, _ = self._application.events.emit(
                event_type, payload, dedupe_key=dedupe_key, connection=own
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
        self._application.jobs.disable_lost(
            partial(is_lost, functions=self._functions, program=self._program)
        )
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
        if self._opened is not None and not self._is_isolated:
            self._opened.application.local_engine.stop(at_once=at_once)

    @contextmanager
    def running(
        self,
        *,
        lead: bool = True,
        work: bool = True,
        capacity: int = DEFAULT_CAPACITY,
        tags: Sequence[str] = (),
    ) -> Iterator[Self]:
        """Lead and work while the block runs, and stop in good order at its end."""
        self.start(lead=lead, work=work, capacity=capacity, tags=tags)
        try:
            yield self
        finally:
            self.stop()

    def run_until_idle(self, *, stop: threading.Event | None = None) -> Counter[RunState]:
        """Run everything that is due in threads of this process, and what that submits, and return how many runs ended
        how. Raises `Conflict` if another process leads."""
        self._define_all()
        return self._application.local_engine.run_until_idle(
            stop=stop or threading.Event(), functions=self._functions, program=self._program
        )

    @contextmanager
    def on_database(self, database_url: str, *, cwd: Path, clock: Clock) -> Iterator[Self]:
        """Use another database while the block runs, without the environment. For tests: see `tsuzuki.testing`."""
        self.close()
        usual = self._open
        self._open = partial(
            usual, config_file=None, database_url=database_url, environ={}, cwd=cwd, clock=clock
        )
        self._undefined = dict(self._bodies)
        try:
            yield self
        finally:
            self.close()
            self._open = usual
            self._undefined = dict(self._bodies)

    def close(self) -> None:
        """Stop, and close all connections. The next call that needs them opens them again."""
        self.stop()
        self._pool.close()
        with self._opening:
            self._opened = None
            self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    @contextmanager
    def _defined_in(self, connection: CallerConnection | None) -> Iterator[Connection | None]:
        """Store what was defined; the connection to use while the block runs."""
        if connection is None:
            self._define_all()
            yield None
            return
        with self._resources().borrowed(connection) as own:
            self._define_all(own)
            yield own

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


class _Checked(NamedTuple):
    """A job of which requests are submitted by name."""

    signature: JobSignature | None
    given: Collection[str]
    load: Callable[[object], Any]

    def request(self, request: Request) -> Request:
        """With the JSON of its arguments. Raises `UsageError` if they do not fit the function."""
        if self.signature is None:
            return request
        arguments = self.signature.bind((), request.arguments, given=self.given)
        if not arguments and not request.arguments:
            return request
        return replace(request, arguments=arguments)


def _as_it_is(value: object) -> object:
    return value
