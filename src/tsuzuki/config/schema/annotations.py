"""Read the type annotations of a pydantic model: its keys, and what is said about one of them."""

from collections.abc import Iterator
from enum import Enum
from types import NoneType
from typing import TypeGuard, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from tsuzuki.config.schema.field_types import IS_DURATION, Expects, VariableAlias, duration_text
from tsuzuki.config.yaml.nodes import KeyPath


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys of a model as they are written in the file."""
    return [field.alias or name for name, field in model.model_fields.items()]


def expected_words(model: type[BaseModel], key: KeyPath) -> str | None:
    """The words after "`key` must be": those of an `Expects`, or else the members of an enum."""
    parts = list(_parts(_annotation_at(model, key)))
    words = [part.words for part in parts if isinstance(part, Expects)]
    if words:
        return words[-1]
    enums = [part for part in parts if isinstance(part, type) and issubclass(part, Enum)]
    return _alternatives([str(member.value) for member in enums[0]]) if enums else None


def variable_alias(model: type[BaseModel], key: KeyPath) -> str | None:
    """The variable in the `VariableAlias` of a key."""
    parts = _parts(_annotation_at(model, key))
    return next((part.variable for part in parts if isinstance(part, VariableAlias)), None)


def default_at(model: type[BaseModel], key: KeyPath) -> object:
    """The value of a key that is not given, as a reader would write it; None if it has none."""
    *parents, last = key
    for step in parents:
        nested = model_at(model, (step,))
        if nested is None:
            return None
        model = nested
    field = next(f for name, f in model.model_fields.items() if last in (name, f.alias))
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined:
        return None
    if isinstance(default, float) and IS_DURATION in _parts(field):
        return duration_text(default)
    return to_jsonable_python(default, fallback=str, exclude_none=True)


def is_secret(model: type[BaseModel], key: KeyPath) -> bool:
    """Whether the value at `key` is a secret."""
    return SecretStr in _parts(_annotation_at(model, key))


def model_at(model: type[BaseModel], key: KeyPath) -> type[BaseModel] | None:
    """The model of the mapping at `key`, if it has one."""
    parts = _parts(_annotation_at(model, key))
    return next((part for part in parts if _is_model(part)), None)


def _alternatives(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _is_model(part: object) -> TypeGuard[type[BaseModel]]:
    return isinstance(part, type) and issubclass(part, BaseModel)


def _parts(annotation: object) -> Iterator[object]:
    """The type in an annotation and the metadata around it, with `Annotated` and `| None` removed."""
    if isinstance(annotation, FieldInfo):
        yield from _parts(annotation.annotation)
        yield from annotation.metadata
        return
    arguments = get_args(annotation)
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        yield from _parts(arguments[0])
        yield from metadata
        return
    alternatives = [part for part in arguments if part is not NoneType]
    if len(alternatives) == 1 and NoneType in arguments:
        yield from _parts(alternatives[0])
        return
    yield annotation


def _annotation_at(model: type[BaseModel], key: KeyPath) -> object:
    annotation: object = model
    for step in key:
        annotation = _step_into(annotation, step)
    return annotation


def _step_into(annotation: object, step: str | int) -> object:
    """The annotation of the value at `step` of a value with `annotation`; None if there is none."""
    for part in _parts(annotation):
        if _is_model(part):
            fields = part.model_fields.items()
            return next((field for name, field in fields if step in (name, field.alias)), None)
        if get_args(part):
            return get_args(part)[-1]
    return None
