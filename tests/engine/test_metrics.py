"""The histogram of delays counts as the Prometheus client's own does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from tsuzuki.engine.metrics import BatchHistogram

BUCKETS = (0.005, 0.1, 1, 60)


def samples(registry: CollectorRegistry) -> dict[tuple[str, str], float]:
    return {
        (sample.name, sample.labels.get("le", "")): sample.value
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


@given(st.lists(st.lists(st.sampled_from([0.0, 0.005, 0.05, 0.1, 0.11, 1.0, 59.0, 60.0, 1e6]))))
def test_every_value_is_in_its_bucket_and_in_the_sum(batches: list[list[float]]) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    delays = BatchHistogram("delay_seconds", "How late.", buckets=BUCKETS, registry=ours)
    known = Histogram("delay_seconds", "How late.", buckets=BUCKETS, registry=theirs)
    for batch in batches:
        delays.observe(batch)
        for value in batch:
            known.observe(value)
    assert samples(ours) == pytest.approx(samples(theirs))
    assert samples(ours)["delay_seconds_count", ""] == sum(len(batch) for batch in batches)
