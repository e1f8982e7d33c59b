"""A filter of runs, stored and read again."""

from dataclasses import replace
from datetime import UTC
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model import jsontext
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason, RunState, Trigger

TIMES = st.none() | st.datetimes(timezones=st.just(UTC))
NAMES = st.frozensets(st.text(min_size=1, max_size=5), max_size=3)


def sets_of(values: Any) -> Any:
    return st.frozensets(st.sampled_from(values), max_size=3)


FILTERS = st.builds(
    RunFilter,
    job_name=st.none() | st.text(max_size=5),
    states=sets_of(list(RunState)),
    excluded_states=sets_of(list(RunState)),
    reason=st.none() | st.sampled_from(list(Reason)),
    reasons=sets_of(list(Reason)),
    excluded_reasons=sets_of(list(Reason)),
    triggers=sets_of(list(Trigger)),
    job_names=NAMES,
    excluded_job_names=NAMES,
    worker_ids=NAMES,
    event_id=st.none() | st.integers(1, 2**60),
    failure_group=st.none() | st.text(max_size=5),
    is_retried=st.none() | st.booleans(),
    created_from=TIMES,
    finished_until=TIMES,
)


@given(FILTERS)
def test_a_filter_comes_back_as_it_was_stored(wanted: RunFilter) -> None:
    stored = jsontext.decode(jsontext.encode(wanted.as_dict()))
    assert RunFilter.from_dict(stored) == wanted


def test_the_page_is_not_part_of_it() -> None:
    wanted = RunFilter(job_name="report")
    assert replace(wanted, before_id=7, limit=3).as_dict() == {"job_name": "report"}


def test_nothing_matches_when_every_state_is_excluded() -> None:
    assert RunFilter(excluded_states=frozenset(RunState)).is_empty
    assert not RunFilter().is_empty
