"""Everything in one run on one machine: one table, and the same as JSON.

    python -m bench.engine.run [--short] [--only WORDS] [--peers NAMES]

Rounds go round the entrants of a measure, so that a busy minute of the machine does not hit one of them alone. The
median of the rounds is what counts. A peer that cannot be installed or fails is a line of the table with its reason.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.engine.peer_folders import OURS, ROOT, NotInstalled, interpreter
from bench.engine.plan import MEASURES, Entrant, Measure
from bench.engine.stores import DURABILITY, Stores
from bench.engine.table import Row, for_terminal, write

RESULTS = ROOT / "bench" / "results" / "engine.json"
PATIENCE_SECONDS = 300


class Failed(Exception):
    """A measured program gave no figures; says why in a line."""


def ordered(entrant: Entrant, url: str, jobs: int) -> dict[str, object]:
    """Run one measured program with its own interpreter and read its line of JSON."""
    words = [entrant.run, "--url", url, "--jobs", str(jobs), "--finished", str(entrant.finished)]
    command = [interpreter(entrant.peer), "-W", "ignore", "-m", entrant.module, *words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired as problem:
        raise Failed(f"no figure after {PATIENCE_SECONDS} s") from problem
    if done.returncode or not done.stdout:
        raise Failed((done.stderr.strip().splitlines() or ["said nothing"])[-1])
    return json.loads(done.stdout.splitlines()[-1])


def measured(
    measure: Measure, stores: Stores, *, short: bool, chosen: Callable[[Entrant], bool]
) -> list[Row]:
    entrants = [one for one in measure.entrants if chosen(one) and not (short and one.full_only)]
    rounds: dict[Entrant, list[dict[str, float]]] = defaultdict(list)
    said: dict[Entrant, dict[str, object]] = {}
    failures: dict[Entrant, str] = {}
    for number in range(max((one.rounds for one in entrants), default=0)):
        for entrant in entrants:
            if entrant in failures or number >= (1 if short else entrant.rounds):
                continue
            jobs = (entrant.jobs_short or entrant.jobs) if short else entrant.jobs
            begun = time.monotonic()
            try:
                with stores.fresh(entrant.store) as url:
                    said[entrant] = ordered(entrant, url, jobs)
                rounds[entrant].append(said[entrant]["figures"])
            except (Failed, NotInstalled) as problem:
                failures[entrant] = f"{type(problem).__name__}: {problem}"
            tell(measure, entrant, jobs, rounds[entrant], failures.get(entrant), begun)
    return [
        Row(
            measure=measure.title,
            unit=measure.unit,
            peer=entrant.name,
            version=str(said.get(entrant, {}).get("version", "")),
            settings=settings(entrant, said.get(entrant, {}), short=short),
            rounds=[] if entrant in failures else rounds[entrant],
            failure=failures.get(entrant, ""),
        )
        for entrant in entrants
    ]


def settings(entrant: Entrant, said: dict[str, object], *, short: bool) -> str:
    parts = [DURABILITY[entrant.store], str(said.get("settings", ""))]
    if short and entrant.jobs_short:
        parts.append(f"{entrant.jobs_short:,} jobs")
    return "; ".join(part for part in parts if part)


def tell(
    measure: Measure,
    entrant: Entrant,
    jobs: int,
    rounds: Sequence[dict[str, float]],
    failure: str | None,
    begun: float,
) -> None:
    """How far it is, on stderr: stdout is for the table."""
    figures = failure or ", ".join(f"{name} {value:.1f}" for name, value in rounds[-1].items())
    seconds = time.monotonic() - begun
    print(
        f"{measure.title}: {entrant.name}, {jobs} jobs: {figures} ({seconds:.1f} s)",
        file=sys.stderr,
        flush=True,
    )


def machine(stores: Stores) -> dict[str, str]:
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "kernel": platform.release(),
        "Python": platform.python_version(),
        **stores.versions(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="at most three minutes")
    parser.add_argument("--only", default="", help="measures whose title has these words")
    parser.add_argument("--peers", default="", help="only these, by commas, beside our own")
    parser.add_argument("--result", type=Path, default=RESULTS)
    options = parser.parse_args()
    names = {name for name in options.peers.split(",") if name}

    def chosen(entrant: Entrant) -> bool:
        return not names or entrant.peer in names or entrant.peer in OURS

    rows: list[Row] = []
    with Stores() as stores:
        for measure in MEASURES:
            if options.only in measure.title:
                rows += measured(measure, stores, short=options.short, chosen=chosen)
        write(options.result, rows, machine(stores))
    print(for_terminal(rows))


if __name__ == "__main__":
    main()
