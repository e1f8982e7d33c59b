"""Settings that can be changed at run time: names, types, bounds and meanings.

`EngineSettings` is one consistent set of values. Some bounds hold between settings: a worker must stop its runs
before the leader fails them as lost, and a leader must stop leading before its lease ends. `checked` refuses a
set that breaks them, so that no setting can break safety.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean

NOTICE_SHARE = 0.75
"""On SQLite: for how much of the grace period a worker's silence must be on record before its runs fail as lost."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: its type (`kind`: int or float), its bounds and its meaning."""

    key: str
    kind: type[int] | type[float]
    default: int | float
    minimum: int | float
    maximum: int | float
    description: str

    def parse(self, value: object) -> int | float:
        """`value` (a number, or its text) as this setting's kind, within its bounds."""
        number = self._number(value)
        if number is None:
            kind = "a whole number" if self.kind is int else "a number"
            raise UsageError(
                f"{self.key} must be {kind} from {self.minimum} to {self.maximum}, not {value!r}",
                hint=f"The default is {self.default}.",
                code="setting_value",
            )
        return number

    def _number(self, value: object) -> int | float | None:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        try:
            number = self.kind(value)
        except (ValueError, OverflowError):
            return None
        if isinstance(value, float) and number != value:
            return None
        return number if self.minimum <= number <= self.maximum else None


def _setting(default: float, minimum: float, maximum: float, description: str) -> Any:
    meta = {"minimum": minimum, "maximum": maximum, "description": description}
    return field(default=default, metadata=meta)


DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """A whole set of settings. The names end in their units."""

    lease_seconds: float = _setting(10.0, 1.0, 600.0, "Leader lease duration without renewal.")
    lease_renew_interval_seconds: float = _setting(
        3.0, 0.1, 300.0, "Interval at which the leader renews its lease."
    )
    lease_margin_seconds: float = _setting(
        2.0,
        0.1,
        300.0,
        "Time before lease expiry at which a leader that cannot renew stops leading.",
    )
    heartbeat_interval_seconds: float = _setting(2.0, 0.1, 300.0, "Worker heartbeat interval.")
    worker_ttl_seconds: float = _setting(
        6.0,
        0.5,
        3600.0,
        "Time without a heartbeat after which a worker is detached and receives no new runs.",
    )
    worker_grace_seconds: float = _setting(
        4.0,
        0.1,
        3600.0,
        "Additional time without a heartbeat after which a worker's runs are considered lost.",
    )
    reassign_after_seconds: float = _setting(
        0.5, 0.1, 3600.0, "Maximum time a run stays assigned to a detached worker."
    )
    continuation_retry_count: int = _setting(
        3,
        1,
        100,
        "Number of confirmation requests a detached worker sends before it stops its runs.",
    )
    continuation_retry_interval_seconds: float = _setting(
        0.3, 0.05, 60.0, "Interval between confirmation requests."
    )
    max_orphans: int = _setting(
        5,
        1,
        1000,
        "Number of orphanings and lost workers of a run before further retries count "
        "against its limit.",
    )
    misfire_grace_seconds: float = _setting(
        60.0, 0.0, 3600.0, "Maximum delay at which a scheduled run still counts as on time."
    )
    poll_interval_seconds: float = _setting(
        1.0, 0.05, 60.0, "Polling interval when no wake-up arrives."
    )
    drain_timeout_seconds: float = _setting(
        30.0, 0.0, 3600.0, "Time a worker waits for its runs when it shuts down."
    )
    kill_grace_seconds: float = _setting(
        5.0, 0.0, 600.0, "Time between SIGTERM and SIGKILL when a command is stopped."
    )
    transaction_seconds_max: float = _setting(
        60.0,
        1.0,
        86_400.0,
        "SQLite: maximum duration of a handler's transaction. A longer one is rolled back and its run fails.",
    )
    log_bytes_max_per_run: int = _setting(
        10_485_760,
        1024,
        1_073_741_824,
        "Maximum log size of a run. Longer logs keep their first and last lines.",
    )
    log_retention_days_db: int = _setting(
        7,
        1,
        3650,
        "Age at which logs move from the database to the archive (PostgreSQL: only if one is configured).",
    )
    run_retention_days: int = _setting(
        0, 0, 36_500, "Age at which finished runs are deleted; 0 keeps them forever."
    )

    def checked(self) -> "EngineSettings":
        """Itself, if its values are valid together. Raises `UsageError` if they are not."""
        rules = [
            (
                self.lease_renew_interval_seconds + self.lease_margin_seconds < self.lease_seconds,
                "lease_renew_interval_seconds + lease_margin_seconds must be less than "
                "lease_seconds, or a leader stops before it can renew",
            ),
            (
                self.heartbeat_interval_seconds * 2 <= self.worker_ttl_seconds,
                "worker_ttl_seconds must be at least twice heartbeat_interval_seconds, or one "
                "lost heartbeat detaches a worker",
            ),
            (
                self.continuation_seconds * 2 < self.worker_grace_seconds,
                "continuation_retry_count x continuation_retry_interval_seconds must be less than half "
                "of worker_grace_seconds, or a run could be failed while its worker still requests "
                "confirmation",
            ),
        ]
        for holds, message in rules:
            if not holds:
                raise UsageError(
                    message,
                    hint="Change the other setting first, or change both in steps that keep the rule.",
                    code="setting_conflict",
                )
        return self

    @property
    def continuation_seconds(self) -> float:
        """How long a worker requests confirmation before it stops its runs."""
        return self.continuation_retry_count * self.continuation_retry_interval_seconds

    @property
    def lost_after_seconds(self) -> float:
        """The silence after which the leader fails a worker's running runs as lost."""
        return self.worker_ttl_seconds + self.worker_grace_seconds

    @property
    def executions_end_after_seconds(self) -> float:
        """The silence after which a worker's commands are ended even if the worker itself is paused: between its
        own deadline and the moment at which the leader fails its runs as lost."""
        return self.worker_ttl_seconds + (self.continuation_seconds + self.worker_grace_seconds) / 2

    @property
    def reading_seconds(self) -> float:
        """On SQLite: how long a worker whose heartbeat waits for the write lock relies on having read that its silence
        is not on record. A heartbeat that still waits then is found to hang `continuation_seconds` later."""
        return self.continuation_seconds / 2

    @property
    def silence_notice_seconds(self) -> float:
        """On SQLite: how long a worker's silence must be on record before its runs fail as lost. A worker has stopped
        them by then: `reading_seconds` + `continuation_seconds` is less, see `checked`."""
        return self.worker_grace_seconds * NOTICE_SHARE

    @property
    def executions_end_after_reading_seconds(self) -> float:
        """On SQLite: how long a worker's commands may continue after it has read that its silence is not on record:
        between its own deadline and the moment at which the leader fails its runs as lost."""
        own = self.reading_seconds + self.continuation_seconds
        return (own + self.silence_notice_seconds) / 2

    def with_values(self, values: Mapping[str, object]) -> "EngineSettings":
        """The same set with some values changed. Unknown keys and bad values are refused."""
        parsed = {key: find_setting(key).parse(value) for key, value in values.items()}
        return EngineSettings(**{**asdict(self), **parsed}).checked()


SETTINGS: dict[str, Setting] = {
    f.name: Setting(
        key=f.name,
        kind=int if f.type in (int, "int") else float,
        default=f.default,
        minimum=f.metadata["minimum"],
        maximum=f.metadata["maximum"],
        description=f.metadata["description"],
    )
    for f in fields(EngineSettings)
    if isinstance(f.default, int | float)
}


def find_setting(key: str) -> Setting:
    """The setting of that name. Raises `NotFound`, with a suggestion if a name is similar."""
    if key not in SETTINGS:
        raise NotFound(
            f"there is no setting {key!r}",
            hint=did_you_mean(key, SETTINGS) + "See: tsuzuki settings ls",
            code="setting_unknown",
        )
    return SETTINGS[key]
