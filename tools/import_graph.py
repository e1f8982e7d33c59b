"""Which files of the repository use which, from their imports and from the places that name a module or a file."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = {"src": "", "tests": "", "bench": "bench", "tools": "tools"}
"""Folders of Python files, and the package that each of them is."""

PLACE = re.compile(r"[a-z_]\w*(?:\.\w+)+(?::\w+)?")
"""Import string of a module, such as `tsuzuki.cli.run:command`."""

Users = Mapping[Path, frozenset[Path]]
"""Files that use each file."""


def users_of_files(root: Path = ROOT) -> Users:
    modules = dict(_modules(root))
    users: dict[Path, set[Path]] = defaultdict(set)
    for name, path in modules.items():
        for used in _used(ast.parse(path.read_text(encoding="utf-8")), name, path, modules):
            users[used].add(path)
    for path in modules.values():
        package = path.parent / "__init__.py"
        if not users[path] and package.exists():  # loaded by its name
            users[path].add(package)
    for conftest in (root / "tests").rglob("conftest.py"):
        users[conftest].update(conftest.parent.rglob("test_*.py"))
    return {path: frozenset(found - {path}) for path, found in users.items()}


def by_distance(changed: Iterable[Path], users: Users) -> dict[Path, int]:
    """The changed files and all that use them: over how many files at least."""
    distances = dict.fromkeys(changed, 0)
    front = [*distances]
    while front:
        reached = []
        for path in front:
            for user in sorted(users.get(path, ())):
                if user not in distances:
                    distances[user] = distances[path] + 1
                    reached.append(user)
        front = reached
    return distances


def _modules(root: Path) -> Iterator[tuple[str, Path]]:
    for folder, package in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            names = [part for part in (package, *parts) if part and part != "__init__"]
            if names:
                yield ".".join(names), path


def _used(tree: ast.Module, name: str, path: Path, modules: Mapping[str, Path]) -> Iterator[Path]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from _found((one.name for one in names), modules)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = module or ""
                if level:
                    up = name.split(".")[: -level + (path.name == "__init__.py") or None]
                    base = ".".join([*up, *([module] if module else [])])
                parts = [f"{base}.{one.name}" for one in names]
                yield from _found(parts, modules)
                if any(part not in modules for part in parts):
                    yield from _found([base], modules)
            case ast.Constant(value=str(text)) if PLACE.fullmatch(text):
                yield from _found([text.partition(":")[0]], modules)


def _found(names: Iterable[str], modules: Mapping[str, Path]) -> Iterator[Path]:
    return (modules[name] for name in names if name in modules)
