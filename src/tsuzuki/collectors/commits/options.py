"""The section of the commits collector, and the options of its jobs."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from tsuzuki.config import Expects, JobKind, SectionReader
from tsuzuki.config.schema.field_types import PositiveSeconds, Seconds, Text
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.job_question import JobQuestion

DAY_SECONDS = 86_400.0


class GitLabSection(StrictModel):
    """Where the GitLab is, and how to be let in."""

    url: Annotated[str, Expects("the address of a GitLab, such as https://gitlab.example.com")] = (
        "https://gitlab.com"
    )
    """The address of the GitLab."""
    token: Annotated[SecretStr, Expects("a token, written as ${NAME}")] | None = None
    """An access token that may read the API and the repositories."""


class CommitsSection(StrictModel):
    """`commits:` in the file. Every key is also `TSUZUKI_COMMITS_…` in the environment."""

    gitlab: GitLabSection = Field(default_factory=GitLabSection)
    """The GitLab whose projects are followed."""
    mirrors: Annotated[str, Expects("a folder")] = ".tsuzuki/mirrors"
    """Where mirrors of git URLs are kept, relative to the workspace."""
    people: Annotated[str, Expects("a file, relative to the workspace")] | None = None
    """The file of people, teams and bots."""
    concurrency_per_host: Annotated[int, Expects("a whole number from 1 to 64")] = Field(
        default=4, ge=1, le=64
    )
    """How many targets of one host at once."""
    page_commits: Annotated[int, Expects("a whole number from 1 to 100000")] = Field(
        default=5_000, ge=1, le=100_000
    )
    """How many commits of a git repository are stored at once."""
    request_timeout: PositiveSeconds = 30.0
    """How long a server may take to answer."""
    git_timeout: PositiveSeconds = 600.0
    """How long a git process may be without output."""
    fetch_timeout: PositiveSeconds = 3600.0
    """How long a fetch into a mirror may take."""
    rate_limit_patience: Seconds = 3600.0
    """How long a target waits in total for a host that limits its rate."""
    overlap: Seconds = 30 * DAY_SECONDS
    """How far back to collect when the former head is unknown."""
    tries: Annotated[int, Expects("a whole number from 1 to 20")] = Field(default=3, ge=1, le=20)
    """Attempts in a row at a target without a page in between."""


class CommitsOptions(StrictModel):
    """The keys of a job of this kind. Without `projects` it continues every target."""

    projects: Annotated[list[Text], Expects("a list of projects")] = Field(default_factory=list)
    """Only these projects; without it every target is continued."""


def _check_files(read_section: SectionReader, workspace: Path) -> None:
    from tsuzuki.collectors.commits.people.people_file import read_people  # noqa: PLC0415 -- only this check needs it

    people = getattr(read_section(only=("people",)), "people", None)
    if people is not None:
        read_people(workspace / people)


KIND = JobKind(
    name="commits",
    options_model=CommitsOptions,
    section_model=CommitsSection,
    check_files=_check_files,
    questions=(
        JobQuestion(
            key=("projects",),
            text="Projects (separate with commas; leave empty for all followed branches)",
            is_list=True,
            required=False,
        ),
    ),
    usual_schedule="every 1h",
    starter_variables="""\

#TSUZUKI_COMMITS_GITLAB_URL=https://gitlab.example.com
#TSUZUKI_COMMITS_GITLAB_TOKEN=
""",
    starter_job="commits:\n"
    "  type: commits                      # followed branches: tsuzuki commits --help\n"
    "  schedule: {every: 1h}\n",
)
