"""The options that define a job, translated into changes of its keys in the file.

A shortcut also removes what contradicts it: `--daily-at` replaces `every` and keeps the time zone; `--python`
replaces `command`. `--set` and `--unset` are literal.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import click

from tsuzuki.cli.completions import job_kinds, zone_names
from tsuzuki.model.errors import UsageError
from tsuzuki.model.isolation import Isolation
from tsuzuki.model.schedule import TRIGGER_KEYS, parse_schedule

KeyPath: TypeAlias = tuple[str, ...]
Function = TypeVar("Function", bound=Callable[..., Any])

WHAT_KEYS = ("command", "python", "type")


@dataclass(frozen=True, kw_only=True)
class JobChanges:
    """Values to set, in the order in which they are best read, and keys to take out before."""

    values: Mapping[KeyPath, Any] = field(default_factory=dict)
    removals: Sequence[KeyPath] = ()

    @property
    def are_none(self) -> bool:
        return not (self.values or self.removals)

    @property
    def say_what_to_run(self) -> bool:
        return any(path[0] in WHAT_KEYS for path in self.values)


def assignment(text: str) -> tuple[str, str]:
    """KEY=VALUE; the value may hold anything, further equal signs too."""
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise UsageError(f"{text!r} is not KEY=VALUE", hint="Write the name, '=' and the value.")
    return key, value


def dotted_key(text: str) -> KeyPath:
    """A key of a job, or `backoff.initial` for one further in."""
    path = tuple(text.split("."))
    if not all(path):
        raise UsageError(f"invalid key {text!r}", hint="For example: timeout, or backoff.initial")
    return path


class KindOption(click.Option):
    """Lists the kinds of the installed collectors in the help, and looks them up only there."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from tsuzuki.wiring.collectors import collector_records

        names, text = super().get_help_record(ctx) or ("", "")
        return names, f"{text}: {', '.join(sorted(collector_records().usable))}."


_OPTIONS = (
    click.option("--description", metavar="TEXT", help="Description of the job."),
    click.option(
        "--command", metavar="TEXT", help="Command to run, split into words without a shell."
    ),
    click.option("--python", metavar="MODULE:FUNCTION", help="Python function to call."),
    click.option(
        "--type",
        "kind",
        cls=KindOption,
        metavar="KIND",
        help="Job type, instead of a command",
        shell_complete=job_kinds,
    ),
    click.option(
        "--env",
        "environment",
        type=assignment,
        metavar="KEY=VALUE",
        multiple=True,
        help="Environment variable for the command.",
    ),
    click.option(
        "--schedule", metavar="TEXT", help='Schedule in words: "every 10m", "daily at 07:00".'
    ),
    click.option("--every", metavar="INTERVAL", help="Interval: 30s, 10m, 1h30m, 1d."),
    click.option("--daily-at", metavar="HH:MM", help="Time of day."),
    click.option("--cron", metavar="EXPRESSION", help='Cron expression: "*/5 * * * *".'),
    click.option(
        "--timezone",
        metavar="ZONE",
        help="Time zone of the schedule.",
        shell_complete=zone_names,
    ),
    click.option("--on-event", metavar="TYPE", help="Start the job on each event of this type."),
    click.option("--timeout", metavar="DURATION", help="Stop runs that take longer: 30s, 10m."),
    click.option(
        "--isolation",
        type=click.Choice([*Isolation]),
        help="Run the Python function in a killable process, or in a thread.",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="With --isolation process: fail runs that use more memory: 512M, 2G.",
    ),
    click.option("--max-retries", type=int, help="Number of retries after a failure."),
    click.option("--priority", type=int, help="Priority from -1000 to 1000; higher runs first."),
    click.option(
        "--tag", "tags", metavar="TAG", multiple=True, help="Run only on workers with this tag."
    ),
    click.option(
        "--enabled/--disabled", default=None, show_default=False, help="Enable or disable the job."
    ),
    click.option(
        "--set",
        "assignments",
        type=assignment,
        metavar="KEY=VALUE",
        multiple=True,
        help="Set any key of the file to a YAML value: --set backoff.initial=5s.",
    ),
)


def job_options(function: Function) -> Function:
    """Everything that can be said about a job, and behind it the command word by word."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")(
        function
    )


def changes_of(said: Mapping[str, Any], *, unset: tuple[KeyPath, ...] = ()) -> JobChanges:
    """What the options of `job_options` ask for. Raises `UsageError` if they contradict."""
    values: dict[KeyPath, Any] = {}
    removals = [*unset]
    if said["description"] is not None:
        values["description",] = said["description"]
    for part in (_what_to_run(said), _when(said)):
        values |= part.values
        removals += part.removals
    values |= {(key,): value for key, value in _rules(said)}
    values |= {dotted_key(key): _value(key, text) for key, text in said["assignments"]}
    return JobChanges(values=values, removals=removals)


def _what_to_run(said: Mapping[str, Any]) -> JobChanges:
    commands = [given for given in (said["command"], list(said["argv"])) if given]
    if len(commands) + bool(said["python"]) > 1:
        raise UsageError(
            "more than one command given",
            hint="Use only one of --command, --python, and -- with the command at the end.",
        )
    if len(said["argv"]) == 1:
        _refuse_one_word(said["argv"][0])
    given = {
        "type": said["kind"],
        "command": commands[0] if commands else None,
        "python": said["python"],
    }
    values: dict[KeyPath, Any] = {(key,): value for key, value in given.items() if value}
    removals = [(key,) for key in WHAT_KEYS if values and (key,) not in values]
    values |= {("environment", name): value for name, value in said["environment"]}
    return JobChanges(values=values, removals=removals)


def _refuse_one_word(word: str) -> None:
    """A command in quotes would be the name of one program, with blanks in it."""
    # Path.exists raises for a name that is too long, and a long command in quotes is one.
    if len(word.split()) > 1 and not os.path.exists(word):  # noqa: PTH110
        raise UsageError(
            f"{word!r} would be taken as the name of a program with spaces in it",
            hint=f"Remove the quotes: -- {word}",
        )


def _when(said: Mapping[str, Any]) -> JobChanges:
    readers: Mapping[str, Callable[[str], dict[str, Any]]] = {
        "schedule": _trigger_in,
        "every": lambda interval: {"every": _seconds_or_text(interval)},
        "daily_at": lambda time: {"daily_at": time},
        "cron": lambda expression: {"cron": expression},
    }
    given = [read(said[key]) for key, read in readers.items() if said[key] is not None]
    if len(given) > 1:
        raise UsageError(
            "more than one schedule given",
            hint="Use only one of --schedule, --every, --daily-at and --cron.",
        )
    values: dict[KeyPath, Any] = {
        ("schedule", key): value for trigger in given for key, value in trigger.items()
    }
    removals = [("schedule", key) for key in TRIGGER_KEYS if given]
    if said["timezone"] is not None:
        values["schedule", "timezone"] = said["timezone"]
    return JobChanges(values=values, removals=removals)


def _trigger_in(phrase: str) -> dict[str, Any]:
    """What a phrase says about when, as it is written in the file; the zone is another matter."""
    mapping = parse_schedule(phrase).as_mapping()
    return {key: value for key, value in mapping.items() if key != "timezone"}


def _rules(said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if said["isolation"] is not None:
        yield "isolation", str(said["isolation"])
    for key in ("memory", "on_event", "max_retries", "priority", "enabled"):
        if said[key] is not None:
            yield key, said[key]
    if said["timeout"] is not None:
        yield "timeout", _seconds_or_text(said["timeout"])
    if said["tags"]:
        yield "tags", list(said["tags"])


def _seconds_or_text(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _value(key: str, text: str) -> Any:
    from tsuzuki.services.jobs import parse_key_value

    return parse_key_value(key, text)
