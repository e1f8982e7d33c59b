"""Environment for executing documents: a home with a source tree, the sandbox, and a workspace per document."""

import json
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from support.documents import REPOSITORY, Shell, captured, shell_environment
from support.forked_program import ForkedProgram
from support.waiting import wait_until
from tsuzuki.cli import run_cli

PORTS = {
    "8929": "TSUZUKI_COMMITS_GITLAB_URL",
    "8930": "TSUZUKI_BOOKS_BASE_URL",
    "8932": "SANDBOX_FEED_JAPANESE",
    "8933": "SANDBOX_GEMINI_URL",
    "8934": "SANDBOX_OPENAI_URL",
    "8935": "SANDBOX_MASTODON_URL",
}
"""Ports named in the guides, with the variable that has the actual address."""

START_SECONDS = 120.0
"""Startup timeout of a process on a busy machine."""

FREE_PORTS = [
    word
    for name in ("gitlab", "books", "mail", "feeds", "gemini", "openai", "mastodon")
    for word in (f"--{name}-port", "0")
]
SECRETS = {
    "GEMINI_API_KEY": "SANDBOX_GEMINI_KEY",
    "MASTODON_TOKEN": "SANDBOX_MASTODON_TOKEN",
    "GITLAB_TOKEN": "TSUZUKI_COMMITS_GITLAB_TOKEN",
    "GOOGLE_BOOKS_KEY": "TSUZUKI_BOOKS_API_KEY",
}
OTHER_SECRETS = (
    "ADA_PASSWORD",
    "BEN_PASSWORD",
    "FEED_KEY",
    "FEED_SESSION",
    "HOOK_SECRET",
    "NEW_PASSWORD",
    "SHOP_WEBHOOK_SECRET",
    "SMTP_PASSWORD",
)
TREE = {
    "app.py": "from config import parse_config\n\n\nclass Server:\n    def start(self):\n        parse_config()\n",
    "config.py": "def parse_config():\n    return {}\n\n\nclass BuildJobManager:\n    pass\n",
}


class DocSite:
    """Made once for all documents."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.tree = self.home / "src" / "django"
        self.started_in: Path | None = None
        self.started_at: dict[str, str] = {}
        self._processes: list[ForkedProgram] = []
        _make_tree(self.tree)
        self.variables = self._start_sandbox()
        self.initialised = folder / "initialised"
        with captured(""):
            assert run_cli(["init"], environ=self.environment(), cwd=_made(self.initialised)) == 0

    def environment(self) -> dict[str, str]:
        return shell_environment(self.home)

    def close(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            process.wait(30)

    def shell_for(self, document: Path) -> Shell:
        """A shell in a workspace of the document's own; what needs an engine shares the one of the quickstart."""
        name = document.relative_to(REPOSITORY).as_posix()
        environ = {**self.environment(), **self.variables}
        environ |= {name: self.variables[value] for name, value in SECRETS.items()}
        environ |= dict.fromkeys(OTHER_SECRETS, "a secret of the tests")
        addresses = {
            f"http://127.0.0.1:{port}": "/".join(self.variables[variable].split("/")[:3])
            for port, variable in PORTS.items()
        }
        folder = self.folder / "workspaces" / name.replace("/", "-")
        shell = Shell(cwd=folder, environ=environ, values=addresses, start=self.start)
        PREPARED.get(name, in_new_workspace)(self, shell)
        return shell

    def start(self, words: list[str], shell: Shell) -> None:
        """Start an engine in the folder of a shell; its address takes the place of the one that documents name."""
        heard = shell.cwd / "up.stderr"
        with heard.open("w") as err:
            command = [*words, "--listen", "127.0.0.1:0"]
            self._processes.append(
                ForkedProgram(command, cwd=shell.cwd, env=shell.environ, stderr=err)
            )
        address = re.compile(r"http://127\.0\.0\.1:\d+\b")
        wait_until(
            lambda: bool(address.search(heard.read_text())),
            "the engine serves",
            timeout_seconds=START_SECONDS,
        )
        self.started_at[DOCUMENTED] = address.findall(heard.read_text())[0]
        self.started_in = shell.cwd
        shell.values |= self.started_at

    def _start_sandbox(self) -> dict[str, str]:
        told = self.folder / "sandbox.jsonl"
        with told.open("w") as out:
            self._processes.append(
                ForkedProgram(
                    ["sandbox", *FREE_PORTS, "--output", "jsonl"],
                    cwd=self.folder,
                    env=self.environment(),
                    stdout=out,
                )
            )
        wait_until(
            lambda: "SANDBOX_MASTODON_TOKEN" in told.read_text(),
            "the sandbox is there",
            timeout_seconds=START_SECONDS,
        )
        rows = map(json.loads, told.read_text().splitlines())
        return {row["variable"]: row["value"] for row in rows}


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _make_tree(folder: Path) -> None:
    _made(folder)
    for name, text in TREE.items():
        (folder / name).write_text(text)
    git = ["git", "-c", "user.name=Ann Abe", "-c", "user.email=ann@example.org"]
    for words in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "."],
        ["commit", "--quiet", "--message=Start"],
        ["branch", "release/1.0"],
    ):
        subprocess.run([*git, *words], cwd=folder, check=True)


def in_new_folder(site: DocSite, shell: Shell) -> None:
    _made(shell.cwd)
    shell.has_file_of_its_own = False


def without_a_terminal(site: DocSite, shell: Shell) -> None:
    in_new_folder(site, shell)
    shell.refusals["tsuzuki job add"] = "usage"


def in_new_workspace(site: DocSite, shell: Shell) -> None:
    shutil.copytree(site.initialised, shell.cwd)


def beside_an_engine(site: DocSite, shell: Shell) -> None:
    """In a folder whose `workspace` has an engine, or in that itself."""
    if site.started_in is None:
        in_new_workspace(site, shell)
        site.start(["up"], shell)
    assert site.started_in is not None
    shell.cwd = site.started_in
    shell.values |= site.started_at
    workspace = shell.cwd / "workspace"
    if not workspace.exists():
        workspace.symlink_to(".")
        shell.data("job", "add", "nightly-report", "--", "true")  # the demo's
    shell.has_file_of_its_own = False
    shell.refusals["tsuzuki run cancel 1"] = "run_ended"


def with_feeds(site: DocSite, shell: Shell) -> None:
    in_new_workspace(site, shell)
    gemini = site.variables["SANDBOX_GEMINI_URL"]
    shell.values |= {
        "https://www.example.org/feed.xml": site.variables["SANDBOX_FEED_ENGLISH"],
        "https://www.example.org/press.rdf": site.variables["SANDBOX_FEED_JAPANESE"],
        "https://mastodon.example": site.variables["SANDBOX_MASTODON_URL"],
        "hold: true": "hold: true\n        backfill: all",
        "{provider: gemini,": f"{{provider: gemini, base_url: {gemini},",
        "feeds:\n  accounts:": "feeds:\n  private_hosts: [127.0.0.1]\n  accounts:",
        "feeds:\n  models:": "feeds:\n  private_hosts: [127.0.0.1]\n  models:",
    }

    held = ("feeds", "items", "--waiting", "approval")
    shell.lookups[" 12"] = lambda at: f" {at.data(*held)[0]['id']}"
    shell.refusals |= {
        "tsuzuki feeds approve 12 --was-sent": "post_settled",
        "tsuzuki feeds approve 12 --send-again": "post_settled",
        "tsuzuki feeds requeue 12": "item_waits",
    }


def in_a_repository(site: DocSite, shell: Shell) -> None:
    """A workspace in a Git repository with two branches, with the GitLab demo."""
    shutil.copytree(site.tree, shell.cwd)
    shutil.copytree(site.initialised, shell.cwd, dirs_exist_ok=True)
    shell.values |= {
        "https://example.com/group/project.git": f"file://{site.tree}",
        "group/project": "demo/harbour",
    }
    shell.lookups["550e8400"] = lambda at: str(at.data("commits", "runs")[0]["collection_id"])
    shell.refusals |= {
        "tsuzuki commits retry": "nothing_failed",
        "tsuzuki commits cancel": "not_running",
        "tsuzuki commits watch": "not_found",
    }


def with_backups(site: DocSite, shell: Shell) -> None:
    in_new_workspace(site, shell)
    backup = _made(site.folder / "backups") / "tsuzuki.db"
    shell.values |= {
        "/srv/backups/tsuzuki-$(date +%F).db": str(backup),
        "/srv/backups/tsuzuki-2026-11-17.db": str(backup),
    }


def with_a_mail_not_settled(site: DocSite, shell: Shell) -> None:
    """A collection of books whose mail is not known to have arrived."""
    in_new_workspace(site, shell)
    job = "consultant-books: {type: books, queries: [python], max_per_run: 40}"
    (shell.cwd / "tsuzuki.yaml").write_text(f"version: 1\njobs:\n  {job}\n")
    shell.data("books", "collect", "consultant-books")
    with closing(sqlite3.connect(shell.cwd / "tsuzuki.db")) as connection, connection:
        connection.execute("UPDATE tsuzuki_book_mails SET state = 'unsettled'")
    shell.values |= {"--mark-sent 3": "--mark-sent 1", "--resend 3": "--resend 1"}
    shell.refusals["tsuzuki books mail --resend 3"] = "mail_settled"


def in_the_tree(site: DocSite, shell: Shell) -> None:
    shell.cwd = site.tree


def with_example(site: DocSite, shell: Shell) -> None:
    shutil.copytree(REPOSITORY / "examples", shell.cwd / "examples")
    for file in (shell.cwd / "examples").rglob("*.yaml"):
        file.write_text(shell.filled_in(file.read_text("utf-8")), "utf-8")


DOCUMENTED = "http://127.0.0.1:8420"
PREPARED: dict[str, Callable[[DocSite, Shell], None]] = {
    "docs/quickstart.md": in_new_folder,
    "README.md": beside_an_engine,
    "docs/guide/first-steps.md": without_a_terminal,
    "docs/guide/api.md": beside_an_engine,
    "docs/guide/stream.md": beside_an_engine,
    "docs/guide/feeds.md": with_feeds,
    "docs/guide/commits.md": in_a_repository,
    "docs/guide/codeindex.md": in_the_tree,
    "docs/ops/operations.md": with_backups,
    "docs/ops/collect.ja.md": with_a_mail_not_settled,
    "docs/ops/collect.md": with_a_mail_not_settled,
    "examples/press-releases/README.md": with_example,
}
"""Preparation of each document before its first block (default: a new workspace)."""
