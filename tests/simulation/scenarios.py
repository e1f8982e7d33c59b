"""Scenarios by name. The scenario of a seed is the seed modulo the number of those that need no name."""

from simulation.client import FILE, FaultRates
from simulation.faults import BOTH, LEADS, MIXED, NARROW, TAGGED, WORKS, Scenario
from simulation.jobs import PROGRAM

SOME_LOSS = FaultRates(request_failure=0.03, reply_loss=0.05, slow=0.05)
HOLDS_SECONDS = (0.0, 2.0, 8.0, 12.0)
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
        faults={"step_database_clock": 2, "step_node_clock": 1, "crash": 1, "disconnect": 1},
        fault_seconds=MIXED,
        has_reader=True,
        must_cover=(
            "a clock stepped forward",
            "a clock stepped back",
            "a stream followed a clock back",
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
"""The scenario of a seed, unless another is named."""

NAMED: tuple[Scenario, ...] = (
    Scenario(
        name="suspended machines",
        faults={"suspend_machine": 1},
        every_seconds=1.5,
        roles=(BOTH, WORKS, BOTH),
        machines=(0, 0, 1),
        must_cover=(
            "a machine was suspended",
            "a run was lost while its process was suspended",
            "a lease ran out and another took over",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="deaths that other processes see",
        faults={
            "crash": 3,
            "crash_at_point": 3,
            "pause": 1,
            "look_dead": 2,
            "lose_lock": 2,
            "stop": 1,
        },
        every_seconds=0.6,
        roles=(BOTH, BOTH, WORKS),
        machines=(0, 0, 0),
        shows_deaths=True,
        act_every_seconds=0.6,
        must_cover=(
            "a death was recorded",
            "a live process was missing in the process table",
            "a live process had lost its lock",
            "a command outlived its process",
            "a crash inside RUNNING",
            "a crash while leading",
            "ASSIGNED -> ORPHANED: worker_silent",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="long transactions",
        faults={"crash": 1, "stop": 1, "pause": 1},
        every_seconds=2.0,
        fault_seconds=(12.0,),
        act_every_seconds=0.8,
        holds_seconds=HOLDS_SECONDS,
        must_cover=("a handler held its row", "a locked row was skipped"),
    ),
    Scenario(
        name="long transactions that are canceled",
        faults={},
        fault_seconds=(18.0,),
        acts=("submit", "submit", "cancel", "cancel"),
        act_every_seconds=1.0,
        page_seconds=(1.0, 8.0),
        holds_seconds=HOLDS_SECONDS,
        must_cover=(
            "a locked row was skipped",
            "a cancel was requested",
            "a requested cancel was carried out",
        ),
    ),
    Scenario(
        name="a write lock held for long",
        faults={},
        fault_rates=FILE,
        fault_seconds=(20.0,),
        act_every_seconds=1.5,
        holds_seconds=(0.0, 0.0, 3.0, 9.0, 14.0),
        holds_write_lock=True,
        must_cover=("a handler held the write lock", "a writer waited for the write lock"),
    ),
    Scenario(
        name="changed silence limits",
        faults={"disconnect": 3, "disconnect_at_point": 1},
        every_seconds=2.0,
        fault_seconds=(14.0,),
        acts=("submit", "submit", "change_silence_limits"),
        act_every_seconds=0.8,
        page_seconds=(1.0, 8.0),
        must_cover=("silence limits were changed", "RUNNING -> FAILED: worker_lost"),
    ),
    Scenario(
        name="edited jobs",
        faults={"crash": 1, "pause": 1, "stop": 1},
        every_seconds=1.5,
        fault_seconds=(6.0, 10.0),
        acts=(
            "submit",
            "submit",
            "edit_job",
            "edit_job",
            "switch_job",
            "switch_job",
            "remove_job",
            "add_job_again",
            "rename_job",
        ),
        act_every_seconds=0.5,
        must_cover=(
            "an operator edits a job",
            "an operator disables a job",
            "an operator enables a job",
            "an operator removes a job",
            "an operator adds a job",
            "an operator renames a job",
            "ticks were skipped by a change",
        ),
    ),
    Scenario(
        name="progress reports",
        faults={"pause_at_point": 1, "crash": 1},
        fault_rates=FaultRates(slow=0.3, slowest_seconds=1.0, reply_loss=0.02),
        act_every_seconds=0.4,
        page_seconds=(0.05, 0.1),
        reports_often=True,
        must_cover=("RUNNING -> SUCCEEDED", "a reply was lost"),
    ),
    Scenario(
        name="transactions of a program",
        faults={"crash": 1, "stop": 1},
        fault_rates=FaultRates(slow=0.1, reply_loss=0.02),
        acts=("submit", "roll_back", "roll_back", "define_and_submit"),
        act_every_seconds=0.5,
        must_cover=("a caller rolled back", "an operator got the error: job_unknown"),
    ),
    Scenario(
        name="hours that are counted",
        faults={"step_database_clock_by_hours": 5, "crash": 1},
        every_seconds=1.5,
        fault_seconds=(10.0,),
        act_every_seconds=0.5,
        counts_hours=True,
        must_cover=("a clock stepped back", "a clock stepped forward"),
    ),
    Scenario(
        name="small clock steps",
        faults={"step_clock_a_little": 4, "crash": 1, "pause": 1},
        every_seconds=0.5,
        act_every_seconds=0.5,
        has_reader=True,
        must_cover=(
            "a clock stepped back by less than a second",
            "a clock stepped forward by less than a second",
            "a stream followed a clock back",
            "a stream reader was disconnected",
            "RUNNING -> FAILED: worker_lost",
        ),
    ),
    Scenario(
        name="bulk cancels",
        faults={"pause_leader_after_read": 4, "crash": 1, "stop": 1},
        every_seconds=1.0,
        fault_rates=FaultRates(slow=0.1, slowest_seconds=1.0),
        fault_seconds=(8.0,),
        roles=(BOTH, NARROW),
        acts=("submit", "submit", "submit", "submit", "cancel_waiting", "cancel_everything"),
        act_every_seconds=0.25,
        must_cover=(
            "a bulk cancel covered a PENDING run",
            "a bulk cancel covered a RUNNING run",
            "PENDING -> CANCELED: operator",
            "RUNNING -> CANCELED: operator",
        ),
    ),
    Scenario(
        name="bulk cancels of runs that start",
        faults={"stop": 1},
        every_seconds=2.0,
        fault_rates=FaultRates(slow=0.5, slowest_seconds=0.5),
        fault_seconds=(8.0,),
        roles=(LEADS, WORKS, WORKS),
        acts=("submit", "submit", "submit", "cancel_waiting_once_assigned"),
        act_every_seconds=0.25,
        must_cover=(
            "a bulk cancel covered a PENDING run",
            "ASSIGNED -> CANCELED: operator",
            "a run was started that a bulk cancel had just read",
        ),
    ),
    Scenario(
        name="values at their bounds",
        faults={"pause_at_point": 2, "crash": 1},
        fault_rates=FaultRates(slow=0.1, reply_loss=0.02),
        act_every_seconds=0.6,
        has_bounds=True,
        must_cover=("RUNNING -> SUCCEEDED", "RUNNING -> FAILED: handler_failed"),
    ),
    Scenario(
        name="foreground engines",
        faults={"run_in_foreground": 3, "stop": 1, "crash": 1},
        every_seconds=1.2,
        fault_seconds=(10.0,),
        roles=(BOTH, TAGGED),
        programs=(None, PROGRAM),
        acts=("submit", "submit_tagged", "submit_scripted", "emit"),
        act_every_seconds=0.8,
        must_cover=(
            "an engine ran in the foreground",
            "a foreground engine led",
            "a foreground engine executed a run",
            "a process crashed",
        ),
    ),
)
"""The scenarios that are asked for by name, each with any seed."""


def scenario_of(seed: int) -> Scenario:
    return SCENARIOS[seed % len(SCENARIOS)]


def scenario_named(name: str) -> Scenario:
    return next(scenario for scenario in (*SCENARIOS, *NAMED) if scenario.name == name)


def seeds_of(name: str, count: int, *, first: int = 0) -> range:
    """`count` seeds of this scenario, after the first `first` ones."""
    if any(scenario.name == name for scenario in NAMED):
        return range(first, first + count)
    place = [scenario.name for scenario in SCENARIOS].index(name)
    start = place + first * len(SCENARIOS)
    return range(start, start + count * len(SCENARIOS), len(SCENARIOS))
