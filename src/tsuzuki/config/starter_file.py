"""The files that `tsuzuki init` writes: one job that runs with commented examples, the variables that may hold
secrets, and the schema for editors. None of them replaces a file that is there."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tsuzuki.config.schema.job_kinds import JobKind
from tsuzuki.config.schema.json_schema import json_schema
from tsuzuki.config.yaml.atomic_write import create_file
from tsuzuki.model.errors import Conflict

SCHEMA_NAME = "tsuzuki.schema.json"
VARIABLES_NAME = ".env.example"

STARTER = """\
# yaml-language-server: $schema=tsuzuki.schema.json
# The jobs of this Tsuzuki workspace.
#
# You own this file. Tsuzuki edits it only when you change a job with a command or on the web
# page, and then only the lines of that job. Keep secrets out of it: write ${NAME} or
# ${NAME:-default}, and set the environment variable.

version: 1

# The database. SQLite next to this file is enough for one machine; several machines share a
# PostgreSQL database.
# database_url: sqlite:///tsuzuki.db
# database_url: postgresql://tsuzuki:${TSUZUKI_DATABASE_PASSWORD}@localhost/tsuzuki

# Optional: Redis makes reactions faster. Nothing is lost without it.
# redis_url: ${TSUZUKI_REDIS_URL}

# Default time zone of the schedules below.
timezone: UTC

# Archive for old logs: a folder, or the URL of an object store.
# log_archive: ./.tsuzuki/logs

# Contact address sent with requests to other servers, so that their owners can reach you.
# contact: me@example.org

{sections}jobs:
  hello:
    description: Say hello to check that everything works
    command: [echo, "hello from Tsuzuki"]
    schedule: {every: 10m}

  # A command with more options.
  # backup:
  #   description: Copy the database every night
  #   command: [pg_dump, --format=custom, --file=backup.dump]
  #   environment:
  #     PGPASSWORD: ${BACKUP_PASSWORD}   # expanded when the command starts, never stored
  #   cwd: /srv/backup
  #   schedule: {daily_at: "02:30", timezone: Europe/Berlin}
  #   spread: 30s                        # delay the start by up to 30s, each job by its own offset
  #   misfire: one                       # after downtime: one (the newest), skip, or all
  #   catchup_window: 1d                 # skip missed runs older than this
  #   timeout: 2h
  #   max_retries: 3
  #   backoff: {initial: 1m, factor: 2, cap: 1h, jitter: 0.1}

  # A Python function, called with these arguments.
  # report:
  #   python: "reports.weekly:send"
  #   arguments: {recipient: team@example.com}
  #   schedule: {weekly: {day: monday, at: "09:00"}}
  #   concurrency_policy: forbid         # while a run is in progress: forbid, allow or replace
  #   priority: 10                       # from -1000 to 1000, higher runs first
  #   tags: [mail]                       # run only on workers with all of these tags

  # A job that is started by an event instead of a schedule.
  # invoice:
  #   command: [./make-invoice]
  #   on_event: order.created
  #   max_concurrent: 4
  #   concurrency_key: customer          # runs with the same value of this argument
  #   max_concurrent_per_key: 1          # run one after the other
  #   enabled: false
"""


VARIABLES = """\
# Variables that Tsuzuki reads. Copy this file to .env, fill in what you use, and keep .env out of git.
# Tsuzuki does not read .env automatically:
#   in a shell:  set -a; . ./.env; set +a; tsuzuki up
#   systemd:     EnvironmentFile=/path/to/.env
#   Docker:      --env-file .env
# With _FILE at the end of its name, a variable names a file that contains the value.

# The database, instead of the one next to tsuzuki.yaml.
#TSUZUKI_DATABASE_URL=postgresql://tsuzuki:password@localhost/tsuzuki

# Redis makes reactions faster. Nothing is lost without it.
#TSUZUKI_REDIS_URL=redis://localhost:6379/0
"""


def write_starter(path: Path, *, kinds: Mapping[str, JobKind]) -> list[Path]:
    """Write the starter file to `path`, and beside it what is missing of the others. Returns what was written. Raises
    `Conflict` if the starter file exists."""
    create_file(path, starter_text(kinds).encode("utf-8"))
    beside = {
        path.with_name(SCHEMA_NAME): schema_text(kinds),
        path.with_name(VARIABLES_NAME): _variables(kinds),
    }
    written = [path]
    for file, text in beside.items():
        with suppress(Conflict):
            create_file(file, text.encode("utf-8"))
            written.append(file)
    return written


def starter_text(kinds: Mapping[str, JobKind]) -> str:
    """`tsuzuki.yaml` as it is written at first. What kinds of job add to it is commented out."""
    sections = [_commented(kind.starter_section, indent="") for kind in kinds.values()]
    jobs = [_commented(kind.starter_job, indent="  ") for kind in kinds.values()]
    text = STARTER.replace("{sections}", "".join(f"{one}\n" for one in sections if one))
    return text + "".join(f"\n{one}" for one in jobs if one)


def _commented(text: str, *, indent: str) -> str:
    return "".join(f"{indent}# {line}".rstrip() + "\n" for line in text.splitlines())


def _variables(kinds: Mapping[str, JobKind]) -> str:
    sections = [
        f"\n# type: {kind.name}{kind.starter_variables}"
        for kind in kinds.values()
        if kind.starter_variables
    ]
    return "".join((VARIABLES, *sections))


def schema_text(kinds: Mapping[str, JobKind]) -> str:
    return json.dumps(json_schema(kinds), indent=1, ensure_ascii=False) + "\n"
