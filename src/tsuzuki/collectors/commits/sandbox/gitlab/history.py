"""Branches and commits: what a request asks of one project's repository."""

from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from urllib.parse import parse_qsl

from tsuzuki.sandbox.exchange import Response, StandInRequest, json_response

from . import entities
from .error_responses import ErrorResponse, not_found
from .paging import flag, offset_headers, window
from .projects import GitLabProject
from .repository import CommitWalk, Repository

OfProject = Callable[[StandInRequest, GitLabProject], Response]


def list_branches(request: StandInRequest, project: GitLabProject) -> Response:
    repository, text = project.repository, request.query.get("search", "")
    found = [branch for branch in repository.branches() if _is_meant(branch.name, text)]
    shown = window(request)
    rows = shown.of(found)
    heads = repository.commits([branch.sha for branch in rows], stats=False)
    body = [
        entities.branch(branch, head, project, request.base_url)
        for branch, head in zip(rows, heads, strict=True)
    ]
    headers = offset_headers(request, shown, length=len(found), with_totals=True)
    return json_response(body, headers=headers)


def _is_meant(name: str, text: str) -> bool:
    """A search text stands anywhere in the name; `^` ties it to the beginning, `$` to the end."""
    if text.startswith("^"):
        return name.startswith(text[1:])
    if text.endswith("$"):
        return name.endswith(text[:-1])
    return text in name


def show_branch(request: StandInRequest, project: GitLabProject) -> Response:
    repository = project.repository
    branch = repository.branch(request.params["branch"])
    if branch is None:
        raise not_found("Branch")
    [head] = repository.commits([branch.sha], stats=False)
    return json_response(entities.branch(branch, head, project, request.base_url))


def list_commits(request: StandInRequest, project: GitLabProject) -> Response:
    repository, shown = project.repository, window(request)
    walk = _walk(request, repository)
    shas = repository.listing(walk) if walk else []
    commits = repository.commits(shown.of(shas), stats=bool(flag(request, "with_stats")))
    body = [entities.commit(found, project, request.base_url) for found in commits]
    headers = offset_headers(request, shown, length=len(shas), with_totals=False)
    return json_response(body, headers=headers)


def _walk(request: StandInRequest, repository: Repository) -> CommitWalk | None:
    """What `ref_name` and the filters ask for; None if a name in it is not known."""
    options = [
        f"--{name}={_moment(request, name)}" for name in ("since", "until") if name in request.query
    ]
    if flag(request, "first_parent"):
        options.append("--first-parent")
    if request.query.get("order") == "topo":
        options.append("--topo-order")
    if author := request.query.get("author"):
        options.append(f"--author={author}")
    path = request.query.get("path")
    if flag(request, "all"):
        return CommitWalk(revisions=["--all"], options=options, path=path)
    revisions = _revisions(request.query.get("ref_name") or "HEAD", repository)
    return CommitWalk(revisions=revisions, options=options, path=path) if revisions else None


def _revisions(name: str, repository: Repository) -> list[str]:
    """A name, or a range of two, as full ids; nothing if one of them is not known."""
    old, dots, new = name.partition("..")
    if not dots:
        sha = repository.resolve(name)
        return [sha] if sha else []
    start = repository.resolve(old or "HEAD")
    end = repository.resolve(new.removeprefix(".") or "HEAD")
    if start is None or end is None:
        return []
    if not new.startswith("."):
        return [end, f"^{start}"]
    base = repository.merge_base([start, end])
    return [end, start, f"^{base}"] if base else [end, start]


def _moment(request: StandInRequest, name: str) -> str:
    try:
        return datetime.fromisoformat(request.query[name]).isoformat()
    except ValueError:
        raise ErrorResponse(400, {"error": f"{name} is invalid"}) from None


def show_commit(request: StandInRequest, project: GitLabProject) -> Response:
    repository = project.repository
    sha = _known(repository, request.params["sha"])
    if sha is None:
        raise not_found("Commit")
    stats = flag(request, "stats") is not False
    [found] = repository.commits([sha], stats=stats)
    beside = {"status": None, "last_pipeline": None, "project_id": project.number}
    return json_response({**entities.commit(found, project, request.base_url), **beside})


def show_file(request: StandInRequest, project: GitLabProject) -> Response:
    """A file of a commit, its content in base64."""
    repository, path = project.repository, request.params["path"]
    if "ref" not in request.query:
        raise ErrorResponse(400, {"error": "ref is missing"})
    sha = _known(repository, request.query["ref"])
    if sha is None:
        raise not_found("Commit")
    blob = repository.blob(sha, path)
    if blob is None:
        raise not_found("File")
    blob_id, content = blob
    return json_response(
        {
            "file_name": path.rpartition("/")[2],
            "file_path": path,
            "size": len(content),
            "encoding": "base64",
            "content": b64encode(content).decode("ascii"),
            "content_sha256": sha256(content).hexdigest(),
            "ref": request.query["ref"],
            "blob_id": blob_id,
            "commit_id": sha,
            "last_commit_id": repository.last_change(sha, path),
            "execute_filemode": False,
        }
    )


def compare(request: StandInRequest, project: GitLabProject) -> Response:
    repository = project.repository
    for name in ("from", "to"):
        if name not in request.query:
            raise ErrorResponse(400, {"error": f"{name} is missing"})
    start, end = (_known(repository, request.query[name]) for name in ("from", "to"))
    if start is None or end is None:
        raise not_found("Ref")
    shas = repository.listing(CommitWalk(revisions=[end, f"^{start}"]))
    if not flag(request, "straight"):
        start = repository.merge_base([start, end]) or start
    return json_response(
        entities.comparison(repository, project, request.base_url, start=start, end=end, shas=shas)
    )


def merge_base(request: StandInRequest, project: GitLabProject) -> Response:
    repository = project.repository
    pairs = parse_qsl(request.query_text)
    names = [part for name, text in pairs if name in ("refs", "refs[]") for part in text.split(",")]
    if len(names) < 2:
        raise ErrorResponse(400, {"message": "Provide at least 2 refs"})
    shas = [_known(repository, name) for name in names]
    unknown = [name for name, sha in zip(names, shas, strict=True) if sha is None]
    if unknown:
        noun = "ref" if len(unknown) == 1 else "refs"
        raise ErrorResponse(400, {"message": f"Could not find {noun}: {', '.join(unknown)}"})
    base = repository.merge_base([sha for sha in shas if sha])
    if base is None:
        raise not_found("Merge Base")
    [found] = repository.commits([base], stats=False)
    return json_response(entities.commit(found, project, request.base_url))


def _known(repository: Repository, name: str) -> str | None:
    sha = repository.resolve(name)
    return sha if sha and repository.holds(sha) else None
