"""What a row of the list of jobs shows of its runs."""

from tsuzuki.model.states import Outcome, RunState
from tsuzuki.web.pages.job_cells import state_counts, strip_marks
from tsuzuki.web.pages.job_views import JobPastOut
from tsuzuki.web.pages.rendering import environment


def past(live: dict[RunState, int], ended: dict[Outcome, int]) -> JobPastOut:
    return JobPastOut(
        recent=[],
        longest_seconds=0,
        live=live,
        ended=ended,
        duration_runs=0,
        p50_seconds=None,
        p95_seconds=None,
        cadence=None,
    )


def test_a_mark_is_as_high_as_its_part_and_its_texts_are_escaped() -> None:
    marks = [
        {"label": '"<b>', "href": "/runs/1?a&b", "tone": "good", "part": 2},
        {"label": "x", "href": "/", "tone": "bad", "part": -1},
    ]
    assert strip_marks(marks) == (
        '<a href="/runs/1?a&amp;b" aria-label="&#34;&lt;b&gt;"><title>&#34;&lt;b&gt;</title>'
        '<rect class="fill-good" x="0" y="0.0" width="4.500" height="20.0" rx="1"/></a>'
        '<a href="/" aria-label="x"><title>x</title>'
        '<rect class="fill-bad" x="6" y="16.0" width="4.500" height="4.0" rx="1"/></a>'
    )


def test_states_are_counted_in_groups_and_live_ones_from_all_times() -> None:
    counted = state_counts(
        past({RunState.ORPHANED: 1}, {Outcome.FAILED: 2, Outcome.TIMED_OUT: 3}), "24h"
    )
    assert [(count.word.icon, count.runs, count.query) for count in counted] == [
        ("pending", 1, "&state=PENDING&state=ASSIGNED&state=ORPHANED&window=all"),
        ("failed", 5, "&outcome=failed&outcome=timed_out&window=24h"),
    ]
    assert state_counts(past({}, {Outcome.CANCELED: 0}), "7d") == []


def test_words_are_translated_and_their_values_escaped() -> None:
    rendered = environment("ja").from_string('{{ _("Select run %(id)s", id=it) }}{{ _("Run") }}')
    assert rendered.render(it="<b>") == "実行 &lt;b&gt; を選択実行"
