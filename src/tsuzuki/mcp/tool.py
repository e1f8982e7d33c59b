"""A tool as it is listed and called. Definitions are plain data: nothing is loaded to list them."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsuzuki.model.access import AnyRight, Principal
from tsuzuki.model.import_string import load

if TYPE_CHECKING:
    from tsuzuki.mcp.answer import ToolAnswer
    from tsuzuki.model.secrets import SecretMask

BUDGET_MIN = 200


@dataclass(frozen=True, kw_only=True)
class ToolParameter:
    """An argument of a tool. `aliases` are what callers often write instead."""

    name: str
    schema: Mapping[str, Any]
    required: bool = False
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool: its definition, and by import string the function that answers a call."""

    name: str
    description: str
    function: str
    """`package.module:attribute`, of a `ToolFunction`."""

    right: AnyRight
    """Which a principal needs to see the tool and to call it."""

    parameters: tuple[ToolParameter, ...]
    example: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of a call that can be made; an error shows it."""

    budget_default: int
    budget_max: int
    is_read_only: bool = True
    is_always_loaded: bool = False
    """Whether clients that hide tools behind a search are asked to show it from the start."""

    is_listed: bool = True
    resolve: Callable[[str], Any] = field(default=load, repr=False)
    """Imports what `function` names. For a collector's tool it is `Collector.load`, which reports a missing extra."""

    @property
    def input_schema(self) -> dict[str, Any]:
        required = [one.name for one in self.parameters if one.required]
        return {
            "type": "object",
            "properties": {one.name: dict(one.schema) for one in self.parameters},
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def load(self) -> "ToolFunction":
        """The function that answers a call. Raises `ConfigurationError` if the collector's extra is not installed."""
        function: ToolFunction = self.resolve(self.function)
        return function


class ToolProgress:
    """How far a call is: written by the thread that answers, read by the loop that tells the client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done, self._total, self._message = 0.0, None, ""  # type: float, float | None, str

    def report(self, done: float, total: float | None, message: str) -> None:
        with self._lock:
            self._done, self._total, self._message = done, total, message

    def read(self) -> tuple[float, float | None, str]:
        with self._lock:
            return self._done, self._total, self._message


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call of a tool, its arguments checked and under their own names."""

    tool: Tool
    arguments: Mapping[str, Any]
    state: "ServerState"
    progress: ToolProgress = field(default_factory=ToolProgress)

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    @property
    def budget(self) -> int:
        """Tokens that the answer may have."""
        asked = int(self.arguments.get("budget") or self.tool.budget_default)
        return min(asked, self.tool.budget_max)


ToolFunction = Callable[[ToolCall], "ToolAnswer"]


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """What all calls to one server share. Parts that tools need are made once, when first asked for."""

    environ: Mapping[str, str] = field(repr=False)
    cwd: Path
    root: str | None = None
    """The tree that questions without a path are about, if the server was told."""

    is_confined: bool = False
    """Whether questions about other trees are refused, because other users may ask."""

    sources: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a workspace's configuration is read from, for tools that need one."""

    principal: Principal | None = None
    """For whom the calls act; None: for the user who started the server, with every right."""

    mask: "SecretMask | None" = None
    """Hides secrets in the answers; None where the caller could read them anyway."""

    is_closing: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when the server ends: calls that wait stop waiting, or the process would linger."""

    makers: Mapping[str, Callable[[], Any]] = field(default_factory=dict, repr=False)
    """What makes a part, by its name, where that is not the tools' own function."""

    _parts: dict[str, Any] = field(default_factory=dict, repr=False)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def part(self, name: str, make: Callable[["ServerState"], Any]) -> Any:
        """The one part of that name; it is made the first time, by `make` unless the server has a maker for it."""
        with self._lock:
            if name not in self._parts:
                self._parts[name] = self.makers[name]() if name in self.makers else make(self)
            return self._parts[name]

    def may(self, right: AnyRight) -> bool:
        return self.principal is None or self.principal.may(right)

    def require(self, right: AnyRight) -> None:
        """Raises `NotPermitted`."""
        if self.principal is not None:
            from tsuzuki.services.access.permissions import require  # noqa: PLC0415 -- a server on stdio needs none

            require(self.principal, right)

    def close(self) -> None:
        """End what the calls and the parts have under way."""
        self.is_closing.set()
        with self._lock:
            for made in self._parts.values():
                made.close()
            self._parts.clear()
