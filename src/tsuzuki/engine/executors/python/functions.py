"""From the name of a function to a call: finding it, and filling its parameters.

    def f(): ...
    def f(run): ...                    the context; arguments are `run.arguments`
    def f(x, y=1): ...                 arguments by name
    def f(run, *, x, y=1): ...         both

A parameter that is named `run` or annotated `RunContext` is given the context. Every other parameter
is filled from the run's arguments, and every argument needs its parameter, but for `def f(run)`.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import NotFound, UsageError

_FILLED_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function that can be a handler, and what it wants to be called with."""

    name: str
    call: Callable[..., Any]
    is_async: bool
    contexts: frozenset[str]
    required: frozenset[str]
    optional: frozenset[str]

    def keywords(
        self, arguments: Mapping[str, Any], context: Callable[[], RunContext]
    ) -> dict[str, Any]:
        """What to call it with: the context is made if it wants it. Raises `UsageError` if the arguments
        do not fit its parameters."""
        given: dict[str, Any] = dict.fromkeys(self.contexts, context()) if self.contexts else {}
        if given and not self.required and not self.optional:
            return given
        if arguments.keys() >= self.required and arguments.keys() <= self.required | self.optional:
            return {**arguments, **given}
        raise UsageError(self._misfit(arguments))

    def _misfit(self, arguments: Mapping[str, Any]) -> str:
        known = self.required | self.optional
        missing, unexpected = self.required - arguments.keys(), arguments.keys() - known
        complaints = [
            *([f"is missing {_listed(missing)}"] if missing else []),
            *([f"does not take {_listed(unexpected)}"] if unexpected else []),
        ]
        return (
            f"{self.name} {' and '.join(complaints)}; it takes {_listed(known) or 'no arguments'}"
        )


class Functions:
    """Functions by name: those handed in, and whatever `package.module:function` can be imported.

    Modules are looked for in `base_folder` too, after all others: a file there cannot take the place
    of a module that the engine needs.
    """

    def __init__(self, handed_in: Mapping[str, Callable[..., Any]], *, base_folder: Path) -> None:
        self._handed_in = handed_in
        self._found: dict[str, Function] = {}
        folder = str(base_folder.absolute())
        if folder not in sys.path:
            sys.path.append(folder)

    def known(self, name: str) -> Function | None:
        """The function, if it has been found before; never imports."""
        found = self._found.get(name)
        # One that was handed in may have been replaced since, by another of its name.
        if found is None or self._handed_in.get(name, found.call) is not found.call:
            return None
        return found

    def find(self, name: str) -> Function:
        """The function; may import, which can take any time. Raises `NotFound`."""
        found = self.known(name)
        if found is None:
            call = self._handed_in.get(name)
            found = _inspected(name, _imported(name) if call is None else call)
            self._found[name] = found
        return found


def _imported(name: str) -> Any:
    module_name, _, path = name.partition(":")
    if not module_name or not path:
        raise NotFound(f"{name!r} does not name a function: write package.module:function")
    try:
        module = importlib.import_module(module_name)
    except BaseException as problem:  # a module may raise anything, and even try to exit
        message = f"{module_name!r} could not be imported: {type(problem).__name__}: {problem}"
        raise NotFound(message) from problem
    try:
        return attrgetter(path)(module)
    except AttributeError:
        raise NotFound(f"there is no {path!r} in the module {module_name!r}") from None


def _inspected(name: str, call: Any) -> Function:
    if not callable(call):
        raise NotFound(f"{name!r} is not a function")
    try:
        parameters = inspect.signature(call).parameters.values()
    except ValueError:
        raise NotFound(f"{name!r} does not tell its parameters, so it cannot be called") from None
    for parameter in parameters:
        if parameter.kind not in _FILLED_BY_NAME:
            raise NotFound(
                f"{name!r} cannot be a handler: its parameter `{parameter}` cannot be filled by name"
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
    )


def _wants_context(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(annotation, str):  # not evaluated: `from __future__ import annotations`
        annotation = RunContext if annotation.rpartition(".")[2] == RunContext.__name__ else None
    return parameter.name == "run" or annotation is RunContext


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
