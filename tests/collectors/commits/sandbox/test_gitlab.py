"""The stand-in for GitLab, asked by a client we did not write: python-gitlab."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gitlab
import pytest
import requests
from gitlab.v4.objects import Project

from support import git_oracle
from support.git_histories import AWKWARD_BRANCH, straight, wayward
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN
from tsuzuki.collectors.commits.sandbox.gitlab import gitlab as stand_in_for_gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import RepositoryBuilder
from tsuzuki.model.clock import ManualClock
from tsuzuki.sandbox.server import StandIn

ABSENT = "0123456789" * 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("gitlab")
    wayward(root / "group" / "wayward.git")
    straight(root / "group" / "deep" / "long.git", 250)
    RepositoryBuilder(root / "group" / "empty.git")
    RepositoryBuilder(root / "alone").write()
    return root


@pytest.fixture
def server(folder: Path) -> Iterator[StandIn]:
    with StandIn(stand_in_for_gitlab(folder)) as running:
        yield running


@pytest.fixture
def client(server: StandIn) -> gitlab.Gitlab:
    return gitlab.Gitlab(server.url, private_token=TOKEN, timeout=30)


@pytest.fixture
def crooked(client: gitlab.Gitlab) -> Project:
    return client.projects.get("group/wayward")


def as_row(commit: Any) -> git_oracle.Row:
    moment = datetime.fromisoformat(commit.committed_date).astimezone(UTC)
    return git_oracle.Row(
        commit.id,
        commit.author_name,
        commit.author_email,
        moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit.stats["additions"],
        commit.stats["deletions"],
    )


def test_who_knows_the_token_is_let_in(client: gitlab.Gitlab) -> None:
    client.auth()
    assert client.user is not None
    assert client.user.username == "sandbox"
    assert client.version()[0].startswith("18.")


@pytest.mark.parametrize("token", ["wrong", None])
def test_others_are_told_401_in_the_words_of_gitlab(server: StandIn, token: str | None) -> None:
    stranger = gitlab.Gitlab(server.url, private_token=token)
    with pytest.raises(gitlab.GitlabAuthenticationError, match="401 Unauthorized"):
        stranger.projects.get("group/wayward")


@pytest.mark.parametrize("header", ["PRIVATE-TOKEN", "Authorization"])
def test_a_token_comes_in_either_header(server: StandIn, header: str) -> None:
    value = TOKEN if header == "PRIVATE-TOKEN" else f"Bearer {TOKEN}"
    answer = requests.get(f"{server.url}/api/v4/version", headers={header: value}, timeout=10)
    assert answer.status_code == 200


def test_every_repository_is_a_project_on_pages_of_both_kinds(client: gitlab.Gitlab) -> None:
    everything = {"alone", "wayward", "long", "empty"}
    by_number = client.projects.list(iterator=True, per_page=2, order_by="id", sort="asc")
    by_key = client.projects.list(
        iterator=True, per_page=2, order_by="id", sort="asc", pagination="keyset", simple=True
    )
    assert (by_number.total, by_number.total_pages) == (4, 2)
    listed = [project.id for project in by_number]
    assert listed == sorted(listed) == [project.id for project in by_key]
    assert {project.path for project in client.projects.list(get_all=True)} == everything


def test_keyset_pages_go_by_id_only(client: gitlab.Gitlab) -> None:
    with pytest.raises(gitlab.GitlabListError) as refused:
        client.projects.list(pagination="keyset", order_by="name", get_all=False)
    assert refused.value.response_code == 405


def test_a_repository_outside_a_group_gets_a_namespace(client: gitlab.Gitlab) -> None:
    assert client.projects.get("sandbox/alone").empty_repo is True


def test_a_project_is_found_by_number_and_by_path(client: gitlab.Gitlab, crooked: Project) -> None:
    assert client.projects.get(crooked.id).path_with_namespace == "group/wayward"
    assert client.projects.get("group/deep/long").default_branch == "main"


@pytest.mark.parametrize("reference", [7, "group/none", "../etc/passwd"])
def test_an_unknown_project_is_404(client: gitlab.Gitlab, reference: int | str) -> None:
    with pytest.raises(gitlab.GitlabGetError, match="404 Project Not Found"):
        client.projects.get(reference)


def test_numbers_outlive_a_restart_and_a_new_neighbour(tmp_path: Path) -> None:
    straight(tmp_path / "group" / "second.git", 1)
    before = {p.path: p.number for p in stand_in_for_gitlab(tmp_path).projects.all()}
    straight(tmp_path / "group" / "first.git", 1)
    after = {p.path: p.number for p in stand_in_for_gitlab(tmp_path).projects.all()}
    assert before.items() < after.items()


def test_a_former_path_redirects_to_the_number(client: gitlab.Gitlab, server: StandIn) -> None:
    project = client.projects.get("group/deep/long")
    project.path = "renamed"
    project.save()
    again = client.projects.get("group/deep/long")
    assert (again.id, again.path_with_namespace) == (project.id, "group/deep/renamed")
    answer = requests.get(
        f"{server.url}/api/v4/projects/group%2Fdeep%2Flong/repository/commits?page=2",
        headers={"PRIVATE-TOKEN": TOKEN},
        allow_redirects=False,
        timeout=10,
    )
    assert answer.status_code == 301
    assert answer.headers["Location"] == (
        f"{server.url}/api/v4/projects/{project.id}/repository/commits?page=2"
    )


@pytest.mark.parametrize("body", ['{"path": "called"}', "path=called"])
def test_a_project_is_renamed_by_json_or_by_a_form(server: StandIn, body: str) -> None:
    answer = requests.put(
        f"{server.url}/api/v4/projects/group%2Fempty",
        data=body,
        headers={"PRIVATE-TOKEN": TOKEN},
        timeout=10,
    )
    assert answer.json()["path_with_namespace"] == "group/called"


def test_archived_projects_are_listed_on_request(client: gitlab.Gitlab) -> None:
    client.projects.get("group/wayward").archive()
    archived = client.projects.list(archived=True, get_all=True)
    assert [project.path for project in archived] == ["wayward"]
    client.projects.get("group/wayward").unarchive()
    assert client.projects.list(archived=True, get_all=True) == []


def test_branches_are_listed_by_name_and_searched(crooked: Project) -> None:
    names = [branch.name for branch in crooked.branches.list(get_all=True, per_page=2)]
    assert names == sorted(names)
    assert AWKWARD_BRANCH in names
    assert [b.name for b in crooked.branches.list(search="^arm", get_all=True)] == [
        "arm/1",
        "arm/2",
        "arm/3",
    ]
    assert [b.name for b in crooked.branches.list(search="ld$", get_all=True)] == ["old"]


@pytest.mark.parametrize("name", ["main", "arm/1", AWKWARD_BRANCH])
def test_a_branch_is_found_whatever_is_in_its_name(
    crooked: Project, folder: Path, name: str
) -> None:
    branch = crooked.branches.get(name)
    assert branch.commit["id"] == git_oracle.head(folder / "group" / "wayward.git", name)
    assert branch.default is (name == "main")


def test_an_unknown_branch_is_404(crooked: Project) -> None:
    with pytest.raises(gitlab.GitlabGetError, match="404 Branch Not Found"):
        crooked.branches.get("mainn")


@pytest.mark.parametrize("branch", ["main", "old", AWKWARD_BRANCH])
def test_commits_and_counts_are_those_of_git(crooked: Project, folder: Path, branch: str) -> None:
    listed = crooked.commits.list(ref_name=branch, with_stats=True, per_page=3, get_all=True)
    expected = git_oracle.rows(folder / "group" / "wayward.git", f"refs/heads/{branch}")
    assert len(listed) == len(expected)
    assert {as_row(commit) for commit in listed} == expected


def test_a_range_holds_what_git_says(crooked: Project, folder: Path) -> None:
    repository = folder / "group" / "wayward.git"
    old, new = git_oracle.head(repository, "arm/1"), git_oracle.head(repository)
    listed = crooked.commits.list(ref_name=f"{old}..{new}", per_page=2, get_all=True)
    assert [commit.id for commit in listed] == git_oracle.ids(repository, f"{old}..{new}")
    assert listed[0].id == new


def test_the_commits_have_no_total(client: gitlab.Gitlab, server: StandIn) -> None:
    number = client.projects.get("group/wayward").id
    answer = requests.get(
        f"{server.url}/api/v4/projects/{number}/repository/commits?per_page=3&page=2",
        headers={"PRIVATE-TOKEN": TOKEN},
        timeout=10,
    )
    assert {k: v for k, v in answer.headers.items() if k.startswith("X-")} == {
        "X-Per-Page": "3",
        "X-Page": "2",
        "X-Next-Page": "3",
        "X-Prev-Page": "1",
    }
    assert set(answer.links) == {"prev", "next", "first"}
    assert answer.headers["RateLimit-Limit"]


def test_a_page_holds_a_hundred_at_most_and_the_last_one_says_so(client: gitlab.Gitlab) -> None:
    [project] = client.projects.list(search="long", get_all=True)
    commits = project.commits
    sizes = [len(commits.list(per_page=500, page=page, get_all=False)) for page in (1, 2, 3, 4)]
    assert sizes == [100, 100, 50, 0]


def test_a_range_with_an_unknown_end_is_an_empty_list(crooked: Project, folder: Path) -> None:
    new = git_oracle.head(folder / "group" / "wayward.git")
    assert crooked.commits.list(ref_name=f"{ABSENT}..{new}", get_all=True) == []
    assert crooked.commits.list(ref_name="no-such-branch", get_all=True) == []


def test_dates_and_first_parents_narrow_the_list(crooked: Project, folder: Path) -> None:
    repository = folder / "group" / "wayward.git"
    main = git_oracle.head(repository)
    first = crooked.commits.list(ref_name="main", first_parent=True, get_all=True)
    assert [c.id for c in first] == git_oracle.ids(repository, "--first-parent", main)
    since = "2010-01-01T00:00:00Z"
    late = crooked.commits.list(ref_name="main", since=since, get_all=True)
    assert [c.id for c in late] == git_oracle.ids(repository, f"--since={since}", main)
    with pytest.raises(gitlab.GitlabListError, match="since is invalid"):
        crooked.commits.list(since="yesterday", get_all=True)


def test_one_commit_comes_with_its_counts(crooked: Project, folder: Path) -> None:
    commit = crooked.commits.get("main")
    [expected] = git_oracle.rows(folder / "group" / "wayward.git", "-1", "refs/heads/main")
    assert as_row(commit) == expected
    with pytest.raises(gitlab.GitlabGetError, match="404 Commit Not Found"):
        crooked.commits.get(ABSENT)


def test_two_refs_are_compared(crooked: Project, folder: Path) -> None:
    repository = folder / "group" / "wayward.git"
    compared = crooked.repository_compare("old", "main")
    assert isinstance(compared, dict)
    expected = git_oracle.ids(repository, "old..main")[::-1]
    assert [commit["id"] for commit in compared["commits"]] == expected
    assert compared["commit"]["id"] == expected[-1]
    renamed = {d["old_path"]: d["new_path"] for d in compared["diffs"] if d["renamed_file"]}
    assert renamed["b.txt"] == "moved/d.txt"
    with pytest.raises(gitlab.GitlabGetError, match="404 Ref Not Found"):
        crooked.repository_compare("old", ABSENT)


def test_the_merge_base_is_that_of_git(crooked: Project, folder: Path) -> None:
    base = crooked.repository_merge_base(["arm/1", AWKWARD_BRANCH])
    assert isinstance(base, dict)
    expected = git_oracle.git(
        folder / "group" / "wayward.git", "merge-base", "arm/1", AWKWARD_BRANCH
    )
    assert base["id"] == expected.decode().strip()


def test_refs_without_a_merge_base_are_told_apart_from_unknown_ones(crooked: Project) -> None:
    with pytest.raises(gitlab.GitlabGetError, match="404 Merge Base Not Found"):
        crooked.repository_merge_base(["other", "old"])
    with pytest.raises(gitlab.GitlabGetError, match=f"Could not find ref: {ABSENT}") as unknown:
        crooked.repository_merge_base(["main", ABSENT])
    assert unknown.value.response_code == 400


def test_an_empty_repository_has_no_branch_and_no_commit(client: gitlab.Gitlab) -> None:
    empty = client.projects.get("group/empty")
    assert empty.empty_repo is True
    assert empty.commits.list(get_all=True) == []
    with pytest.raises(gitlab.GitlabGetError, match="404 Branch Not Found"):
        empty.branches.get("main")


def test_the_default_branch_may_move(client: gitlab.Gitlab, tmp_path: Path) -> None:
    make = straight(tmp_path / "group" / "moving.git", 2)
    make.commit("next", {"n": b"n\n"}, parents=[git_oracle.head(make.folder)])
    make.write()
    with StandIn(stand_in_for_gitlab(tmp_path)) as server:
        project = gitlab.Gitlab(server.url, private_token=TOKEN).projects.get("group/moving")
        project.default_branch = "next"
        project.save()
        assert project.branches.get("next").default is True
        assert project.branches.get("main").default is False


def test_a_broken_repository_is_500(tmp_path: Path) -> None:
    make = straight(tmp_path / "group" / "broken.git", 2)
    for file in (make.folder / "objects").rglob("*"):
        if file.is_file():
            file.unlink()
    with StandIn(stand_in_for_gitlab(tmp_path)) as server:
        client = gitlab.Gitlab(server.url, private_token=TOKEN)
        project = client.projects.get("group/broken")
        with pytest.raises(gitlab.GitlabGetError) as failed:
            project.branches.get("main")
    assert failed.value.response_code == 500


def test_too_many_requests_in_a_minute_are_turned_away_until_it_is_over(folder: Path) -> None:
    clock = ManualClock(datetime(2026, 3, 1, 12, 0, 48, tzinfo=UTC))
    application = stand_in_for_gitlab(folder, requests_per_minute=2, clock=clock)
    with StandIn(application) as server:
        url, headers = f"{server.url}/api/v4/version", {"PRIVATE-TOKEN": TOKEN}
        answers = [requests.get(url, headers=headers, timeout=10) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 429]
        assert [a.headers["RateLimit-Remaining"] for a in answers] == ["1", "0", "0"]
        assert answers[2].headers["Retry-After"] == "12"
        reset = datetime(2026, 3, 1, 12, 1, tzinfo=UTC)
        assert answers[2].headers["RateLimit-Reset"] == str(int(reset.timestamp()))
        assert answers[2].text == "Retry later\n"
        clock.advance(12)
        assert requests.get(url, headers=headers, timeout=10).status_code == 200
