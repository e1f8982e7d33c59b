"""How far, how fast, how long still."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.errors import UsageError
from tsuzuki.model.progress import Progress, ProgressMeter


def test_one_report_tells_no_rate() -> None:
    progress = ProgressMeter().update(5, 10, at_seconds=100.0)
    assert progress == Progress(processed=5, total=10, rate_per_second=0.0, remaining_seconds=None)


def test_a_steady_count_tells_rate_and_remaining_time() -> None:
    meter = ProgressMeter()
    meter.update(0, 100, at_seconds=50.0)
    progress = meter.update(20, 100, at_seconds=54.0)
    assert progress.rate_per_second == 5.0
    assert progress.remaining_seconds == 16.0
    assert progress.ratio == 0.2


def test_only_the_last_seconds_count() -> None:
    meter = ProgressMeter(window_seconds=10.0)
    for second in range(100):
        meter.update(second * 1000, None, at_seconds=float(second))
    for second in range(100, 111):
        progress = meter.update(99_000 + second - 99, None, at_seconds=float(second))
    assert progress.rate_per_second == 1.0


def test_a_stalled_count_has_no_remaining_time() -> None:
    meter = ProgressMeter()
    for second in range(30):
        progress = meter.update(min(second, 5), 10, at_seconds=float(second))
    assert progress.rate_per_second == 0.0
    assert progress.remaining_seconds is None


def test_an_empty_job_is_done() -> None:
    progress = ProgressMeter().update(0, 0, at_seconds=0.0)
    assert progress.remaining_seconds == 0.0
    assert progress.ratio == 1.0


def test_an_unknown_total_tells_a_rate_but_no_end() -> None:
    meter = ProgressMeter()
    meter.update(0, None, at_seconds=0.0)
    progress = meter.update(30, None, at_seconds=3.0)
    assert progress.rate_per_second == 10.0
    assert progress.remaining_seconds is None
    assert progress.ratio is None


def test_counting_anew_starts_the_measure_anew() -> None:
    meter = ProgressMeter()
    meter.update(900, None, at_seconds=0.0)
    assert meter.update(0, None, at_seconds=5.0).rate_per_second == 0.0
    assert meter.update(10, None, at_seconds=6.0).rate_per_second == 10.0


@pytest.mark.parametrize(("processed", "total"), [(11, 10), (1, 0), (-1, None), (-1, 10)])
def test_a_count_outside_its_total_is_refused(processed: int, total: int | None) -> None:
    with pytest.raises(UsageError, match="invalid progress:"):
        ProgressMeter().update(processed, total, at_seconds=0.0)


def test_a_meter_without_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        ProgressMeter(window_seconds=0.0)


def test_memory_stays_bounded_however_often_it_is_told() -> None:
    meter = ProgressMeter(window_seconds=1.0)
    for number in range(20_000):
        meter.update(number, None, at_seconds=number / 1000)
    assert len(meter._samples) <= 60


reports = st.lists(
    st.tuples(st.integers(0, 10**9), st.none() | st.integers(0, 10**9), st.floats(0, 1e6)),
    min_size=1,
)


@given(reports, st.booleans())
def test_no_order_of_reports_gives_a_negative_or_endless_number(
    told: list[tuple[int, int | None, float]], in_order: bool
) -> None:
    meter = ProgressMeter()
    if in_order:
        told = sorted(told, key=lambda report: report[2])
    for processed, total, at_seconds in told:
        done = processed if total is None else min(processed, total)
        progress = meter.update(done, total, at_seconds)
        assert progress.rate_per_second >= 0
        assert progress.remaining_seconds is None or progress.remaining_seconds >= 0
        assert math.isfinite(progress.rate_per_second)
