"""Errors as pages: what happened, its stable code, and what to do next."""

from types import MappingProxyType

from fastapi import Request, Response

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.rendering import render_page
from tsuzuki.web.pages.viewer import viewer_of
from tsuzuki.web.problems import problem_of, problem_response

TITLES = MappingProxyType(
    {
        400: message("This request cannot be understood"),
        401: message("Sign in first"),
        403: message("This is not permitted"),
        404: message("There is nothing here"),
        405: message("This cannot be done here"),
        409: message("This is not possible now"),
        412: message("It was changed meanwhile"),
        413: message("This is too large"),
        422: message("Something in the request is wrong"),
        429: message("Too many attempts"),
        500: message("Something broke on our side"),
        503: message("The database cannot be reached"),
    }
)


def title_of(status: int) -> str:
    return TITLES.get(status, TITLES[500] if status >= 500 else TITLES[400])


def error_page(request: Request, error: TsuzukiError) -> Response:
    mask = request.app.state.application.mask
    problem, answer = problem_of(error, mask), problem_response(error, mask)
    kept = {
        name: answer.headers[name]
        for name in ("retry-after", "allow", "www-authenticate")
        if name in answer.headers
    }
    values = {"problem": problem, "title": title_of(problem.status)}
    return render_page(
        viewer_of(request), "error.html", values, status=problem.status, headers=kept
    )


def wants_page(request: Request) -> bool:
    """A browser that goes to an address, not a program."""
    path = request.url.path
    return (
        "text/html" in request.headers.get("accept", "")
        and not path.startswith("/api/")
        and not path.endswith(".json")
    )
