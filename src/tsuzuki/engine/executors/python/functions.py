"""Finds functions by name, and fills their parameters.

    def f(): ...
    def f(run): ...                    the context; arguments are `run.arguments`
    def f(x, y=1): ...                 arguments by name
    def f(run, *, x, y=1): ...         both

A parameter that is named `run` or annotated `RunContext` gets the context. Every other parameter is filled
from the run's arguments, and every argument needs its parameter, except for `def f(run)`.

A job of the library stands for its function and has a `Conversion`: runs have JSON, the function Python values.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.import_string import is_importable

MISSING_SECONDS = 30.0
"""How long a worker takes no runs of a function that it could not load. Then it tries again: what its module needs
may be there now."""

_FILLED_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


CONVERSION = "__tsuzuki_conversion__"
"""The attribute of an object that stands for a function: its `Conversion`."""


class Conversion(Protocol):
    """Between the JSON of runs and the Python values that a function takes and returns."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""

    def load_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the function is called with. Raises `UsageError` if they are not of the declared types."""

    def dump_result(self, value: Any) -> Any:
        """What is stored. Raises `UsageError` if it is not of the declared type."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function that can be a handler, and its parameters."""

    name: str
    call: Callable[..., Any]
    is_async: bool
    contexts: frozenset[str]
    required: frozenset[str]
    optional: frozenset[str]
    conversion: Conversion | None = None

    def keywords(
        self, arguments: Mapping[str, Any], context: Callable[[], RunContext]
    ) -> dict[str, Any]:
        """The keyword arguments to call it with; the context is made only if it takes one. Raises
        `UsageError` if the arguments do not match its parameters."""
        injected: dict[str, Any] = dict.fromkeys(self.contexts, context()) if self.contexts else {}
        if injected and not self.required and not self.optional:
            return injected
        if arguments.keys() >= self.required and arguments.keys() <= self.required | self.optional:
            if self.conversion is not None:
                arguments = self.conversion.load_arguments(arguments)
            return {**arguments, **injected}
        raise UsageError(self._mismatch(arguments))

    def result(self, value: Any) -> Any:
        """What the function returned, as it is stored. Raises `UsageError`."""
        return value if self.conversion is None else self.conversion.dump_result(value)

    def _mismatch(self, arguments: Mapping[str, Any]) -> str:
        known = self.required | self.optional
        missing, unexpected = self.required - arguments.keys(), arguments.keys() - known
        problems = [
            *([f"requires {_listed(missing)}"] if missing else []),
            *([f"does not accept {_listed(unexpected)}"] if unexpected else []),
        ]
        return (
            f"{self.name} {' and '.join(problems)}; its arguments are: {_listed(known) or 'none'}"
        )


class Functions:
    """Functions by name: registered ones, and those that can be imported as `package.module:function`.

    `base_folder` is the last entry of the import path: a file there cannot shadow a module that the engine
    needs.
    """

    def __init__(
        self,
        registered: Mapping[str, Callable[..., Any]],
        *,
        base_folder: Path,
        clock: Clock | None = None,
    ) -> None:
        self._registered = registered
        self._clock = clock or SystemClock()
        self._found: dict[str, Function] = {}
        self._missing: dict[str, float] = {}
        """Functions that could not be loaded, and until when they are not tried again."""
        self._caches_valid_until = 0.0
        """Of the import system, which remembers folders that were not there."""
        folder = str(base_folder.absolute())
        if folder not in sys.path:
            sys.path.append(folder)

    def known(self, name: str) -> Function | None:
        """The function, if it has been found before; never imports."""
        found = self._found.get(name)
        # A registered function may have been replaced since, by another one of the same name.
        if found is None or _function_of(self._registered.get(name, found.call)) is not found.call:
            return None
        return found

    def find(self, name: str) -> Function:
        """The function; may import its module, which can take any time. Raises `NotFound`."""
        found = self.known(name)
        if found is None:
            call = self._registered.get(name)
            try:
                found = _inspected(name, _imported(name) if call is None else call)
            except NotFound:
                self.note_missing(name)
                raise
            self._found[name] = found
        return found

    def note_missing(self, name: str) -> None:
        """It could not be loaded, here or in an isolated process: take no runs of it for a while."""
        self._missing[name] = self._clock.monotonic() + MISSING_SECONDS

    def missing(self) -> frozenset[str]:
        """The functions that could not be loaded lately."""
        now = self._clock.monotonic()
        return frozenset(name for name, until in [*self._missing.items()] if now < until)

    def _registered_modules(self) -> set[str]:
        return {name.partition(":")[0] for name in [*self._registered] if ":" in name}

    def importable(self, packages: Iterable[str]) -> frozenset[str]:
        """Those of the top-level packages that could be imported here; none is. And those of registered functions."""
        registered = {name.partition(".")[0] for name in self._registered_modules()}
        asked = {*packages} - registered - {MAIN_MODULE}
        found = {package for package in asked if is_importable(package)}
        if asked - found and self._must_look_again():
            found = {package for package in asked if is_importable(package)}
        return frozenset((registered | found) - {MAIN_MODULE})

    def _must_look_again(self) -> bool:
        """Whether the caches of the import system were old; they are empty then. Seldom: to fill them takes a while."""
        now = self._clock.monotonic()
        if now < self._caches_valid_until:
            return False
        self._caches_valid_until = now + MISSING_SECONDS
        importlib.invalidate_caches()
        return True


def _imported(name: str) -> Any:
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise NotFound(f"{name!r} is not a function path; write package.module:function")
    try:
        module = importlib.import_module(module_name)
    except BaseException as problem:  # a module may raise anything, and even try to exit
        message = f"cannot import {module_name!r}: {type(problem).__name__}: {problem}"
        raise NotFound(message) from problem
    try:
        return attrgetter(path)(module)
    except AttributeError:
        raise NotFound(f"there is no {path!r} in module {module_name!r}") from None


def _function_of(call: Any) -> Any:
    conversion: Conversion | None = getattr(call, CONVERSION, None)
    return call if conversion is None else conversion.function


def _inspected(name: str, found: Any) -> Function:
    call = _function_of(found)
    if not callable(call):
        raise NotFound(f"{name!r} is not a function")
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        raise NotFound(
            f"{name!r} cannot be a handler because its signature is unreadable"
        ) from None
    for parameter in parameters:
        if parameter.kind not in _FILLED_BY_NAME:
            raise NotFound(
                f"{name!r} cannot be a handler because its parameter `{parameter}` cannot be "
                "passed by name"
            )
    contexts = frozenset(p.name for p in parameters if _wants_context(p))
    arguments = [p for p in parameters if p.name not in contexts]
    return Function(
        name=name,
        call=call,
        is_async=inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(call.__call__),
        contexts=contexts,
        required=frozenset(p.name for p in arguments if p.default is p.empty),
        optional=frozenset(p.name for p in arguments if p.default is not p.empty),
        conversion=getattr(found, CONVERSION, None),
    )


def _wants_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):  # not evaluated: `from __future__ import annotations`
        annotation = RunContext if annotation.rpartition(".")[2] == RunContext.__name__ else None
    return parameter.name == "run" or annotation is RunContext


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
