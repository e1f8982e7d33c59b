"""A job of a program: its function, which can be called as before, and the ways to submit runs of it.

Type checkers see the function's own parameters in `submit` and its own result in the handle.
"""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    cast,
    overload,
)

from tsuzuki.library.handle import Handle
from tsuzuki.library.options import SubmitOptions
from tsuzuki.library.signature import JobSignature
from tsuzuki.services.runs import Request
from tsuzuki.wiring.library import CallerConnection

if TYPE_CHECKING:
    from tsuzuki.engine.run_context import RunContext

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class Call(Generic[R_co]):
    """One run that is not submitted yet: a job with checked arguments. See `submit_many`."""

    request: Request
    load: Callable[[object], R_co]
    signature: JobSignature | None = None
    """None for a job of another program."""


class Submitting(Protocol):
    """The program that a job belongs to."""

    def submit_calls(
        self, calls: Iterable[Call[R]], connection: CallerConnection | None
    ) -> list[Handle[R]]: ...

    async def submit_calls_async(
        self, calls: Iterable[Call[R]], connection: CallerConnection | None
    ) -> list[Handle[R]]: ...

    def handle_of(self, run_id: int, load: Callable[[object], R], /) -> Handle[R]: ...


class Submitter(Generic[P, R]):
    """Submits runs of one job with certain options."""

    def __init__(
        self,
        name: str,
        signature: JobSignature,
        program: Submitting,
        options: SubmitOptions,
        given: Iterable[str],
    ) -> None:
        self.name = name
        self._signature = signature
        self._program = program
        self._options = options
        self._given = frozenset(given)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Check the arguments, and keep them to be submitted with others."""
        options = self._options
        request = Request(
            job=self.name,
            arguments=self._signature.bind(args, kwargs, given=self._given),
            idempotency_key=options.idempotency_key,
            delay_seconds=options.delay_seconds,
            priority=options.priority,
            concurrency_key=options.concurrency_key,
        )
        return Call(request=request, load=self._signature.load_result, signature=self._signature)

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit one run. Raises `UsageError` if the arguments do not fit the function."""
        calls = [self.call(*args, **kwargs)]
        return self._program.submit_calls(calls, self._options.connection)[0]

    async def submit_async(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Submit one run without blocking the event loop."""
        calls = [self.call(*args, **kwargs)]
        return (await self._program.submit_calls_async(calls, self._options.connection))[0]


class Job(Submitter[P, R]):
    """A function that was made a job by `@app.job`. Call it to execute it here and now, `submit` it to have it run."""

    def __init__(
        self,
        name: str,
        signature: JobSignature,
        program: Submitting,
        given: Iterable[str],
    ) -> None:
        update_wrapper(cast("Callable[..., Any]", self), signature.function)
        super().__init__(name, signature, program, SubmitOptions(), given)

    def __repr__(self) -> str:
        return f"<Job {self.name}>"

    @property
    def __tsuzuki_conversion__(self) -> JobSignature:
        """For a worker that executes the job."""
        return self._signature

    def options(
        self,
        *,
        idempotency_key: str | None = None,
        delay_seconds: float = 0.0,
        priority: int | None = None,
        concurrency_key: str | None = None,
        connection: CallerConnection | None = None,
    ) -> Submitter[P, R]:
        """Options of one submit. With an `idempotency_key` repeated calls start only one run; with another job or
        other arguments it is refused (`Conflict`). With a `connection` of your own to the same database the run is
        stored in its transaction: it exists if and only if that commits."""
        options = replace(
            self._options,
            idempotency_key=idempotency_key,
            delay_seconds=delay_seconds,
            priority=priority,
            concurrency_key=concurrency_key,
            connection=connection,
        )
        return Submitter(self.name, self._signature, self._program, options, self._given)

    def submit_many(
        self, calls: Iterable[Call[R]], *, connection: CallerConnection | None = None
    ) -> list[Handle[R]]:
        """Submit many runs in one transaction: all of them, or none."""
        return self._program.submit_calls(calls, connection)

    async def submit_many_async(
        self, calls: Iterable[Call[R]], *, connection: CallerConnection | None = None
    ) -> list[Handle[R]]:
        """Submit many runs in one transaction, without blocking the event loop."""
        return await self._program.submit_calls_async(calls, connection)

    def run(self, run_id: int) -> Handle[R]:
        """The handle of a run of this job, whichever process submitted it. Raises `NotFound`."""
        return self._program.handle_of(run_id, self._signature.load_result)


class FunctionJob(Job[P, R], Generic[P, R, Returned]):
    """The job of a function without a run context."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Returned:
        """Execute the function here and now, as if it were no job."""
        returned: Returned = self._signature.function(*args, **kwargs)
        return returned


class ContextJob(Job[P, R], Generic[P, R, Returned]):
    """The job of a function that takes its run context first."""

    def __call__(self, run: "RunContext", /, *args: P.args, **kwargs: P.kwargs) -> Returned:
        """Execute the function here and now, as if it were no job. In a test the context is one of
        `tsuzuki.testing.context()`."""
        returned: Returned = self._signature.function(run, *args, **kwargs)
        return returned


class JobDecorator(Protocol):
    """`@app.job(…)`: makes a function a job."""

    @overload  # a function without annotations fits several: it gets the first
    def __call__(  # type: ignore[overload-overlap]
        self, function: "Callable[Concatenate[RunContext, P], Coroutine[Any, Any, R]]", /
    ) -> "ContextJob[P, R, Coroutine[Any, Any, R]]": ...
    @overload
    def __call__(
        self, function: "Callable[Concatenate[RunContext, P], R]", /
    ) -> ContextJob[P, R, R]: ...
    @overload
    def __call__(
        self, function: "Callable[P, Coroutine[Any, Any, R]]", /
    ) -> "FunctionJob[P, R, Coroutine[Any, Any, R]]": ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> FunctionJob[P, R, R]: ...
