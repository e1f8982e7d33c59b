"""The bad days, by name. A seed's scenario is its place in the round."""

from simulation.fate import BOTH, LEADS, MIXED, WORKS, Scenario
from simulation.party import Weather

ROUGH = Weather(failing=0.03, losing=0.05, slow=0.05)
ACTS = ("submit", "emit", "cancel", "retry")

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        name="crashes",
        hazards={"crash": 2, "crash_at_a_point": 3},
        every_seconds=0.8,
        storm_seconds=MIXED,
        must_reach=(
            "a crash inside RUNNING",
            "a crash while leading",
            "a lease ran out and another took over",
            "ASSIGNED -> ORPHANED: worker_silent",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="pauses",
        hazards={"pause": 1, "pause_at_a_point": 4, "sleep_at_a_point": 2},
        must_reach=(
            "a process was paused",
            "a machine slept",
            "a deposed leader's write was refused",
            "a fenced write was refused",
            "an end was refused",
        ),
    ),
    Scenario(
        name="lost replies",
        hazards={},
        weather=Weather(failing=0.04, losing=0.12),
        storm_seconds=MIXED,
        must_reach=(
            "a request failed",
            "lost reply: born by time",
            "lost reply: born by manual",
            "lost reply: born by event",
            "lost reply: PENDING -> ASSIGNED",
            "lost reply: ASSIGNED -> RUNNING",
        ),
    ),
    Scenario(
        name="cut lines",
        hazards={"cut": 2, "cut_at_a_point": 2, "cut_everybody": 1},
        storm_seconds=MIXED,
        must_reach=(
            "a line was cut",
            "a line was cut silently",
            "nobody reached the database",
            "something arrived late",
            "RUNNING -> FAILED: worker_lost",
            "a lease ran out and another took over",
        ),
    ),
    Scenario(
        name="clock steps",
        hazards={"step_the_database_clock": 2, "step_a_clock": 1, "crash": 1},
        storm_seconds=MIXED,
        must_reach=(
            "a clock stepped forward",
            "a clock stepped back",
            "PENDING -> CANCELED: late",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="operators",
        hazards={"stop": 1, "hesitate": 5},
        every_seconds=1.0,
        weather=Weather(slow=0.1, slowest_seconds=1.5),
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
        must_reach=(
            "PENDING -> CANCELED: operator",
            "RUNNING -> CANCELED: operator",
            "RUNNING -> FAILED: not_confirmed",
            "ASSIGNED -> ORPHANED: worker_shutdown",
            "a process stopped in good order",
            "a term began",
            "an event was emitted twice",
            "an operator was told: run_retried",
            "settings were changed",
        ),
    ),
    Scenario(
        name="everything, leaders and workers apart",
        hazards={
            "crash_at_a_point": 2,
            "pause_at_a_point": 2,
            "sleep_at_a_point": 1,
            "cut_at_a_point": 2,
            "step_the_database_clock": 1,
            "step_a_clock": 1,
            "stop": 1,
        },
        every_seconds=0.6,
        roles=(LEADS, BOTH, WORKS),
        weather=ROUGH,
        acts=(*ACTS, *ACTS, "drain", "detach", "step_down", "change_settings"),
        must_reach=(
            "a process crashed",
            "a process was paused",
            "a machine slept",
            "a line was cut",
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
    """The first so many seeds that are of this scenario."""
    place = [scenario.name for scenario in SCENARIOS].index(name)
    return range(place, place + count * len(SCENARIOS), len(SCENARIOS))
