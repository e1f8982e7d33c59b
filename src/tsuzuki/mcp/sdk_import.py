"""Import only those parts of the MCP SDK that are used: a server starts in two thirds of the time.

The packages `mcp` and `mcp.server` import the client, an HTTP client and a second server for names that we do not use.
Here their modules below are found at once, and the packages' own code runs when a name of theirs is first asked for.
The wire models of each protocol version are built when the first message needs one.

It changes how this process imports, so only a program that serves calls it, before it imports the SDK.
"""

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_PACKAGES = frozenset({"mcp", "mcp.server"})


def import_sdk_lazily() -> None:
    """Effective for what of the SDK was not imported so far."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    _build_models_lazily()


def _build_models_lazily() -> None:
    try:
        from mcp_types._wire_base import WireModel  # noqa: PLC0415 -- the SDK may not be installed
    except ImportError as missing:
        if not (missing.name or "").startswith("mcp_types."):
            raise
        return  # a later SDK: it builds them as it likes
    WireModel.model_config["defer_build"] = True


class _Finder(MetaPathFinder):
    """Finds the packages where they are, and loads them lazily."""

    def find_spec(
        self, fullname: str, path: "Sequence[str] | None", target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _PackageLoader(spec.loader.name, spec.loader.path)
        return spec


class _PackageLoader(SourceFileLoader):
    """Runs a package's own code when a name is asked for that its modules did not give it."""

    def exec_module(self, module: ModuleType) -> None:
        def load_name(name: str) -> Any:
            if name.startswith("__") or module.__dict__.pop("__getattr__", None) is None:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            super(_PackageLoader, self).exec_module(module)
            return getattr(module, name)

        module.__dict__["__getattr__"] = load_name
