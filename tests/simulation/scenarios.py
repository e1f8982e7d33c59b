"""Scenarios by name. The scenario of a seed is the seed modulo their number."""

from simulation.client import FaultRates
from simulation.faults import BOTH, LEADS, MIXED, NARROW, WORKS, Scenario

SOME_LOSS = FaultRates(request_failure=0.03, reply_loss=0.05, slow=0.05)
ACTS = ("submit", "emit", "cancel", "retry")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="crashes",
        faults={"crash": 2, "crash_at_point": 3},
        every_seconds=0.8,
        fault_seconds=MIXED,
        must_cover=(
            "a crash inside RUNNING",
            "a crash while leading",
            "a lease ran out and another took over",
            "ASSIGNED -> ORPHANED: worker_silent",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="pauses",
        faults={"pause": 1, "pause_at_point": 4, "sleep_at_point": 2},
        roles=(NARROW, NARROW),
        act_every_seconds=1.0,
        must_cover=(
            "ends and assignments shared a commit",
            "a process was paused",
            "a machine slept",
            "a deposed leader's write was refused",
            "a fenced write was refused",
            "an end was refused",
        ),
    ),
    Scenario(
        name="lost replies",
        faults={"delay_reply_to_leader": 1},
        fault_rates=FaultRates(request_failure=0.04, reply_loss=0.12),
        fault_seconds=MIXED,
        roles=(NARROW, NARROW),
        act_every_seconds=1.0,
        must_cover=(
            "ends and assignments shared a commit",
            "a request failed",
            "a reply to a leader was slow",
            "lost reply: created by time",
            "lost reply: created by manual",
            "lost reply: created by event",
            "lost reply: PENDING -> ASSIGNED",
            "lost reply: ASSIGNED -> RUNNING",
            "interrupted between two statements",
        ),
    ),
    Scenario(
        name="lost connections",
        faults={"disconnect": 2, "disconnect_at_point": 2, "disconnect_all": 1},
        fault_seconds=MIXED,
        must_cover=(
            "a connection was lost",
            "a connection was lost silently",
            "the database was unreachable for all",
            "a request arrived late",
            "RUNNING -> FAILED: worker_lost",
            "a lease ran out and another took over",
        ),
    ),
    Scenario(
        name="clock steps",
        faults={"step_database_clock": 2, "step_node_clock": 1, "crash": 1},
        fault_seconds=MIXED,
        must_cover=(
            "a clock stepped forward",
            "a clock stepped back",
            "PENDING -> CANCELED: late",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="operators",
        faults={"stop": 1, "pause_leader_after_read": 5},
        every_seconds=1.0,
        fault_rates=FaultRates(slow=0.1, slowest_seconds=1.5),
        acts=(
            *ACTS,
            "submit",
            "cancel",
            "cancel",
            "drain",
            "detach",
            "step_down",
            "change_settings",
        ),
        act_every_seconds=0.4,
        must_cover=(
            "PENDING -> CANCELED: operator",
            "RUNNING -> CANCELED: operator",
            "RUNNING -> FAILED: not_confirmed",
            "ASSIGNED -> ORPHANED: worker_shutdown",
            "a process shut down cleanly",
            "a term began",
            "an event was emitted twice",
            "an operator got the error: run_retried",
            "settings were changed",
        ),
    ),
    Scenario(
        name="all faults, separate leaders and workers",
        faults={
            "crash_at_point": 2,
            "pause_at_point": 2,
            "sleep_at_point": 1,
            "disconnect_at_point": 2,
            "step_database_clock": 1,
            "step_node_clock": 1,
            "stop": 1,
        },
        every_seconds=0.6,
        roles=(LEADS, BOTH, WORKS),
        fault_rates=SOME_LOSS,
        acts=(*ACTS, *ACTS, "drain", "detach", "step_down", "change_settings"),
        must_cover=(
            "a process crashed",
            "a process was paused",
            "a machine slept",
            "a connection was lost",
            "a reply was lost",
            "a request failed",
            "a clock stepped forward",
            "a deposed leader's write was refused",
        ),
    ),
)


def scenario_of(seed: int) -> Scenario:
    return SCENARIOS[seed % len(SCENARIOS)]


def seeds_of(name: str, count: int) -> range:
    """The first `count` seeds of this scenario."""
    place = [scenario.name for scenario in SCENARIOS].index(name)
    return range(place, place + count * len(SCENARIOS), len(SCENARIOS))
