"""What the types of a model say about one of its keys."""

from collections.abc import Iterator
from enum import Enum
from types import NoneType
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tsuzuki.config.schema.fields import AlsoCalled, Expects
from tsuzuki.config.yaml.nodes import KeyPath


def keys_of(model: type[BaseModel]) -> list[str]:
    """The keys a model reads, as a person writes them."""
    return [field.alias or name for name, field in model.model_fields.items()]


def expected_words(model: type[BaseModel], key: KeyPath) -> str | None:
    """The words that complete "`key` must be …": an `Expects`, or the members of an enum."""
    found = _annotation_at(model, key)
    if found is None:
        return None
    words = [part.words for part in _layers(found) if isinstance(part, Expects)]
    choices = [part for part in _layers(found) if isinstance(part, type) and issubclass(part, Enum)]
    if choices and not words:
        return _alternatives([str(member.value) for member in choices[0]])
    return words[-1] if words else None


def other_variable(model: type[BaseModel], key: KeyPath) -> str | None:
    """The variable that a key is `AlsoCalled` by."""
    layers = _layers(_annotation_at(model, key))
    return next((part.variable for part in layers if isinstance(part, AlsoCalled)), None)


def model_at(model: type[BaseModel], key: KeyPath) -> type[BaseModel] | None:
    """The model that reads the mapping at `key`, if one does."""
    layers = _layers(_annotation_at(model, key))
    return next(
        (part for part in layers if isinstance(part, type) and issubclass(part, BaseModel)), None
    )


def _alternatives(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _layers(annotation: object) -> Iterator[object]:
    """An annotation taken apart as far as it is one thing: metadata, optional, the type itself."""
    if isinstance(annotation, FieldInfo):
        yield from _layers(annotation.annotation)
        yield from annotation.metadata
        return
    metadata = getattr(annotation, "__metadata__", None)
    if metadata is not None:
        yield from _layers(get_args(annotation)[0])
        yield from metadata
        return
    alternatives = [part for part in get_args(annotation) if part is not NoneType]
    if len(alternatives) == 1 and NoneType in get_args(annotation):
        yield from _layers(alternatives[0])
        return
    yield annotation


def _annotation_at(model: type[BaseModel], key: KeyPath) -> object:
    annotation: object = model
    for step in key:
        annotation = _inside(annotation, step)
        if annotation is None:
            return None
    return annotation


def _inside(annotation: object, step: str | int) -> object:
    """What `annotation` says about the value at `step` of it."""
    for part in _layers(annotation):
        if isinstance(part, type) and issubclass(part, BaseModel):
            fields = part.model_fields.items()
            return next((field for name, field in fields if step in (name, field.alias)), None)
        if get_args(part):
            return get_args(part)[-1]
    return None
