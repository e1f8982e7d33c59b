"""The REST paths: what a request asks of the repositories, and what GitLab would answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

from tsuzuki.sandbox.exchange import (
    Application,
    Response,
    Route,
    Router,
    StandInRequest,
    json_response,
)

from . import entities, history
from .error_responses import ErrorResponse, not_found, unauthorized
from .paging import flag, keyset_headers, offset_headers, whole_number, window
from .projects import GitLabProject, Projects
from .repository import GitFailed
from .throttle import Throttle

API = "/api/v4"
PROJECT = f"{API}/projects/{{project}}"
REPOSITORY = f"{PROJECT}/repository"
ORDERS: dict[str, Callable[[GitLabProject], Any]] = {
    "id": lambda project: project.number,
    "name": lambda project: project.name,
    "path": lambda project: project.path,
    "created_at": lambda project: project.number,
    "updated_at": lambda project: project.number,
    "last_activity_at": lambda project: project.number,
}


class GitLabApi:
    """The application: signed requests are answered from `projects`, within the throttle."""

    def __init__(self, projects: Projects, *, token: str, throttle: Throttle) -> None:
        self.projects = projects
        self._token = token
        self._throttle = throttle
        self._router = Router(self._routes(), otherwise=_nothing_there)

    def __call__(self, request: StandInRequest) -> Response:
        headers, turned_away = self._throttle.count()
        response = turned_away or self._respond(request)
        return replace(response, headers={**response.headers, **headers})

    def _respond(self, request: StandInRequest) -> Response:
        try:
            if self._token not in _tokens(request):
                raise unauthorized()
            return self._router(request)
        except ErrorResponse as error:
            return error.response()
        except GitFailed:
            return ErrorResponse(500, {"message": "500 Internal Server Error"}).response()

    def _routes(self) -> list[Route]:
        return [
            Route("GET", f"{API}/version", _version),
            Route("GET", f"{API}/user", _user),
            Route("GET", f"{API}/projects", self._list_projects),
            Route("GET", PROJECT, self._of_project(_show_project)),
            Route("PUT", PROJECT, self._of_project(self._change_project)),
            Route("POST", f"{PROJECT}/archive", self._of_project(_archive)),
            Route("POST", f"{PROJECT}/unarchive", self._of_project(_unarchive)),
            Route("GET", f"{REPOSITORY}/branches", self._of_project(history.list_branches)),
            Route(
                "GET", f"{REPOSITORY}/branches/{{branch}}", self._of_project(history.show_branch)
            ),
            Route("GET", f"{REPOSITORY}/commits", self._of_project(history.list_commits)),
            Route("GET", f"{REPOSITORY}/commits/{{sha}}", self._of_project(history.show_commit)),
            Route("GET", f"{REPOSITORY}/files/{{path}}", self._of_project(history.show_file)),
            Route("GET", f"{REPOSITORY}/compare", self._of_project(history.compare)),
            Route("GET", f"{REPOSITORY}/merge_base", self._of_project(history.merge_base)),
        ]

    def _of_project(self, application: history.OfProject) -> Application:
        """A former path is answered by a redirect to the number, as GitLab does for reading."""

        def find_and_respond(request: StandInRequest) -> Response:
            reference = request.params["project"]
            if project := self.projects.find(reference):
                return application(request, project)
            project = self.projects.moved(reference)
            if project is None:
                raise not_found("Project")
            if request.method != "GET":
                raise ErrorResponse(
                    405, {"message": "Non GET methods are not allowed for moved projects"}
                )
            raise _moved(request, project)

        return find_and_respond

    def _list_projects(self, request: StandInRequest) -> Response:
        order = request.query.get("order_by", "created_at")
        is_keyset = request.query.get("pagination") == "keyset"
        if order not in ORDERS:
            raise ErrorResponse(400, {"error": "order_by does not have a valid value"})
        if is_keyset and order != "id":
            problem = "Keyset pagination is not yet available for this type of request"
            raise ErrorResponse(405, {"error": problem})
        descending = request.query.get("sort", "desc") == "desc"
        found = [p for p in self.projects.all() if _is_listed(p, request)]
        found.sort(key=ORDERS[order], reverse=descending)
        shown = window(request)
        entity = entities.simple_project if flag(request, "simple") else entities.full_project
        rows = shown.of(found) if not is_keyset else found[: shown.per_page]
        headers = (
            _following_key(request, rows, found, descending=descending)
            if is_keyset
            else offset_headers(request, shown, length=len(found), with_totals=True)
        )
        return json_response([entity(p, request.base_url) for p in rows], headers=headers)

    def _change_project(self, request: StandInRequest, project: GitLabProject) -> Response:
        """Rename it or give it another default branch, as a maintainer may."""
        changes = _changes(request)
        if default := changes.get("default_branch"):
            if project.repository.branch(default) is None:
                raise ErrorResponse(
                    400, {"message": {"base": ["Could not set the default branch"]}}
                )
            project.repository.set_default_branch(default)
        if path := changes.get("path"):
            self.projects.rename(project, f"{project.namespace}/{path}")
        return _show_project(request, project)


def _changes(request: StandInRequest) -> dict[str, str]:
    """What a request for a change says: as JSON, as a form, or in its query."""
    if not request.body:
        return dict(request.query)
    try:
        said = request.json()
    except ValueError:
        said = dict(parse_qsl(request.body.decode(errors="replace")))
    return said if isinstance(said, dict) else {}


def _tokens(request: StandInRequest) -> set[str]:
    """Wherever GitLab takes one from."""
    bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
    given = (
        request.headers.get("Private-Token"),
        bearer,
        request.query.get("private_token"),
        request.query.get("access_token"),
    )
    return {token for token in given if token}


def _nothing_there(_request: StandInRequest) -> Response:
    return ErrorResponse(404, {"error": "404 Not Found"}).response()


def _version(_request: StandInRequest) -> Response:
    return json_response({"version": "18.5.0", "revision": "sandbox"})


def _user(request: StandInRequest) -> Response:
    url = f"{request.base_url}/sandbox"
    return json_response(
        {"id": 1, "username": "sandbox", "name": "Sandbox", "state": "active", "web_url": url}
    )


def _moved(request: StandInRequest, project: GitLabProject) -> ErrorResponse:
    before = f"{API}/projects/"
    _, slash, rest = request.target.removeprefix(before).partition("/")
    location = f"{request.base_url}{before}{project.number}{slash}{rest}"
    body = {"message": f"This resource has been moved permanently to {location}"}
    return ErrorResponse(301, body, headers={"Location": location})


def _is_listed(project: GitLabProject, request: StandInRequest) -> bool:
    archived = flag(request, "archived")
    after, before = whole_number(request, "id_after", 0), whole_number(request, "id_before", 2**63)
    return (
        archived in (None, project.archived)
        and after < project.number < before
        and request.query.get("search", "").lower() in project.path.lower()
    )


def _following_key(
    request: StandInRequest,
    rows: Sequence[GitLabProject],
    found: Sequence[GitLabProject],
    *,
    descending: bool,
) -> dict[str, str]:
    if len(rows) == len(found):
        return {}
    key = "id_before" if descending else "id_after"
    return keyset_headers(request, **{key: str(rows[-1].number)})


def _show_project(request: StandInRequest, project: GitLabProject) -> Response:
    return json_response(entities.full_project(project, request.base_url))


def _archive(request: StandInRequest, project: GitLabProject) -> Response:
    project.archived = True
    return replace(_show_project(request, project), status=201)


def _unarchive(request: StandInRequest, project: GitLabProject) -> Response:
    project.archived = False
    return replace(_show_project(request, project), status=201)
