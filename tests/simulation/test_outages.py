"""Losses in an outage cost no run anything: all processes crash at once, shut down and lose the database, for long.

Longer than the other scenarios, so that the same work is lost again and again.
"""

from collections import Counter

import pytest

from simulation.faults import BOTH, WORKS, Scenario
from simulation.shared_store import shared_store
from simulation.world import simulate

pytestmark = pytest.mark.slow

OUTAGES = Scenario(
    name="outages",
    faults={"disconnect_all": 2, "crash_all": 4, "stop": 1},
    every_seconds=4.0,
    fault_seconds=(70.0,),
    roles=(BOTH, BOTH, WORKS),
    must_cover=(
        "all processes crashed at once",
        "the database was unreachable for all",
        "RUNNING -> FAILED: worker_lost",
        "RUNNING -> FAILED: not_confirmed",
        "ASSIGNED -> ORPHANED: worker_shutdown",
        "a run was lost four times",
    ),
)
SEEDS = (*range(12), 51)
"""The last one loses a run four times."""

ONE_LOSS = {"max_orphans": 1}
"""So that a second loss that counts is paid for."""

PAID_FOR = """
    SELECT lost.id, lost.reason FROM tsuzuki_job_runs AS lost
    LEFT JOIN tsuzuki_job_runs AS retry ON retry.retry_of = lost.id
    WHERE lost.state = 'FAILED'
        AND lost.reason IN ('worker_lost', 'not_confirmed', 'worker_shutdown', 'orphan_limit')
        AND (retry.id IS NULL OR retry.retries_used > lost.retries_used)
"""
"""Losses after which the run was given up, or repeated at the cost of one of its retries."""

LOST_FOUR_TIMES = "SELECT count(*) FROM tsuzuki_job_runs WHERE losses + losses_free >= 4"


@pytest.mark.timeout(300)
def test_an_outage_costs_no_run_a_retry() -> None:
    coverage: Counter[str] = Counter()
    raw = shared_store().raw
    for seed in SEEDS:
        result = simulate(seed, scenario=OUTAGES, settings=ONE_LOSS)
        assert result.violation is None, f"seed {seed}: {result.violation}"
        assert raw.execute(PAID_FOR).fetchall() == [], f"seed {seed}"
        coverage += result.coverage
        coverage["a run was lost four times"] += raw.execute(LOST_FOUR_TIMES).fetchone()[0]
    assert not [what for what in OUTAGES.must_cover if not coverage[what]]
