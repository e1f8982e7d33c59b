"""What a row of the list of jobs shows of its runs: a strip of marks, and counts by state. A list has hundreds of them,
so they are made here, and not by a macro for each."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from tsuzuki.model.states import Outcome, RunState
from tsuzuki.web.pages.formats import run_label
from tsuzuki.web.pages.job_views import JobPastOut
from tsuzuki.web.pages.words import OUTCOMES, STATES, Word

MARKS_MAX = 20
STEP, HEIGHT, LOW = 6, 20, 4

LIVE_TOGETHER = tuple(
    (states, STATES[states[0]])
    for states in ((RunState.PENDING, RunState.ASSIGNED, RunState.ORPHANED), (RunState.RUNNING,))
)
"""Live states that are counted together, under the word of the first one."""

ENDED_TOGETHER = tuple(
    (outcomes, OUTCOMES[outcomes[0]])
    for outcomes in (
        (Outcome.SUCCEEDED,),
        (Outcome.FAILED, Outcome.TIMED_OUT),
        (Outcome.SKIPPED,),
        (Outcome.CANCELED,),
    )
)
"""Outcomes that are counted together, under the word of the first one."""


class StateCount(NamedTuple):
    """`query` goes on after the job in the address of these runs."""

    word: Word
    runs: int
    query: str


def state_counts(past: JobPastOut, window: str) -> list[StateCount]:
    """Of the groups that have a run. Those that are live are counted from all times."""
    found = []
    for states, word in LIVE_TOGETHER:
        if runs := sum(past.live.get(state, 0) for state in states):
            query = "".join(f"&state={state.value}" for state in states)
            found.append(StateCount(word, runs, f"{query}&window=all"))
    for outcomes, word in ENDED_TOGETHER:
        if runs := sum(past.ended.get(outcome, 0) for outcome in outcomes):
            query = "".join(f"&outcome={outcome.value}" for outcome in outcomes)
            found.append(StateCount(word, runs, f"{query}&window={window}"))
    return found


@pass_context
def run_marks(context: Context, past: JobPastOut) -> list[dict[str, Any]]:
    """The newest runs as marks, oldest first; the height is how long each took beside the longest."""
    longest = past.longest_seconds
    return [
        {
            "label": run_label(context, run),
            "href": f"/runs/{run.id}",
            "tone": STATES[run.state].tone,
            "part": (run.seconds or 0) / longest if longest else 0,
        }
        for run in past.recent[-MARKS_MAX:]
    ]


def strip_marks(marks: Iterable[Mapping[str, Any]]) -> Markup:
    """As SVG; `part` is from 0 to 1."""
    drawn = "".join([_mark(place, mark) for place, mark in enumerate(marks)])
    return Markup(drawn)  # noqa: S704 - numbers, and texts that are escaped


def _mark(place: int, mark: Mapping[str, Any]) -> str:
    label = escape(mark["label"])
    height = LOW + (HEIGHT - LOW) * min(max(mark["part"], 0), 1)
    return (
        f'<a href="{escape(mark["href"])}" aria-label="{label}"><title>{label}</title>'
        f'<rect class="fill-{escape(mark["tone"])}" x="{place * STEP}" y="{HEIGHT - height:.1f}"'
        f' width="4.500" height="{height:.1f}" rx="1"/></a>'
    )


CELL_FILTERS: dict[str, Callable[..., Any]] = {
    "run_marks": run_marks,
    "strip_marks": strip_marks,
    "state_counts": state_counts,
}
