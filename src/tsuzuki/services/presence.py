"""Whether the program or the function of a job exists on this machine, without executing anything of it."""

import ast
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

from tsuzuki.model.abilities import MAIN_MODULE
from tsuzuki.model.job import JobSpec


def missing_here(spec: JobSpec, *, workspace: Path, environ: Mapping[str, str]) -> str | None:
    """What a run of the job would not find here; None if it is there, or if only execution could tell."""
    if argv := spec.options.get("argv"):
        return _missing_program(argv[0], spec, workspace=workspace, environ=environ)
    if function := spec.options.get("function"):
        return _missing_function(function, workspace)
    return None


def _missing_program(
    program: str, spec: JobSpec, *, workspace: Path, environ: Mapping[str, str]
) -> str | None:
    path = (spec.options.get("environment") or {}).get("PATH", environ.get("PATH", os.defpath))
    if "${" in path:
        return None
    folder = workspace / (spec.options.get("cwd") or "")
    if "/" not in program:
        found = shutil.which(program, path=path)
        return None if found else f"there is no program {program!r} on the PATH here"
    file = folder / program
    if not file.is_file():
        return f"there is no program {str(file)!r} here"
    return None if os.access(file, os.X_OK) else f"{str(file)!r} is not executable here"


def _missing_function(function: str, workspace: Path) -> str | None:
    module, _, attribute = function.partition(":")
    if module == MAIN_MODULE:
        return None
    spec = _found(module, [*sys.path, str(workspace)])
    if spec is None:
        return f"there is no module {module!r} here"
    name = attribute.partition(".")[0]
    names = _names_in(spec)
    return f"the module {module!r} has no {name!r}" if names and name not in names else None


def _found(module: str, path: list[str]) -> ModuleSpec | None:
    """The module, found without importing the packages that it is in."""
    spec = None
    for number, _ in enumerate(parts := module.split(".")):
        spec = PathFinder.find_spec(".".join(parts[: number + 1]), path)
        if spec is None:
            return None
        path = [*(spec.submodule_search_locations or [])]
    return spec


def _names_in(spec: ModuleSpec) -> set[str]:
    """The names that a module defines; empty if they are known only when it is imported."""
    if not (spec.origin or "").endswith(".py"):
        return set()
    try:
        tree = ast.parse(Path(str(spec.origin)).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return set()
    names = set(_bound(tree))
    return set() if names & {"*", "__getattr__"} else names


def _bound(tree: ast.AST) -> Iterator[str]:
    """Names bound anywhere in a module, also within its functions: rather too many than too few."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=alias):
                yield alias or name.partition(".")[0]
