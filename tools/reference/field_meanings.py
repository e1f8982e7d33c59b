"""Meanings of a model's keys, from the docstrings below its fields in the source."""

import ast
import inspect
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


class MeaningMissing(Exception):
    """A key has no docstring below it."""


def meaning_of(model: type[BaseModel], field: str) -> str:
    """The docstring of a field, in the model or in a parent. Raises `MeaningMissing`."""
    for kind in model.__mro__:
        if kind is BaseModel:
            break
        found = _docstrings(kind).get(field)
        if found is not None:
            return found
    raise MeaningMissing(f"{model.__module__}.{model.__name__}.{field} has no docstring below it")


def _docstrings(kind: type) -> dict[str, str]:
    (tree,) = ast.parse(dedent(inspect.getsource(kind))).body
    if not isinstance(tree, ast.ClassDef):
        return {}
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }
