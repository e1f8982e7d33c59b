"""GitLab as a source: asked over HTTP, answered by the stand-in, and every way it can go wrong."""

import socket
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest

from support import git_oracle
from support.git_histories import AWKWARD_BRANCH, straight, wayward
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.api import GitLabApi
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.sources import gitlab_client
from tsuzuki.collectors.commits.sources.gitlab import GitLabHost, GitLabSource
from tsuzuki.collectors.commits.sources.source import Absence, Head, Lineage, Range, RangeLost
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.outward.errors import (
    RateLimited,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

ABSENT = "0123456789" * 4
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gitlab")
    wayward(root / "group" / "wayward.git")
    straight(root / "group" / "long.git", 250)
    RepositoryBuilder(root / "group" / "empty.git")
    return root


@pytest.fixture
def api(folder: Path) -> GitLabApi:
    return gitlab(folder)


@pytest.fixture
def server(api: GitLabApi) -> Iterator[StandIn]:
    with StandIn(api) as running:
        yield running


@pytest.fixture
def host(server: StandIn) -> Iterator[GitLabHost]:
    connected = GitLabHost(url=server.url, token=TOKEN, clock=SystemClock())
    yield connected
    connected.close()


def source_of(host: GitLabHost, path: str) -> GitLabSource:
    return host.source(host.project(path).remote_id)


@pytest.fixture
def crooked(host: GitLabHost) -> GitLabSource:
    return source_of(host, "group/wayward")


@pytest.fixture
def long(host: GitLabHost) -> GitLabSource:
    return source_of(host, "group/long")


@pytest.fixture
def everything(folder: Path) -> Range:
    """The whole history of `long`."""
    return Range(old=None, new=git_oracle.head(folder / "group" / "long.git"))


def collected(source: GitLabSource, wanted: Range, mark: str | None = None) -> set[git_oracle.Row]:
    pages = list(source.pages(wanted, mark=mark))
    assert [page.is_last for page in pages] == [False] * (len(pages) - 1) + [True]
    return {git_oracle.Row(*commit[:6]) for page in pages for commit in page.commits}


def error_of(source: GitLabSource, wanted: Range) -> SourceFailed:
    with pytest.raises(SourceFailed) as raised:
        list(source.pages(wanted))
    assert TOKEN not in str(raised.value)
    assert "@" not in str(raised.value)
    return raised.value


def test_every_project_is_found_page_by_page(
    host: GitLabHost, server: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", 2)
    found = {project.path: project for project in host.projects()}
    assert set(found) == {"group/wayward", "group/long", "group/empty"}
    assert server.count("/api/v4/projects") == 2
    assert found["group/long"].default_branch == "main"
    assert found["group/empty"].default_branch is None
    assert found["group/long"].url == f"{server.url}/group/long"


def test_an_archived_project_is_known_as_such(host: GitLabHost, api: GitLabApi) -> None:
    project = api.projects.find("group/long")
    assert project is not None
    project.archived = True
    assert host.project("group/long").is_archived is True


def test_an_unchanged_branch_costs_one_request(
    crooked: GitLabSource, server: StandIn, folder: Path
) -> None:
    server.forget_requests()
    head = crooked.head("main")
    sha = git_oracle.head(folder / "group" / "wayward.git")
    assert head == Head(sha=sha, is_default=True, path="group/wayward")
    assert server.count() == 1


@pytest.mark.parametrize("branch", ["arm/1", AWKWARD_BRANCH])
def test_a_branch_is_found_whatever_is_in_its_name(
    crooked: GitLabSource, folder: Path, branch: str
) -> None:
    head = crooked.head(branch)
    assert isinstance(head, Head)
    assert head.sha == git_oracle.head(folder / "group" / "wayward.git", branch)
    assert head.is_default is False


def test_a_branch_that_is_gone_is_told_apart_from_an_empty_repository(
    crooked: GitLabSource, host: GitLabHost
) -> None:
    assert crooked.head("gone") is Absence.NO_BRANCH
    assert source_of(host, "group/empty").head("main") is Absence.EMPTY_REPOSITORY
    assert source_of(host, "group/empty").default_branch() is None
    assert crooked.default_branch() == "main"


def test_a_renamed_project_is_followed_by_its_number(
    crooked: GitLabSource, host: GitLabHost, api: GitLabApi
) -> None:
    project = api.projects.find("group/wayward")
    assert project is not None
    api.projects.rename(project, "other/straightened")
    head = crooked.head("main")
    assert isinstance(head, Head)
    assert head.path == "other/straightened"
    assert host.project("group/wayward").path == "other/straightened"


@pytest.mark.parametrize("branch", ["main", "old", AWKWARD_BRANCH])
def test_what_is_collected_is_what_git_says(
    crooked: GitLabSource, folder: Path, branch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_gitlab, "PAGE_SIZE", 3)
    repository = folder / "group" / "wayward.git"
    new = git_oracle.head(repository, branch)
    assert collected(crooked, Range(old=None, new=new)) == git_oracle.rows(repository, new)


def test_a_range_between_any_two_commits_is_that_of_git(
    crooked: GitLabSource, folder: Path
) -> None:
    repository = folder / "group" / "wayward.git"
    new = git_oracle.head(repository)
    for old in git_oracle.ids(repository, new)[1:]:
        expected = git_oracle.rows(repository, f"{old}..{new}")
        assert collected(crooked, Range(old=old, new=new)) == expected


def test_every_mark_leads_to_the_rest(
    long: GitLabSource, folder: Path, everything: Range, server: StandIn
) -> None:
    repository = folder / "group" / "long.git"
    pages = list(long.pages(everything))
    assert [len(page.commits) for page in pages] == [100, 100, 50]
    whole = git_oracle.rows(repository, everything.new)
    before: set[git_oracle.Row] = set()
    for page in pages[:-1]:
        before |= {git_oracle.Row(*commit[:6]) for commit in page.commits}
        server.forget_requests()
        rest = collected(long, everything, mark=page.mark)
        assert before | rest == whole
        assert not before & rest
        assert server.count("*/commits") == 3 - len(before) // 100
    assert collected(long, everything, mark=pages[-1].mark) == set()


def test_a_mark_of_another_page_size_starts_again(long: GitLabSource, everything: Range) -> None:
    assert len(collected(long, everything, mark="page 3 of 50")) == 250
    assert len(collected(long, everything, mark="nonsense")) == 250


def test_pages_that_are_not_read_are_not_asked_for(
    long: GitLabSource, everything: Range, server: StandIn
) -> None:
    pages = long.pages(everything)
    next(pages)
    pages.close()
    assert server.count("*/commits") == 1


def test_nothing_new_is_one_empty_last_page(long: GitLabSource, everything: Range) -> None:
    [page] = long.pages(Range(old=everything.new, new=everything.new))
    assert (list(page.commits), page.is_last) == ([], True)


def test_without_an_old_head_the_date_narrows_the_history(
    long: GitLabSource, folder: Path, everything: Range
) -> None:
    repository = folder / "group" / "long.git"
    since = datetime(2020, 9, 20, tzinfo=UTC)
    expected = git_oracle.rows(repository, f"--since={since.isoformat()}", everything.new)
    assert 0 < len(expected) < 250
    assert collected(long, Range(old=None, new=everything.new, since=since)) == expected
    assert collected(long, Range(old=None, new=everything.new, since=NOON)) == set()


def test_the_former_head_is_known_for_what_it_is(tmp_path: Path) -> None:
    make = straight(tmp_path / "group" / "forced.git", 5)
    [new, old, base, *_] = git_oracle.ids(make.folder, "main")
    make.commit("main", {"f": b"forced\n"}, parents=[base], at=1_700_000_000)
    make.commit("island", {"f": b"alone\n"}, parents=[], at=1_700_000_000)
    make.write()
    forced, island = (git_oracle.head(make.folder, name) for name in ("main", "island"))
    with StandIn(gitlab(tmp_path)) as server:
        host = GitLabHost(url=server.url, token=TOKEN, clock=SystemClock())
        source = source_of(host, "group/forced")
        assert source.lineage(old, new) is Lineage.ANCESTOR
        assert source.lineage(new, forced) is Lineage.REWRITTEN
        assert source.lineage(new, island) is Lineage.REWRITTEN
        assert source.lineage(ABSENT, forced) is Lineage.UNKNOWN
        expected = git_oracle.rows(make.folder, f"{new}..{forced}")
        assert collected(source, Range(old=new, new=forced)) == expected
        host.close()


def test_a_range_whose_end_is_gone_is_never_taken_for_nothing_new(
    long: GitLabSource, everything: Range
) -> None:
    error = error_of(long, Range(old=ABSENT, new=everything.new))
    assert isinstance(error, SourceUnavailable)
    assert "no longer has one end" in error.message
    with pytest.raises(SourceUnavailable):
        list(long.pages(Range(old=ABSENT, new=everything.new), mark="page 2 of 100"))


def test_a_wrong_token_is_refused_without_repeating_it(server: StandIn) -> None:
    host = GitLabHost(url=server.url, token="glpat-wrong-and-secret", clock=SystemClock())
    with pytest.raises(SourceRefused) as raised:
        host.source(1).head("main")
    assert "does not accept the token (401)" in raised.value.message
    assert "wrong" not in raised.value.message
    assert raised.value.hint is not None
    host.close()


def test_a_missing_token_is_asked_for(server: StandIn) -> None:
    host = GitLabHost(url=server.url, token="", clock=SystemClock())
    with pytest.raises(SourceRefused, match="requires a token"):
        list(host.projects())
    host.close()


def test_an_unknown_project_is_refused(host: GitLabHost) -> None:
    unknown = host.source(7)
    for question in (
        lambda: unknown.head("main"),
        unknown.default_branch,
        lambda: unknown.lineage(ABSENT, ABSENT),
        lambda: list(unknown.pages(Range(old=None, new=ABSENT))),
        lambda: host.project("group/nothing"),
    ):
        with pytest.raises(SourceRefused):
            question()


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        (
            StandInFault(status=403, body='{"message":"403 Forbidden"}'),
            SourceRefused,
            "denied the request",
        ),
        (
            StandInFault(status=404, body='{"message":"404 Project Not Found"}'),
            SourceRefused,
            "404 Project",
        ),
        (StandInFault(status=422, body='{"message":"ask boss@example.org"}'), SourceRefused, "422"),
        (StandInFault(status=500), SourceUnavailable, "failed (500)"),
        (
            StandInFault(status=502, content_type="text/html", body="<html>"),
            SourceUnavailable,
            "502",
        ),
        (
            StandInFault(kind=StandInFaultKind.HTML),
            SourceUnavailable,
            "an HTML page (text/html)",
        ),
        (StandInFault(kind=StandInFaultKind.CUT), SourceUnavailable, "closed the connection"),
        (
            StandInFault(kind=StandInFaultKind.RESET),
            SourceUnavailable,
            "closed the connection: Connection reset",
        ),
        (StandInFault(body="[{]"), SourceUnavailable, "invalid JSON"),
        (StandInFault(body="{}"), SourceUnavailable, "other than a list"),
        (StandInFault(body='[{"id": "a@b.c"}]'), SourceUnavailable, "other than a commit"),
        (StandInFault(body="[null]"), SourceUnavailable, "other than a commit"),
        (StandInFault(body="[]"), RangeLost, "no longer has one end"),
    ],
)
def test_each_fault_is_told_for_what_it_is_and_the_next_request_works(
    long: GitLabSource,
    everything: Range,
    server: StandIn,
    fault: StandInFault,
    kind: type[SourceFailed],
    words: str,
) -> None:
    server.faults.add(StandInFault(**{**vars(fault), "path": "*/repository/commits"}))
    error = error_of(long, everything)
    assert type(error) is kind
    assert words in error.message
    assert error.permanent is (kind is SourceRefused)
    assert server.count("*/repository/commits") == 1
    assert len(collected(long, everything)) == 250


def test_a_server_that_hangs_is_given_up_in_time(
    server: StandIn, host: GitLabHost, everything: Range
) -> None:
    remote_id = host.project("group/long").remote_id
    impatient = GitLabHost(url=server.url, token=TOKEN, clock=SystemClock(), timeout_seconds=0.2)
    server.faults.add(StandInFault(kind=StandInFaultKind.HANG, path="*/commits"))
    error = error_of(impatient.source(remote_id), everything)
    assert isinstance(error, SourceUnavailable)
    assert "did not respond within 0.2 s" in error.message
    impatient.close()


def test_a_server_that_does_not_run_is_unavailable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    host = GitLabHost(url=f"http://127.0.0.1:{port}", token=TOKEN, clock=SystemClock())
    with pytest.raises(SourceUnavailable, match="Connection refused"):
        host.source(1).head("main")


@pytest.mark.parametrize("url", ["gitlab", "http://", "nowhere://x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    host = GitLabHost(url=url, token=TOKEN, clock=SystemClock())
    with pytest.raises(SourceFailed) as raised:
        host.source(1).head("main")
    assert TOKEN not in str(raised.value)


def test_a_body_that_is_too_large_is_refused(
    long: GitLabSource, everything: Range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitlab_client, "BODY_BYTES_MAX", 2000)
    error = error_of(long, everything)
    assert isinstance(error, SourceUnavailable)
    assert "more than 2000 bytes" in error.message


def test_a_server_that_drips_is_given_up_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def drip() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(65536)
                link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not ended.wait(0.05):
                    link.send(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        host = GitLabHost(url=url, token=TOKEN, clock=SystemClock(), timeout_seconds=1.5)
        with pytest.raises(SourceUnavailable, match="too slowly"):
            host.source(1).head("main")
        ended.set()
        thread.join()
        host.close()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7", "RateLimit-Reset": "99"}, 7.0),
        ({"Retry-After": format_datetime(NOON.replace(minute=2), usegmt=True)}, 120.0),
        ({"RateLimit-Reset": str(int(NOON.timestamp()) + 31)}, 31.0),
        ({"RateLimit-Reset": "1"}, 1.0),
        ({"Retry-After": "soon"}, gitlab_client.PAUSE_SECONDS),
        ({}, gitlab_client.PAUSE_SECONDS),
    ],
)
def test_a_rate_limit_says_until_when_and_is_not_waited_for(
    server: StandIn, headers: dict[str, str], seconds: float
) -> None:
    host = GitLabHost(url=server.url, token=TOKEN, clock=ManualClock(NOON))
    fault = StandInFault(
        status=429, headers=headers, body="Retry later\n", content_type="text/plain"
    )
    server.faults.add(fault)
    with pytest.raises(RateLimited) as raised:
        host.project("group/long")
    assert raised.value.retry_after_seconds == pytest.approx(seconds)
    assert server.count() == 1
    assert host.project("group/long").name == "long"
    host.close()


def test_a_server_in_maintenance_says_when_to_come_again(server: StandIn, host: GitLabHost) -> None:
    server.faults.add(StandInFault(status=503, headers={"Retry-After": "30"}))
    with pytest.raises(SourceUnavailable) as raised:
        host.project("group/long")
    assert raised.value.retry_after_seconds == pytest.approx(30)


def test_the_token_is_not_carried_to_another_server(host: GitLabHost, server: StandIn) -> None:
    with StandIn(gitlab(Path(__file__).parent)) as elsewhere:
        server.faults.add(
            StandInFault(status=302, headers={"Location": f"{elsewhere.url}/api/v4/user"})
        )
        with pytest.raises(SourceRefused, match="another server"):
            host.project("group/long")
        assert elsewhere.count() == 0


def test_a_connection_is_kept_for_all_projects_of_a_thread(
    host: GitLabHost, server: StandIn
) -> None:
    first, second = source_of(host, "group/long"), source_of(host, "group/wayward")
    first.head("main")
    second.head("main")
    assert server.count() == 4
    assert len({seen.request.client for seen in server.requests}) == 1


def test_without_python_gitlab_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gitlab", None)
    host = GitLabHost(url="http://127.0.0.1:9", token=TOKEN, clock=SystemClock())
    with pytest.raises(ConfigurationError) as raised:
        host.source(1)
    assert "tsuzuki[commits]" in (raised.value.hint or "")
