"""The workspace of `tsuzuki demo`: files that are created once and never changed afterwards.

The record of the ports is written before `tsuzuki.yaml`, which contains them, so an interrupted start is continued
by the next one. A folder with a `tsuzuki.yaml` but no record does not belong to a demo and is not touched.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from tsuzuki.cli.demo.part import DemoContext, DemoPart, DemoServer
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import ConfigurationError, Conflict, FileUnusable

FILE_NAME = "tsuzuki.yaml"
RECORD = Path(".tsuzuki") / "demo.json"
NIGHTLY = """\
# The nightly report. Its first attempt finds the archive closed, and the retry succeeds.
echo "Report of $TSUZUKI_JOB, run $TSUZUKI_RUN_ID, attempt $TSUZUKI_ATTEMPT"
for part in orders deliveries returns; do
  echo "reading $part"
  sleep 0.4
done
if [ "$TSUZUKI_ATTEMPT" -lt 2 ]; then
  echo "the archive does not answer: connection refused" >&2
  exit 1
fi
echo "3 parts written to the archive"
"""
THUMBNAILS = '''\
"""The job make-thumbnails. It takes longer than its interval, and continues where its last run was stopped."""

from pathlib import Path

from tsuzuki import RunContext

POSITION = Path(__file__).with_suffix(".position")


def make(run: RunContext, *, pictures: int = 900) -> dict[str, int]:
    first = int(POSITION.read_text()) if POSITION.exists() else 0
    run.log(f"continuing with picture {first + 1}" if first else "starting with the first picture")
    for done in range(first + 1, pictures + 1):
        run.wait(0.5)
        run.raise_if_cancelled()
        POSITION.write_text(str(done))
        run.progress(done, pictures)
        if done % 50 == 0:
            run.log(f"{done} of {pictures} pictures")
    POSITION.unlink()
    return {"pictures": pictures}
'''
FIRST_TICK = timedelta(seconds=15)
"""After the first start: the run of that start is in progress then, so that this tick is skipped."""

HEAD = """\
# yaml-language-server: $schema=tsuzuki.schema.json
# The demo of Tsuzuki. All services in it are stand-ins on this machine, started by `tsuzuki demo`.
# Change it as you like: a running demo applies what you save.

version: 1
timezone: UTC

web:
  owner_mode: open              # no sign-in: for a demo only, because every account of this machine has all rights
"""
OWN_JOBS = """\
  nightly-report:
    description: A command whose first attempt fails
    command: [sh, nightly.sh]
    schedule: {daily_at: "02:30"}
    timeout: 10m
    max_retries: 3
    backoff: {initial: 3s}

  make-thumbnails:
    description: Takes longer than its interval, so some of its ticks are skipped
    python: thumbnails:make
    schedule: {every: 5m, anchor: "ANCHOR"}

  greet-visitor:
    description: Waits for the event visitor.came
    command: [sh, -c, 'echo "Welcome: $TSUZUKI_EVENT"']
    on_event: visitor.came
"""


@dataclass(frozen=True, kw_only=True)
class DemoRecord:
    """What the first start wrote down."""

    since: datetime
    ports: Mapping[str, int]


class DemoWorkspace:
    """The demo in `folder`, which need not exist yet, with the part of each collector."""

    def __init__(self, folder: Path, *, parts: Iterable[DemoPart], clock: Clock) -> None:
        self.folder = folder
        self.file = folder / FILE_NAME
        self.parts = tuple(parts)
        self._clock = clock
        self._now = clock.now()

    def refuse_if_not_a_demo(self) -> None:
        if self.file.exists() and not (self.folder / RECORD).exists():
            raise Conflict(
                f"{self.folder} already is a workspace, but not one of the demo",
                hint="Nothing was changed. Choose another folder: tsuzuki demo FOLDER",
                code="not_a_demo",
            )

    def make_folder(self) -> None:
        """The folder with the files that parts need; `.gitignore` keeps it out of a repository around it."""
        try:
            (self.folder / RECORD).parent.mkdir(parents=True, exist_ok=True)
            _write_if_missing(self.folder / ".gitignore", "*\n")
            for part in self.parts:
                part.prepare(self.context())
        except OSError as problem:
            raise FileUnusable(
                f"cannot create the folder {self.folder}: {problem.strerror}",
                hint="Choose a folder you may write to: tsuzuki demo FOLDER",
                code="folder_unwritable",
            ) from problem

    def context(self) -> DemoContext:
        return DemoContext(folder=self.folder, since=self.record().since, clock=self._clock)

    def servers(self) -> Sequence[DemoServer]:
        context = self.context()
        return [server for part in self.parts for server in part.servers(context)]

    def record(self) -> DemoRecord:
        """That of the first start; before it, one without ports."""
        file = self.folder / RECORD
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
            return DemoRecord(
                since=datetime.fromisoformat(said["since"]), ports=dict(said["ports"])
            )
        except FileNotFoundError:
            return DemoRecord(since=self._now, ports={})
        except (ValueError, KeyError, TypeError) as problem:
            raise ConfigurationError(
                f"{file} was not written by the demo",
                hint=f"Delete the folder {self.folder} and start the demo again.",
                code="demo_record",
            ) from problem

    def write(self, ports: Mapping[str, int]) -> None:
        """Write what is missing: the record, the scripts of jobs, the schema, and at last the file."""
        from tsuzuki.wiring.application import file_schema

        record = {"since": self.record().since.isoformat(), "ports": dict(ports)}
        _write_if_missing(self.folder / RECORD, json.dumps(record))
        _write_if_missing(self.folder / "nightly.sh", NIGHTLY)
        _write_if_missing(self.folder / "thumbnails.py", THUMBNAILS)
        _write_if_missing(self.folder / "tsuzuki.schema.json", file_schema())
        _write_if_missing(self.file, self.file_text(ports))

    def file_text(self, ports: Mapping[str, int]) -> str:
        """The text of `tsuzuki.yaml`: a section and a job of each part, and jobs of our own."""
        context = self.context()
        own_jobs = OWN_JOBS.replace(
            "ANCHOR", (context.since + FIRST_TICK).isoformat(timespec="seconds")
        )
        values = [{**ports, **part.values(context)} for part in self.parts]
        sections = [
            part.section.format(**own) for part, own in zip(self.parts, values, strict=True)
        ]
        jobs = [part.job.format(**own) for part, own in zip(self.parts, values, strict=True)]
        return "\n".join([HEAD, *filter(None, sections), "jobs:\n" + "\n".join([*jobs, own_jobs])])


def _write_if_missing(path: Path, text: str) -> None:
    """Whole or not at all."""
    if not path.exists():
        unfinished = path.with_name(f".{path.name}.tmp")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
