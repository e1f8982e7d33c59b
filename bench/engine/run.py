"""The whole benchmark in one run on one machine: a table, and the same as JSON.

    python -m bench.engine.run [--short] [--only WORDS] [--peers NAMES] [--stores NAMES] [--jobs N]

Rounds alternate between the lines of a measure, so that a busy minute does not affect one of them alone. The figure is
the median of the rounds. A peer that cannot be installed or fails is a line of the table with its reason.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.engine.peer_folders import OURS, ROOT, NotInstalled, interpreter
from bench.engine.plan import MEASURES, Entrant, Measure
from bench.engine.stores import DURABILITY, Stores
from bench.engine.table import Row, for_terminal, write
from bench.rows import machine

RESULTS = ROOT / "bench" / "results" / "engine.json"
TIMEOUT_SECONDS = 300
TIMEOUT_SHORT_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Extent of a benchmark run. `jobs` replaces all numbers in the plan, for a smoke test."""

    short: bool
    only: str
    peers: frozenset[str]
    stores: frozenset[str]
    jobs: int | None

    def entrants(self, measure: Measure) -> list[Entrant]:
        return [
            one
            for one in measure.entrants
            if self.only in measure.title
            and (not self.peers or one.peer in self.peers or one.peer in OURS)
            and (not self.stores or one.store in self.stores)
            and not (self.short and one.full_only)
        ]

    def jobs_of(self, entrant: Entrant) -> int:
        return self.jobs or (self.short and entrant.jobs_short) or entrant.jobs

    def finished_of(self, entrant: Entrant) -> int:
        return min(entrant.finished, self.jobs or entrant.finished)

    def rounds_of(self, entrant: Entrant) -> int:
        return 1 if self.short else entrant.rounds

    @property
    def timeout_seconds(self) -> int:
        return TIMEOUT_SHORT_SECONDS if self.short else TIMEOUT_SECONDS


class Failed(Exception):
    """A measured program gave no figures; the message is one line."""


def ordered(entrant: Entrant, url: str, extent: Extent) -> dict[str, object]:
    """Run one measured program with its own interpreter and read its line of JSON."""
    numbers = {"jobs": extent.jobs_of(entrant), "finished": extent.finished_of(entrant)}
    options = [f"--{name}={number}" for name, number in numbers.items()]
    words = [entrant.run, f"--url={url}", *options]
    command = [interpreter(entrant.peer), "-W", "ignore", "-m", entrant.module, *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    # Its own process group, so that its workers are killed with it.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=extent.timeout_seconds)
    except subprocess.TimeoutExpired as problem:
        raise Failed(f"no figure after {extent.timeout_seconds} s") from problem
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode or not stdout:
        raise Failed(_reason(stderr))
    return json.loads(stdout.splitlines()[-1])


def _reason(stderr: str) -> str:
    """The line that names an exception, or else the last one."""
    lines = stderr.strip().splitlines() or ["it said nothing"]
    named = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Exit|Invalid\w*):", line)]
    return (named or lines)[-1]


def measured(measure: Measure, stores: Stores, extent: Extent) -> list[Row]:
    entrants = extent.entrants(measure)
    rounds: dict[Entrant, list[dict[str, float]]] = defaultdict(list)
    said: dict[Entrant, dict[str, object]] = {}
    failures: dict[Entrant, str] = {}
    for number in range(max((one.rounds for one in entrants), default=0)):
        for entrant in entrants:
            if entrant in failures or number >= extent.rounds_of(entrant):
                continue
            started_at = time.monotonic()
            try:
                with stores.fresh(entrant.store) as url:
                    said[entrant] = ordered(entrant, url, extent)
                rounds[entrant].append(said[entrant]["figures"])
            except (Failed, NotInstalled) as problem:
                failures[entrant] = f"{type(problem).__name__}: {problem}"
            outcome = failures.get(entrant) or for_people(rounds[entrant][-1])
            tell(f"{measure.title}: {entrant.name}: {outcome}", started_at)
    return [
        Row(
            measure=measure.title,
            unit=measure.unit,
            peer=entrant.name,
            version=str(said.get(entrant, {}).get("version", "")),
            settings=settings(entrant, said.get(entrant, {}), extent),
            rounds=[] if entrant in failures else rounds[entrant],
            failure=failures.get(entrant, ""),
        )
        for entrant in entrants
    ]


def settings(entrant: Entrant, said: dict[str, object], extent: Extent) -> str:
    parts = [DURABILITY[entrant.store], str(said.get("settings", ""))]
    if extent.jobs_of(entrant) != 10_000 and not entrant.full_only:
        parts.append(f"{extent.jobs_of(entrant):,} jobs")
    return "; ".join(part for part in parts if part)


def tell(line: str, started_at: float) -> None:
    """Progress on stderr: stdout is for the table."""
    print(f"{line} ({time.monotonic() - started_at:.1f} s)", file=sys.stderr, flush=True)


def for_people(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:,.1f}" for name, value in figures.items())


def conditions(stores: Stores, extent: Extent, load: float) -> dict[str, str]:
    """The environment of the figures, and the load of the machine before."""
    extents = {"run": "short" if extent.short else "full", "load before": f"{load:.1f}"}
    return {**extents, **machine(**stores.versions())}


def asked() -> tuple[Extent, Path]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="at most three minutes")
    parser.add_argument("--only", default="", help="only measures whose title contains this text")
    parser.add_argument("--peers", default="", help="only these, by commas, beside our own")
    parser.add_argument("--stores", default="", help="comma-separated: PostgreSQL, SQLite, Redis")
    parser.add_argument(
        "--jobs", type=int, help="number of jobs instead of the plan's (for smoke tests)"
    )
    parser.add_argument("--result", type=Path, default=RESULTS)
    options = parser.parse_args()
    extent = Extent(
        short=options.short,
        only=options.only,
        peers=frozenset(options.peers.split(",")) - {""},
        stores=frozenset(options.stores.split(",")) - {""},
        jobs=options.jobs,
    )
    return extent, options.result


def main() -> int:
    extent, result = asked()
    load = os.getloadavg()[0]
    rows: list[Row] = []
    with Stores() as stores:
        for measure in MEASURES:
            rows += measured(measure, stores, extent)
        write(result, rows, conditions(stores, extent, load))
    print(for_terminal(rows))
    return int(any(row.failure for row in rows if row.peer.startswith(OURS)))


if __name__ == "__main__":
    sys.exit(main())
