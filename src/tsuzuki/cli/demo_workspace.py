"""The workspace of `tsuzuki demo`: its files, made once and never changed afterwards.

The record of the ports is written before `tsuzuki.yaml`, which names them: a start that was interrupted between the
two is continued by the next one. A folder with a `tsuzuki.yaml` and no record is not a demo's, and is left alone.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tsuzuki.model.errors import ConfigurationError, Conflict, FileUnusable
from tsuzuki.model.import_string import load

FILE_NAME = "tsuzuki.yaml"
RECORD = Path(".tsuzuki") / "demo.json"
HOURS = 24
EASTERNMOST_HOURS = 14
NIGHTLY = """\
# The nightly report. Its first attempt finds the archive closed, and the retry succeeds.
echo "Report of $TSUZUKI_JOB, run $TSUZUKI_RUN_ID, attempt $TSUZUKI_ATTEMPT"
for part in orders deliveries returns; do
  echo "reading $part"
  sleep 0.4
done
if [ "$TSUZUKI_ATTEMPT" -lt 2 ]; then
  echo "the archive does not answer: connection refused" >&2
  exit 1
fi
echo "3 parts written to the archive"
"""
TEMPLATE = """\
# yaml-language-server: $schema=tsuzuki.schema.json
# The demo of Tsuzuki. All services in it are stand-ins on this machine, started by `tsuzuki demo`.
# Change it as you like: a running demo applies what you save.

version: 1
timezone: UTC

web:
  owner_mode: open              # no sign-in: for a demo only, because every account of this machine has all rights

commits:
  gitlab:
    url: http://127.0.0.1:{gitlab}
    token: ${{SANDBOX_GITLAB_TOKEN:-sandbox-token}}

books:
  base_url: http://127.0.0.1:{books}/books/v1
  api_key: ${{SANDBOX_BOOKS_KEY:-sandbox-key}}
  daily_limit: 8                # calls a day; the search below needs thirteen
  quota_zone: {quota_zone}       # whose day ends soon after the first start, so that you see it go on
  mail:
    host: 127.0.0.1
    port: {mail}
    encryption: none
    from: Tsuzuki <tsuzuki@localhost>
    to: [you@localhost]

feeds:
  private_hosts: [127.0.0.1]
  models:
    default: {{provider: extractive}}   # no model: the first sentences are the summary
  accounts:
    default:
      type: mastodon
      base_url: http://127.0.0.1:{mastodon}
      access_token: ${{SANDBOX_MASTODON_TOKEN:-sandbox-token}}

jobs:
  commits:
    description: Continue the commits of every project
    type: commits
    schedule: {{every: 5m}}

  code-index:
    description: Keep the definitions of a source tree
    type: codeindex
    roots: [{root}]
    schedule: {{every: 10m}}

  news-bot:
    description: Post each new article once
    type: feeds
    schedule: {{every: 1m}}
    feeds:
      town:
        url: http://127.0.0.1:{feeds}/en/feed.xml
        backfill: all
        fetch_every: 30s
        caps: {{per_run: 10, per_hour: 100, per_day: 1000}}
      ministry:
        url: http://127.0.0.1:{feeds}/news.rdf
        language: ja
        backfill: 3
        silent_after: 30d
        hold: true              # each post waits for a person: the page Feeds, or tsuzuki feeds approve

  new-books:
    description: Follow a search, and mail what is new
    type: books
    queries: ["subject:astronomy"]
    max_per_run: 400
    mail_limit: 10
    schedule: {{every: 15m}}

  nightly-report:
    description: A command whose first attempt fails
    command: [sh, nightly.sh]
    schedule: {{daily_at: "02:30"}}
    timeout: 10m
    max_retries: 3
    backoff: {{initial: 3s}}

  greet-visitor:
    description: Waits for the event visitor.came
    command: [sh, -c, 'echo "Welcome: $TSUZUKI_EVENT"']
    on_event: visitor.came
"""


@dataclass(frozen=True, kw_only=True)
class DemoRecord:
    """What the first start wrote down."""

    since: datetime
    ports: Mapping[str, int] | None


class DemoWorkspace:
    """The demo in `folder`, which need not exist yet."""

    def __init__(self, folder: Path, *, now: datetime) -> None:
        self.folder = folder
        self._now = now
        self.file = folder / FILE_NAME
        self.repositories = folder / "gitlab"

    def refuse_if_not_a_demo(self) -> None:
        if self.file.exists() and not (self.folder / RECORD).exists():
            raise Conflict(
                f"{self.folder} is a workspace already, and not one of the demo",
                hint="Nothing was changed. Name another folder: tsuzuki demo FOLDER",
                code="not_a_demo",
            )

    def make_folder(self) -> None:
        """The folder with its repositories; `.gitignore` keeps it out of a repository around it."""
        try:
            (self.folder / RECORD).parent.mkdir(parents=True, exist_ok=True)
            _write_if_missing(self.folder / ".gitignore", "*\n")
            make = load("tsuzuki.sandbox.demo.repositories:make_gitlab_repositories")
            make(self.repositories, now=self.record().since)
        except OSError as problem:
            raise FileUnusable(
                f"the folder {self.folder} cannot be made: {problem.strerror}",
                hint="Name a folder you may write to: tsuzuki demo FOLDER",
                code="folder_unwritable",
            ) from problem

    def record(self) -> DemoRecord:
        """That of the first start; before it, one without ports."""
        file = self.folder / RECORD
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
            return DemoRecord(
                since=datetime.fromisoformat(said["since"]), ports=dict(said["ports"])
            )
        except FileNotFoundError:
            return DemoRecord(since=self._now, ports=None)
        except (ValueError, KeyError, TypeError) as problem:
            raise ConfigurationError(
                f"{file} is not what the demo wrote",
                hint=f"Remove the folder {self.folder}, and start the demo again.",
                code="demo_record",
            ) from problem

    def write(self, ports: Mapping[str, int], *, root: Path) -> None:
        """Write what is missing: the record, the script of a job, the schema, and at last the file."""
        from tsuzuki.wiring.application import file_schema

        since = self.record().since
        record = {"since": since.isoformat(), "ports": dict(ports)}
        _write_if_missing(self.folder / RECORD, json.dumps(record))
        _write_if_missing(self.folder / "nightly.sh", NIGHTLY)
        _write_if_missing(self.folder / "tsuzuki.schema.json", file_schema())
        zone = zone_near_midnight(self._now)
        text = TEMPLATE.format(**ports, root=json.dumps(str(root)), quota_zone=zone)
        _write_if_missing(self.file, text)

    def source_tree(self) -> Path:
        """A small repository of the demo. Not one of the person's: every account of the machine can see the page."""
        project = self.folder / "project"
        load("tsuzuki.sandbox.demo.repositories:make_project")(project, now=self.record().since)
        return project


def require_git() -> None:
    if shutil.which("git") is None:
        raise ConfigurationError(
            "the demo needs the git program, and there is none on the PATH",
            hint="Install git, and start the demo again.",
            code="git_missing",
        )


def zone_near_midnight(now: datetime) -> str:
    """A zone whose day ends at the next full hour."""
    ahead = HOURS - 1 - now.hour
    if ahead > EASTERNMOST_HOURS:
        ahead -= HOURS
    # The signs of these names are those of POSIX: west is positive.
    return "Etc/GMT" if ahead == 0 else f"Etc/GMT{-ahead:+d}"


def _write_if_missing(path: Path, text: str) -> None:
    """Whole or not at all."""
    if not path.exists():
        unfinished = path.with_name(f".{path.name}.tmp")
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
