"""Errors as pages: what happened, its stable code, and what to do next."""

from fastapi import Request, Response

from tsuzuki.model.errors import TsuzukiError
from tsuzuki.web.pages.rendering import render_page
from tsuzuki.web.pages.viewer import viewer_of
from tsuzuki.web.pages.words import refusal_title
from tsuzuki.web.problems import problem_of, problem_response


def error_page(request: Request, error: TsuzukiError) -> Response:
    mask = request.app.state.application.mask
    problem, answer = problem_of(error, mask), problem_response(error, mask)
    kept = {
        name: answer.headers[name]
        for name in ("retry-after", "allow", "www-authenticate")
        if name in answer.headers
    }
    values = {"problem": problem, "title": refusal_title(problem.status)}
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
