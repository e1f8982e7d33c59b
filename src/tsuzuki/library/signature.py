"""The parameters and the result of a job's function, between Python values and the JSON of a run.

Values are checked against the annotations three times: when a run is submitted, when it starts, and when its result is
read. Pydantic does the work, so models, dataclasses, TypedDicts, datetimes, Decimals, UUIDs, Paths and enums can be
arguments and results. A parameter or a result without annotation is plain JSON.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from types import SimpleNamespace
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from tsuzuki.model import jsontext
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import did_you_mean

CONTEXT_NAME = "run"
CONTEXT_TYPE = "RunContext"
RESULT = "return"

_FILLED_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class JobSignature:
    """Of one function. Raises `UsageError` if the function cannot be a job's."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = f"{function.__module__}:{function.__qualname__}"
        whole = inspect.signature(function)
        parameters = [*whole.parameters.values()]
        for number, parameter in enumerate(parameters):
            if parameter.kind not in _FILLED_BY_NAME:
                raise UsageError(
                    f"{self.name} cannot be a job: its parameter `{parameter}` cannot be passed by name",
                    hint="Give each argument its own named parameter.",
                    code="parameter_kind",
                )
            if is_context(parameter) and (number > 0 or parameter.kind is not _FILLED_BY_NAME[0]):
                raise UsageError(
                    f"{self.name} cannot be a job: its run context `{parameter.name}` is not the first parameter",
                    hint="Make it the first parameter, or call tsuzuki.current_run() in the function.",
                    code="context_not_first",
                )
        self.takes_context = bool(parameters) and is_context(parameters[0])
        self._parameters = parameters[1:] if self.takes_context else parameters
        self._names = dict.fromkeys(parameter.name for parameter in self._parameters)
        self._required = [p.name for p in self._parameters if p.default is p.empty]
        self._call = whole.replace(parameters=self._parameters)
        self.takes_any_arguments = self.takes_context and not self._parameters
        with suppress(
            NameError
        ):  # an annotation names what the module defines later: read at first use
            _ = self._adapters

    def bind(
        self, values: tuple[object, ...], named: Mapping[str, object], *, given: Iterable[str] = ()
    ) -> dict[str, Any]:
        """The JSON of a call's arguments. `given` are the names of those that the job itself gives. Raises
        `UsageError`."""
        if self.takes_any_arguments and not values:
            return dict(named)
        bound = self._bound(values, named)
        missing = [name for name in self._required if name not in bound and name not in given]
        if missing:
            raise self._invalid([f"`{name}` is missing" for name in missing])
        return self.dump_arguments(bound)

    def _bound(
        self, values: tuple[object, ...], named: Mapping[str, object]
    ) -> Mapping[str, object]:
        """The arguments by name, in the order of the parameters."""
        if not values and named.keys() <= self._names.keys():
            # `inspect` takes ten times as long, and all our parameters can be given by name.
            return {name: named[name] for name in self._names if name in named} if named else {}
        try:
            return self._call.bind_partial(*values, **named).arguments
        except TypeError as problem:
            raise self._mismatch(named, problem) from None

    def dump_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON of arguments by name. Raises `UsageError`."""
        return self._converted(arguments, _dumped)

    def load_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The Python values of arguments that are JSON. Raises `UsageError`."""
        return self._converted(arguments, _loaded)

    def dump_result(self, value: Any) -> Any:
        """The JSON of what the function returned. Raises `UsageError`."""
        return self._result(value, _dumped, "returned")

    def load_result(self, value: Any) -> Any:
        """The Python value of a result that is JSON. Raises `UsageError`."""
        return self._result(value, _loaded, "has stored")

    def _converted(
        self, arguments: Mapping[str, Any], convert: "Callable[[TypeAdapter[Any], Any], Any]"
    ) -> dict[str, Any]:
        adapters = self._checked_adapters()
        converted: dict[str, Any] = {}
        problems: list[str] = []
        for name, value in arguments.items():
            adapter = adapters.get(name)
            if adapter is None:
                converted[name] = value
                continue
            try:
                converted[name] = convert(adapter, value)
            except (ValidationError, PydanticSerializationError, UsageError) as problem:
                problems += _sentences(f"`{name}`", problem)
        if problems:
            raise self._invalid(problems)
        return converted

    def _result(
        self, value: Any, convert: "Callable[[TypeAdapter[Any], Any], Any]", verb: str
    ) -> Any:
        adapter = self._checked_adapters().get(RESULT)
        if adapter is None:
            return value
        try:
            return convert(adapter, value)
        except (ValidationError, PydanticSerializationError, UsageError) as problem:
            raise UsageError(
                f"{self.name} {verb} something other than its declared type: "
                + "; ".join(_sentences("the result", problem)),
                hint="Return a value of the annotated type, or change the annotation.",
                code="result_invalid",
            ) from None

    def _checked_adapters(self) -> "dict[str, TypeAdapter[Any]]":
        try:
            return self._adapters
        except NameError as problem:
            raise UsageError(
                f"{self.name} cannot be a job: an annotation cannot be resolved: {problem}",
                hint="Import the type where the module is loaded, not under TYPE_CHECKING alone.",
                code="annotation_unresolved",
            ) from None

    @cached_property
    def _adapters(self) -> "dict[str, TypeAdapter[Any]]":
        """By parameter, those that are annotated; and that of the result. Raises `NameError` while an annotation
        names what is not defined yet."""
        names = {parameter.name for parameter in self._parameters} | {RESULT}
        written = {n: a for n, a in self.function.__annotations__.items() if n in names}
        resolved = get_type_hints(
            SimpleNamespace(__annotations__=written),
            globalns=getattr(inspect.unwrap(self.function), "__globals__", None),
            include_extras=True,
        )
        return {name: self._adapter(name, annotation) for name, annotation in resolved.items()}

    def _adapter(self, name: str, annotation: Any) -> "TypeAdapter[Any]":
        try:
            return TypeAdapter(annotation)
        except (PydanticSchemaGenerationError, PydanticUserError) as problem:
            what = "its result" if name == RESULT else f"its parameter `{name}`"
            raise UsageError(
                f"{self.name} cannot be a job: {what} cannot be stored: "
                f"{str(problem).splitlines()[0]}",
                hint="Use JSON values, dataclasses, TypedDicts, pydantic models, datetimes, Decimals, UUIDs, "
                "Paths or enums.",
                code="type_not_storable",
            ) from problem

    def _mismatch(self, named: Mapping[str, object], problem: TypeError) -> UsageError:
        known = [parameter.name for parameter in self._parameters]
        unknown = [name for name in named if name not in known]
        if not unknown:
            return self._invalid([str(problem)])
        takes = ", ".join(f"`{name}`" for name in known) or "no arguments"
        return UsageError(
            f"{self.name} does not accept `{unknown[0]}`; it takes {takes}",
            hint=did_you_mean(unknown[0], known).strip() or None,
            code="arguments_invalid",
        )

    def _invalid(self, problems: list[str]) -> UsageError:
        return UsageError(
            f"{self.name} cannot be called with these arguments: {'; '.join(problems)}",
            hint=f"Its parameters are: {self._call}",
            code="arguments_invalid",
        )


def is_context(parameter: inspect.Parameter) -> bool:
    """Whether a parameter gets the run context: by its name or by its annotation, which may be text."""
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return parameter.name == CONTEXT_NAME or name.rpartition(".")[2] == CONTEXT_TYPE


def _dumped(adapter: TypeAdapter[Any], value: Any) -> Any:
    checked = adapter.validate_python(value)
    dumped = adapter.dump_python(checked, mode="json", by_alias=True, round_trip=True)
    _loaded(adapter, dumped)  # what cannot be read back is refused now, not where it is read
    return dumped


def _loaded(adapter: TypeAdapter[Any], value: Any) -> Any:
    # As JSON and not as Python: only there is text a datetime for a model that is strict.
    return adapter.validate_json(jsontext.encode(value))


def _sentences(what: str, problem: Exception) -> list[str]:
    if not isinstance(problem, ValidationError):
        return [f"{what}: {problem}"]
    return [
        f"{what}{''.join(f'.{step}' for step in error['loc'])}: {error['msg']}"
        for error in problem.errors(include_url=False, include_context=False)
    ]
