"""The starter file that `tsuzuki init` writes: one job that runs, and commented examples."""

from pathlib import Path

from tsuzuki.config.yaml.atomic_write import create_file

STARTER = """\
# Tsuzuki: what runs here, and when.
#
# This file is yours. Tsuzuki changes it only when you ask it to, and then only the lines of that
# job. Secrets do not belong in it: write ${NAME}, or ${NAME:-default}, and set the variable.

version: 1

# Where runs are kept. SQLite beside this file is enough for one machine; several machines share a
# PostgreSQL.
# database_url: sqlite:///tsuzuki.db
# database_url: postgresql://tsuzuki:${TSUZUKI_DATABASE_PASSWORD}@localhost/tsuzuki

# Optional: a Redis makes reactions faster. Nothing is lost without it.
# redis_url: ${TSUZUKI_REDIS_URL}

# The time zone of the schedules below, for those that do not name one.
timezone: UTC

# Where old logs go: a folder, or the URL of an object store.
# log_archive: ./.tsuzuki/logs

jobs:
  hello:
    description: Say hello, to see that everything works
    command: [echo, "hello from Tsuzuki"]
    schedule: {every: 10m}

  # A command with more of what a job can say.
  # backup:
  #   description: Copy the database every night
  #   command: [pg_dump, --format=custom, --file=backup.dump]
  #   environment:
  #     PGPASSWORD: ${BACKUP_PASSWORD}   # filled in when the command starts, never stored
  #   cwd: /srv/backup
  #   schedule: {daily_at: "02:30", timezone: Europe/Berlin}
  #   spread: 30s                        # start up to so much later, each job at its own offset
  #   misfire: one                       # after downtime: one (the newest), skip, or all
  #   catchup_window: 1d                 # nothing older than this is made up for
  #   timeout: 2h
  #   max_retries: 3
  #   backoff: {initial: 1m, factor: 2, cap: 1h, jitter: 0.1}

  # A Python function; each run is given the arguments.
  # report:
  #   python: "reports.weekly:send"
  #   arguments: {recipient: team@example.com}
  #   schedule: {weekly: {day: monday, at: "09:00"}}
  #   concurrency_policy: forbid         # while it still runs: forbid, allow or replace
  #   priority: 10                       # from -1000 to 1000, higher goes first
  #   tags: [mail]                       # only workers with all of these tags take it

  # A job that waits for an event instead of a time.
  # invoice:
  #   command: [./make-invoice]
  #   on_event: order.created
  #   max_concurrent: 4
  #   concurrency_key: customer          # runs that share this argument
  #   max_concurrent_per_key: 1          # go one after the other
  #   enabled: false
"""


def write_starter(path: Path) -> None:
    """Write the starter file to `path`. Raises `Conflict` if the file exists."""
    create_file(path, STARTER.encode("utf-8"))
