"""What a stream can be asked for: `runs`, `job:NAME`, `run:ID`, `created`, `progress`, `logs:RUN`, `logs:RUN:LINE`,
`workers`, and the topics of collectors.

Topics of one source are one selection from it, so that no change is told twice to one stream.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from tsuzuki.model.access import AnyRight, Right
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services.changes import RunChange
from tsuzuki.web.problems import InvalidRequest, PartProblem
from tsuzuki.web.security.bodies import INTEGER_MAX
from tsuzuki.web.stream.state_topic import collector_topics

TOPICS_MAX = 20
LINE_MAX = 2**31 - 1
FORMS = "runs, job:NAME, run:ID, created, progress, logs:RUN, logs:RUN:LINE, workers"


class StreamEventKind(StrEnum):
    """What an event is about; also its name."""

    RUNS = "runs"
    CREATED = "created"
    PROGRESS = "progress"
    LOGS = "logs"
    WORKERS = "workers"


RIGHTS = {
    StreamEventKind.RUNS: Right.RUNS_READ,
    StreamEventKind.CREATED: Right.RUNS_READ,
    StreamEventKind.PROGRESS: Right.RUNS_READ,
    StreamEventKind.LOGS: Right.RUNS_READ,
    StreamEventKind.WORKERS: Right.WORKERS_READ,
}
STATES = (StreamEventKind.CREATED, StreamEventKind.PROGRESS, StreamEventKind.WORKERS)
"""What is told as a state, and has nothing to select from."""


def forms() -> str:
    """Every form of a topic, for people."""
    return ", ".join((FORMS, *collector_topics()))


def right_of(kind: str) -> AnyRight:
    """The right that a topic of this kind needs."""
    return RIGHTS[StreamEventKind(kind)] if kind in RIGHTS else collector_topics()[kind].right


def _states() -> tuple[str, ...]:
    return (*STATES, *collector_topics())


@dataclass(frozen=True, kw_only=True)
class StreamSelection:
    """What of one source a stream gets. `run_id` is that of a log; `jobs` and `runs` narrow the changes of runs, and
    None of both is everything."""

    kind: str
    run_id: int | None = None
    jobs: frozenset[str] | None = None
    runs: frozenset[int] | None = None

    @property
    def source(self) -> str:
        """The name of the source: in ids of events, and of what is read once for all streams."""
        return str(self.kind) if self.run_id is None else f"{self.kind}:{self.run_id}"

    def changes(self, found: Sequence[RunChange]) -> Sequence[RunChange]:
        """Those of the changes that are wanted."""
        jobs, runs = self.jobs, self.runs
        if jobs is None or runs is None:
            return found
        return [
            change
            for change in found
            if change.job_name in jobs or change.transition.run_id in runs
        ]


@dataclass(frozen=True, kw_only=True)
class Topics:
    """What one stream is asked for, in an order that is the same for all who ask for the same."""

    selections: tuple[StreamSelection, ...]
    first_lines: tuple[tuple[str, str], ...] = ()
    """For a log whose position is not known: the line after which to start."""

    @property
    def rights(self) -> frozenset[AnyRight]:
        return frozenset(right_of(selection.kind) for selection in self.selections)

    @property
    def jobs(self) -> frozenset[str]:
        return frozenset(name for selection in self.selections for name in selection.jobs or ())

    @property
    def runs(self) -> frozenset[int]:
        named = [selection.runs or () for selection in self.selections]
        logs = [selection.run_id for selection in self.selections if selection.run_id is not None]
        return frozenset([*logs, *(run_id for ids in named for run_id in ids)])


def parse_topics(text: str) -> Topics:
    """Raises `InvalidRequest` for what is no topic."""
    asked = [part.strip() for part in text.split(",") if part.strip()]
    if not asked or len(asked) > TOPICS_MAX:
        _refuse(f"give 1 to {TOPICS_MAX} topics", f"Known topics: {forms()}.")
    plain = {part for part in asked if part in (StreamEventKind.RUNS, *_states())}
    jobs: set[str] = set()
    runs: set[int] = set()
    logs: dict[int, int | None] = {}
    for part in asked:
        noun, colon, rest = part.partition(":")
        if noun == "job" and rest:
            jobs.add(rest)
        elif noun == "run":
            runs.add(_number(part, rest))
        elif noun == "logs" and colon:
            run_text, second, line = rest.partition(":")
            first = _number(part, line, minimum=0, maximum=LINE_MAX) if second else None
            logs[_number(part, run_text)] = first
        elif part not in plain:
            _refuse_unknown(part)
    return Topics(
        selections=tuple(_selections(plain, jobs, runs, logs)),
        first_lines=tuple(
            (f"{StreamEventKind.LOGS.value}:{run_id}", str(line))
            for run_id, line in sorted(logs.items())
            if line is not None
        ),
    )


def _selections(
    plain: set[str], jobs: set[str], runs: set[int], logs: Iterable[int]
) -> Iterable[StreamSelection]:
    if StreamEventKind.RUNS in plain:
        yield StreamSelection(kind=StreamEventKind.RUNS)
    elif jobs or runs:
        yield StreamSelection(kind=StreamEventKind.RUNS, jobs=frozenset(jobs), runs=frozenset(runs))
    for kind in _states():
        if kind in plain:
            yield StreamSelection(kind=kind)
    for run_id in sorted(logs):
        yield StreamSelection(kind=StreamEventKind.LOGS, run_id=run_id)


def _number(topic: str, text: str, *, minimum: int = 1, maximum: int = INTEGER_MAX) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) <= 19
    if not is_number or not minimum <= int(text) <= maximum:
        _refuse(f"{topic!r} has no run number", "For example: run:42, logs:42, logs:42:100.")
    return int(text)


def _refuse_unknown(topic: str) -> NoReturn:
    noun, _, rest = topic.partition(":")
    known = [*(kind.value for kind in StreamEventKind), *collector_topics(), "job", "run"]
    suggestion = did_you_mean(noun, known) if noun not in known else ""
    if noun == "job" and not rest:
        suggestion = "Add the job: job:NAME. "
    _refuse(f"unknown topic {topic!r}", f"{suggestion}Known topics: {forms()}.")


def _refuse(message: str, hint: str) -> NoReturn:
    problem = PartProblem(where="query.topics", message=message, code="topic_unknown", hint=hint)
    raise InvalidRequest([problem])
