"""Which file of the tree a module name means.

A module is the path of its file; in Go, and for a package of Python without a file of its own, that of its folder. What
cannot be found in the tree is no module of it.
"""

import json
import posixpath
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from functools import cached_property

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.queries import lookups

_SCRIPTS = (".ts", ".tsx", ".d.ts", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
_COMMENTS = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_GO_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
_GO_VERSION = re.compile(r"v\d+")
_PYTHON_SOURCES = ("", "src", "lib")
"""Folders below an import root that hold packages."""


class Modules:
    """The modules of one tree, for one answer."""

    def __init__(self, files: FreshFiles, changed: frozenset[str]) -> None:
        self._files = files
        self._changed = changed
        self._exist: dict[str, bool] = {}

    def find(self, family: str, module: str, from_path: str) -> str | None:
        """The module that a file names, if the tree has it."""
        finders: dict[str, Callable[[str, str], str | None]] = {
            "python": self._python,
            "javascript": self._javascript,
            "go": lambda name, _path: self._go(name),
        }
        return finders[family](module, from_path)

    def submodule(self, module: str, name: str) -> str | None:
        """A module of a package of Python."""
        folder, file = posixpath.split(module)
        if file.endswith((".py", ".pyi")):
            return self._python_file(f"{folder}/{name}") if file.startswith("__init__.") else None
        return self._python_file(f"{module}/{name}")

    def _has(self, path: str) -> bool:
        if path not in self._exist:
            connection = self._files.connection
            is_stored = connection is not None and lookups.file_at(connection, path) is not None
            self._exist[path] = path in self._changed or is_stored
        return self._exist[path]

    def _has_folder(self, path: str) -> bool:
        connection = self._files.connection
        return connection is not None and lookups.has_below(connection, path)

    def _python(self, module: str, from_path: str) -> str | None:
        folder = posixpath.dirname(from_path)
        name = module.lstrip(".")
        parts = name.replace(".", "/")
        if dots := len(module) - len(name):
            for _ in range(dots - 1):
                folder = posixpath.dirname(folder)
            return self._python_file(posixpath.join(folder, parts) if parts else folder)
        is_standard = name.partition(".")[0] in sys.stdlib_module_names
        roots = [""] if is_standard else [*self._python_roots(folder)]
        found = (self._python_file(posixpath.join(root, parts)) for root in roots)
        return next((one for one in found if one), None)

    def _python_roots(self, folder: str) -> Iterator[str]:
        """The folders that may be on the path of a file: those around it that are no packages."""
        while True:
            if not self._has(posixpath.join(folder, "__init__.py")):
                yield from (posixpath.join(folder, one) for one in _PYTHON_SOURCES)
            if not folder:
                return
            folder = posixpath.dirname(folder)

    def _python_file(self, base: str) -> str | None:
        base = base.strip("/")
        for candidate in (
            f"{base}.py",
            f"{base}/__init__.py",
            f"{base}.pyi",
            f"{base}/__init__.pyi",
        ):
            if self._has(candidate.lstrip("/")):
                return candidate.lstrip("/")
        return base if base and self._has_folder(base) else None

    def _javascript(self, module: str, from_path: str) -> str | None:
        if module.startswith("."):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(from_path), module))
            return self._script(base)
        for pattern, target in self._aliases:
            start, star, end = pattern.partition("*")
            if star and module.startswith(start) and module.endswith(end):
                part = module[len(start) : len(module) - len(end)]
                if found := self._script(target.replace("*", part)):
                    return found
            elif module == pattern and (found := self._script(target)):
                return found
        return self._package(module)

    def _script(self, base: str) -> str | None:
        if base.startswith(".."):
            return None
        stem, suffix = posixpath.splitext(base)
        tried = [base] if suffix in _SCRIPTS else []
        if suffix in (".js", ".jsx", ".mjs", ".cjs"):
            tried += [stem + suffix.replace("js", "ts"), f"{stem}.ts", f"{stem}.tsx"]
        tried += [f"{base}{one}" for one in _SCRIPTS]
        tried += [posixpath.normpath(f"{base}/index{one}") for one in _SCRIPTS]
        return next((one for one in tried if self._has(one)), None)

    def _package(self, module: str) -> str | None:
        """A package of the same workspace: its sources, else the file that its manifest names."""
        parts = module.split("/")
        size = 2 if module.startswith("@") else 1
        folder = self._workspaces.get("/".join(parts[:size]))
        if folder is None:
            return None
        rest = "/".join(parts[size:])
        inner = [f"src/{rest}", rest] if rest else ["src/index", "src", "index", "lib/index"]
        found = (self._script(posixpath.normpath(posixpath.join(folder, one))) for one in inner)
        return next((one for one in found if one), None)

    @cached_property
    def _workspaces(self) -> dict[str, str]:
        """The folders of the packages by their name; a name that two have is left out."""
        found: dict[str, str] = {}
        for path, manifest in self._manifests("package.json"):
            name = manifest.get("name")
            if isinstance(name, str):
                found[name] = "" if name in found else posixpath.dirname(path) or "."
        return {name: folder for name, folder in found.items() if folder}

    @cached_property
    def _aliases(self) -> list[tuple[str, str]]:
        """The `paths` of tsconfig.json, as patterns and targets below the root."""
        found = []
        for path, config in self._manifests("tsconfig.json"):
            options = config.get("compilerOptions")
            paths = options.get("paths") if isinstance(options, dict) else None
            base = options.get("baseUrl", ".") if isinstance(options, dict) else "."
            folder = posixpath.join(posixpath.dirname(path), base if isinstance(base, str) else ".")
            for pattern, targets in paths.items() if isinstance(paths, dict) else ():
                for target in targets if isinstance(targets, list) else ():
                    place = posixpath.normpath(posixpath.join(folder, str(target)))
                    found.append((pattern, place))
        return sorted(found, key=lambda one: -len(one[0].partition("*")[0]))

    def _manifests(self, name: str) -> Iterator[tuple[str, dict[str, object]]]:
        for path in self._paths_named(name):
            try:
                text = _COMMENTS.sub(lambda found: found[1] or "", self._text(path))
                content = json.loads(_TRAILING_COMMA.sub(r"\1", text))
            except ValueError:
                continue
            if isinstance(content, dict):
                yield path, content

    def _go(self, module: str) -> str | None:
        for name, folder in self._go_modules:
            if module == name or module.startswith(f"{name}/"):
                place = posixpath.join(folder, module[len(name) :].strip("/"))
                return place.rstrip("/") or "."
        return None

    @cached_property
    def _go_modules(self) -> list[tuple[str, str]]:
        """The modules with their folders, the longest name first."""
        found = [
            (module[1], posixpath.dirname(path))
            for path in self._paths_named("go.mod")
            if (module := _GO_MODULE.search(self._text(path)))
        ]
        return sorted(found, key=lambda one: -len(one[0]))

    def _paths_named(self, name: str) -> list[str]:
        connection: sqlite3.Connection | None = self._files.connection
        stored = lookups.paths_with_name(connection, name) if connection else []
        changed = [one for one in self._changed if posixpath.basename(one) == name]
        return sorted({*stored, *changed})

    def _text(self, path: str) -> str:
        file = self._files.get(path)
        return file.source.content.decode("utf-8", "replace") if file else ""


def go_package_name(module: str) -> str:
    """The name that a package of Go most likely has: the last part of its path that is no version."""
    parts = [one for one in module.split("/") if one]
    if len(parts) > 1 and _GO_VERSION.fullmatch(parts[-1]):
        parts.pop()
    return parts[-1] if parts else ""
