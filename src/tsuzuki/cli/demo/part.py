"""Describes what a collector adds to `tsuzuki demo`: its part of `tsuzuki.yaml`, its stand-ins and its first steps.

DEMO = DemoPart(
    section='''
weather:
  base_url: http://127.0.0.1:{weather}
''',
    job='''
  forecast:
    type: weather
    schedule: {{every: 5m}}
''',
    servers=lambda context: (DemoServer(name="weather", usual_port=8450, make=...),),
    run_at_start=("forecast",),
)
"""

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import NotFound

if TYPE_CHECKING:
    from tsuzuki.sandbox.ports import LocalServer
    from tsuzuki.wiring.application import Application


@dataclass(frozen=True, kw_only=True)
class DemoContext:
    """What the stand-ins and files of a demo are made from."""

    folder: Path
    """The workspace of the demo."""

    since: datetime
    """The time of its first start."""

    clock: Clock


@dataclass(frozen=True, kw_only=True)
class DemoServer:
    """A stand-in on its usual port, or on a free one if that was taken at the first start."""

    name: str
    """Names its port: `{name}` in the texts of its `DemoPart`."""

    usual_port: int
    make: "Callable[[int], LocalServer]"
    """Returns the server for a port; it is not started yet."""

    each_minute: Callable[[], object] | None = None
    """Called every minute while the demo runs."""


@dataclass(frozen=True, kw_only=True)
class RunningDemo:
    """A demo whose engine and web page have started."""

    application: "Application"
    folder: Path
    stopping: threading.Event
    """Set when the demo is to stop. `after_start` should return soon then, because the demo waits for it."""


def _nothing(_: object) -> None:
    pass


def _no_servers(_: DemoContext) -> Sequence[DemoServer]:
    return ()


def _no_values(_: DemoContext) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, kw_only=True)
class DemoPart:
    """The part of one collector. `section`, `job` and the keys of `commands` are format strings of the ports of its
    servers; the first two also of its `values`."""

    job: str
    """Its job, as lines below `jobs:`."""

    section: str = ""
    """Its section, as lines of `tsuzuki.yaml`."""

    values: Callable[[DemoContext], Mapping[str, str]] = _no_values
    """Further values for `section` and `job`, asked for when the file is written."""

    prepare: Callable[[DemoContext], None] = _nothing
    """Makes files that its stand-ins and its job need, at every start: those that exist must be kept (`make_once`)."""

    servers: Callable[[DemoContext], Sequence[DemoServer]] = _no_servers
    """Its stand-ins."""

    kept_variables: tuple[str, ...] = ()
    """Environment variables for the whole machine. Others that begin with `TSUZUKI_` are for another workspace, and
    are ignored."""

    programs: tuple[str, ...] = ()
    """Programs that it needs. The demo leaves the part out if one of them is missing."""

    run_at_start: tuple[str, ...] = ()
    """Jobs that are started once the engine runs."""

    after_start: Callable[[RunningDemo], None] = _nothing
    """Called in a thread once the engine runs. A `TsuzukiError` becomes a warning."""

    look_at: Mapping[str, str] = field(default_factory=dict)
    """Paths of the web page, with what is to be seen there."""

    commands: Mapping[str, str] = field(default_factory=dict)
    """Commands to try, with what they do."""

    def is_usable(self) -> bool:
        return all(map(shutil.which, self.programs))


def make_once(folder: Path, make: Callable[[Path], None]) -> None:
    """Make a folder unless it exists. It is made under another name and then renamed, so a folder by the final name
    is complete."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    make(unfinished)
    unfinished.rename(folder)


def start_job(application: "Application", name: str) -> None:
    """Start a run of a job, unless one is waiting or in progress, or the job was removed from the file."""
    from tsuzuki.services.runs import Request

    with suppress(NotFound):
        if application.runs.newest_live(name) is None:
            application.runs.submit(Request(job=name), audited=True)
